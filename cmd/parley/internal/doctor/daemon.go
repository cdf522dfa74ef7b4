package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/adapters"
	"parley/cmd/parley/internal/boot"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/event"
)

// askTime bounds one question to the daemon or to a platform.
const askTime = 3 * time.Second

// get asks a server. The caller closes the body.
func get(ctx context.Context, method, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(request) // a redirect is an answer
}

// daemon asks the daemon that has the socket of the configuration for its state and those of its connections.
func (v *visit) daemon(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client, err := operator.Dial(ctx, v.config.Socket())
	switch {
	case errors.Is(err, operator.ErrNoDaemon):
		return []Check{v.absent(ctx)}
	case err != nil:
		return []Check{{Name: "daemon", State: Warning, Words: err.Error()}}
	}
	defer client.Close()
	state, err := client.Status(ctx)
	if err != nil {
		return []Check{{Name: "daemon", State: Fault, Words: "has its socket, and gives no answer: " + err.Error()}}
	}
	all := []Check{{Name: "daemon", State: OK, Words: "runs, and takes messages"}}
	if !state.Ready {
		all[0].State, all[0].Words = Fault, "runs, and its store takes no messages: "+state.Store.Error
	}
	for _, w := range state.Workspaces {
		all = append(all, v.connection(w))
	}
	return all
}

// absent returns the finding of a configuration whose daemon does not run. A program at the address of listen is in its way.
func (v *visit) absent(ctx context.Context) Check {
	const start = "does not run: start it with parley run"
	address := boot.BaseURL(v.config.Listen)
	response, err := get(ctx, http.MethodGet, address+"/readyz")
	if err != nil {
		return v.at("daemon", Warning, "", "listen", start)
	}
	defer response.Body.Close()
	who := "another program"
	var state struct{ Ready *bool }
	if json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&state) == nil && state.Ready != nil {
		who = "the daemon of another configuration"
	}
	return v.at("daemon", Fault, "", "listen", "does not run, and "+who+" has its address "+address+": end that, or change listen")
}

// connection returns the finding about the state of a workspace's connection.
func (v *visit) connection(s operator.WorkspaceStatus) Check {
	check := Check{Name: "connection " + s.ID, State: OK, Words: s.State}
	switch adapters.ConnectionState(s.State) {
	case adapters.Refused:
		check = v.at(check.Name, Fault, s.ID, s.Platform, "the platform refuses it: "+s.Error)
	case adapters.Down:
		check.State, check.Words = Warning, "is down; the daemon tries again: "+s.Error
	default:
		if s.Warning != "" {
			check.State, check.Words = Warning, s.Warning
		}
	}
	return check
}

// The differences of clocks that are a warning, and a fault: Slack's signatures are valid for five minutes.
const (
	someDrift = 10 * time.Second
	muchDrift = 4 * time.Minute
)

// located is the configuration of a platform that has a server.
type located interface{ Server() string }

// clocks compares this machine's clock with that of each server of a platform, by the header Date, which has
// seconds.
func (v *visit) clocks(ctx context.Context) (all []Check) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := map[string]bool{}
	for _, w := range v.config.Workspaces {
		at, ok := w.Config.(located)
		if !ok || asked[at.Server()] {
			continue
		}
		asked[at.Server()] = true
		if drift, ok := v.drift(ctx, at.Server()); ok {
			all = append(all, clock(w.Platform, drift))
		}
	}
	return all
}

// drift returns how much later this machine's clock is than a server's; false if the server tells no time.
func (v *visit) drift(ctx context.Context, server string) (time.Duration, bool) {
	begun := v.Now()
	response, err := get(ctx, http.MethodHead, server)
	if err != nil {
		return 0, false
	}
	_ = response.Body.Close()
	there, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return 0, false
	}
	ended := v.Now()
	early, late := begun.Sub(there)-time.Second, ended.Sub(there) // the second of the header has begun
	switch {
	case early > 0:
		return early, true
	case late < 0:
		return late, true
	}
	return 0, true
}

// clock returns the finding about a difference.
func clock(platform event.Platform, drift time.Duration) Check {
	check := Check{Name: "clock", State: OK, Words: fmt.Sprintf("as that of %s, within a second", platform)}
	if drift != 0 {
		way := "ahead of"
		if drift < 0 {
			way = "behind"
		}
		check.Words = fmt.Sprintf("%v %s that of %s", drift.Abs().Round(time.Second), way, platform)
	}
	switch size := cmp.Compare(drift.Abs(), someDrift) + cmp.Compare(drift.Abs(), muchDrift); {
	case size > 1:
		check.State, check.Words = Fault, check.Words+": set the clock of this machine, with NTP"
	case size > -2:
		check.State, check.Words = Warning, check.Words+": keep the clock of this machine with NTP"
	}
	return check
}
