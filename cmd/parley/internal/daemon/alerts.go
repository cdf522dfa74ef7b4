package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"parley/adapters"
	"parley/adapters/supervise"
	"parley/cmd/parley/internal/doctor"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// alertsEvery is the time between two looks for troubles. A trouble has ended that two looks do not see.
	alertsEvery = 15 * time.Second
	// alertsName names the lease of the node that tells of troubles, and what it has told, in the state of no workspace.
	alertsName = "alerts"
	// alertsBy is the author of the messages.
	alertsBy = "operator:alerts"
	// maxAlert bounds the words of a trouble, in characters.
	maxAlert = 300
)

// trouble is something that an operator should know.
type trouble struct{ Kind, Of, Words string }

// told is what was told of a trouble.
type told struct {
	Since time.Time `json:"since"`         // when the trouble was first seen
	At    time.Time `json:"at,omitzero"`   // when it was told last
	Gone  time.Time `json:"gone,omitzero"` // when a look did not see it any more
	Words string    `json:"words"`
}

// watchTroubles tells operators of troubles in the place that the configuration names. Of the nodes that share a store, one at a time
// does.
func (d *Daemon) watchTroubles(ctx context.Context) error {
	isSet := func() bool { return d.Setup().Config.Alerts.To.Workspace != "" }
	watch := func(ctx context.Context) error {
		for isSet() && wake.After(ctx, d.alertsEvery) {
			if err := d.tellTroubles(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("operators cannot be told of troubles", "err", err)
			}
		}
		return nil
	}
	lease := supervise.Lease{Store: d.Journal.Threads, Name: alertsName, Log: d.log}
	for wake.After(ctx, d.alertsEvery) {
		err := error(nil)
		switch {
		case !isSet(): // until a reload
		case d.shared:
			err = lease.While(ctx, watch)
		default:
			err = watch(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellTroubles tells of the troubles that have begun, that go on for long, and that have ended, each time once.
func (d *Daemon) tellTroubles(ctx context.Context) error {
	alerts := d.Setup().Config.Alerts
	if alerts.To.Workspace == "" || d.operator == nil {
		return nil
	}
	status, err := d.operator.Status(ctx)
	if err != nil {
		return err
	}
	state := d.Journal.Threads.AdapterState("")
	value, err := state.Get(ctx, alertsName)
	known := map[string]*told{}
	if err == nil && value != "" {
		err = json.Unmarshal([]byte(value), &known)
	}
	if err != nil {
		return err
	}
	now, seen := d.now().UTC(), map[string]bool{}
	for _, t := range d.troubles(&status) {
		if !slices.Contains(alerts.On, t.Kind) {
			continue
		}
		key := strings.TrimRight(t.Kind+"/"+t.Of, "/")
		seen[key] = true
		if known[key] == nil {
			known[key] = &told{Since: now}
		}
		known[key].Words, known[key].Gone = t.Words, time.Time{}
	}
	for _, key := range unknownAfterStart(&status) {
		seen[key] = known[key] != nil // it may go on
	}
	if value, err = d.keepTold(ctx, known, value); err != nil { // so that a repetition has the same key
		return err
	}
	var failed error
	for key, t := range known {
		switch {
		case !seen[key] && t.Gone.IsZero():
			t.Gone = now
			continue
		case !seen[key] && !t.At.IsZero():
			if err := d.tellOperators(ctx, alerts.To, "Over: "+t.Words, fmt.Sprint(key, " over ", t.Since.UnixMilli())); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			delete(known, key)
		case !seen[key]: // it was never told
			delete(known, key)
		case t.At.IsZero() || now.Sub(t.At) >= alerts.Every:
			if err := d.tellOperators(ctx, alerts.To, "Trouble: "+t.Words, fmt.Sprint(key, " ", t.Since.UnixMilli(), " ", t.At.UnixMilli())); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			t.At = now
		}
	}
	_, err = d.keepTold(ctx, known, value)
	return errors.Join(failed, err)
}

// unknownAfterStart returns the keys of the troubles of which this process cannot tell yet whether they go on: those of agents that it
// has not asked, and of connections that begin.
func unknownAfterStart(st *operator.Status) (keys []string) {
	for _, a := range st.Agents {
		if a.Since.IsZero() {
			keys = append(keys, config.AlertAgent+"/"+a.ID)
		}
	}
	for _, w := range st.Workspaces {
		if w.State == string(adapters.Starting) {
			keys = append(keys, config.AlertConnection+"/"+w.ID)
		}
	}
	return keys
}

// keepTold stores what was told if it is not the stored value, and returns it as a value.
func (d *Daemon) keepTold(ctx context.Context, known map[string]*told, stored string) (string, error) {
	raw, _ := json.Marshal(known) // texts and times always encode
	if string(raw) == stored || stored == "" && len(known) == 0 {
		return stored, nil
	}
	return string(raw), d.Journal.Threads.AdapterState("").Put(ctx, alertsName, string(raw))
}

// tellOperators posts a text to operators. Words of others in it are no markup.
func (d *Daemon) tellOperators(ctx context.Context, to config.AlertsTo, text, key string) error {
	_, _, err := d.outbox.Speak(ctx, adapters.Speech{
		Workspace: to.Workspace, To: adapters.Target{Channel: to.Channel, User: to.User}, Text: text, By: alertsBy, Key: key,
	})
	return err
}

// troubles returns what is wrong now.
func (d *Daemon) troubles(st *operator.Status) (list []trouble) {
	add := func(kind, of, format string, args ...any) {
		list = append(list, trouble{kind, of, fmt.Sprintf(format, args...)})
	}
	for _, w := range st.Workspaces {
		if w.Broken() {
			add(config.AlertConnection, w.ID, "workspace %s is %s: %s", w.ID, w.State, quotedWords(w.Error))
		}
		if w.Warning != "" {
			add(config.AlertExclusive, w.ID, "workspace %s: %s", w.ID, w.Warning)
		}
	}
	for _, a := range st.Agents {
		if a.Failing() {
			add(config.AlertAgent, a.ID, "agent %s fails: %s", a.ID, quotedWords(a.LastError))
		}
	}
	if n := st.Needs.Dead; n > 0 {
		add(config.AlertDeadLetter, "", "dead letters: %d (parley dead)", n)
	}
	if n := st.Needs.FailedDeliveries + st.Needs.UnknownDeliveries; n > 0 {
		add(config.AlertDelivery, "", "posts that failed, or whose result is unknown: %d (parley deliveries)", n)
	}
	if err := d.files.Trouble(); err != nil {
		add(config.AlertDisk, "files", "files of messages cannot be stored: %s", quotedWords(err.Error()))
	}
	store := d.Setup().Config.Store
	if store.Engine == config.SQLite {
		if free, err := doctor.FreeSpace(filepath.Dir(store.Path)); err == nil && free < doctor.LowSpace {
			add(config.AlertDisk, "store", "the disk of the store has %s left", humanize.IBytes(free))
		}
	}
	return list
}

// quotedWords returns words of others as code, which is no markup.
func quotedWords(text string) string {
	line := event.Line(strings.ReplaceAll(text, "`", "'"), maxAlert)
	if line == "" {
		return "no reason is known"
	}
	return "`" + line + "`"
}
