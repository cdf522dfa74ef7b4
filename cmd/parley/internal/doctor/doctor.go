// Package doctor examines the parts of a daemon, and names each fault with its remedy.
//
// It reads the configuration, and asks the store, the platforms, the agents and the running daemon. It
// changes only the modes of files, and only with Options.Fix.
package doctor

import (
	"github.com/dustin/go-humanize"

	"context"
	"slices"
	"time"

	"parley/config"
)

// State is the result of a check.
type State string

// The states.
const (
	OK      State = "ok"
	Warning State = "warning" // the daemon works, and something needs attention
	Fault   State = "fault"   // the daemon cannot work, or a part of it
)

// Check is one finding. File and Line are the place of the key; they are empty and 0 for a finding about no
// key.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Words string `json:"words"`
	Key   string `json:"key"`
	File  string `json:"file"`
	Line  int    `json:"line"`
}

// Options say what Run does.
type Options struct {
	Config string // the path of the configuration; empty as in config.Load
	// Fix corrects the modes of files that others can read or change.
	Fix bool
	// Now is the clock of this machine.
	Now func() time.Time
}

// visit is one run.
type visit struct {
	Options
	config *config.Config
	places config.Places
}

// Run makes all checks at once and returns their findings in a fixed order. If the configuration has
// faults, it finds these, and how the running daemon does.
func Run(ctx context.Context, o Options) []Check {
	c, places, faults := config.ReadPlaces(o.Config)
	v := &visit{o, c, places}
	if len(faults) > 0 {
		return append(fromFaults(Fault, faults), v.daemon(ctx)...)
	}
	parts := []func(context.Context) []Check{v.store, v.daemon, v.clocks, v.asked, v.files, v.backup, v.traces}
	found := make([][]Check, len(parts))
	done := make(chan struct{})
	for i, part := range parts {
		go func() {
			found[i] = part(ctx)
			done <- struct{}{}
		}()
	}
	for range parts {
		<-done
	}
	return append(v.configuration(), slices.Concat(found...)...)
}

// Worst returns the worst state of the checks.
func Worst(checks []Check) State {
	order := []State{OK, Warning, Fault}
	worst := 0
	for _, c := range checks {
		worst = max(worst, slices.Index(order, c.State))
	}
	return order[worst]
}

// configuration returns the warnings of the files, or that there are none. The files' modes are judged
// by files.
func (v *visit) configuration() []Check {
	words := number(int64(len(v.config.Workspaces)), "workspace") + ", " + number(int64(len(v.config.Agents)), "agent")
	return append([]Check{{Name: "configuration", State: OK, Words: words}}, fromFaults(Warning, v.config.Warnings)...)
}

// number returns a number of things, such as "1 agent" or "2 agents".
func number(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return humanize.Comma(n) + " " + thing
}

func fromFaults(state State, faults config.Faults) (all []Check) {
	for _, f := range faults {
		all = append(all, Check{Name: "configuration", State: state, Words: f.Words, Key: f.Key, File: f.File, Line: f.Line})
	}
	return all
}

// at returns a finding about a key of a workspace's file, or of parley.yaml if the workspace is empty.
func (v *visit) at(name string, state State, workspace, key, words string) Check {
	place := v.places.Fault(workspace, key, words)
	return Check{Name: name, State: state, Words: words, Key: key, File: place.File, Line: place.Line}
}

// asked returns what the platforms and the agents say, and whether the daemon could start. Each
// workspace and each agent has at least one finding.
func (v *visit) asked(ctx context.Context) (all []Check) {
	named := map[string]bool{}
	for _, f := range Ask(ctx, v.config) {
		name, state := "start", Warning
		if f.Workspace != "" {
			name = "workspace " + f.Workspace
		} else if f.Agent != "" {
			name = "agent " + f.Agent
		}
		switch {
		case f.Fault:
			state = Fault
		case f.Note && f.Key == "listen": // the daemon's own finding tells whether it is ours
			continue
		case f.Note:
			state = OK
		}
		named[name] = true
		all = append(all, v.at(name, state, f.Workspace, f.Key, f.Words))
	}
	ok := func(name, words string) {
		if !named[name] {
			all = append(all, Check{Name: name, State: OK, Words: words})
		}
	}
	for _, w := range v.config.Workspaces {
		platform, _ := config.Platform(w.Platform) // the configuration is checked
		ok("workspace "+w.ID, platform.Title+": access as needed")
	}
	for _, a := range v.config.Agents {
		ok("agent "+a.ID, a.Kind+": answers")
	}
	return all
}
