package operator_test

import (
	"errors"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// TestFaultsOfAPause: a pause that would cover nothing, or never end as meant, is refused.
func TestFaultsOfAPause(t *testing.T) {
	s := searched(t)
	for _, c := range []struct{ scope, length, field string }{
		{"", "", ""}, {"acme", "", ""}, {"acme:C06RY3YBSLE", "", ""}, {"acme", "30m", ""}, {"acme", "2w", ""},
		{"acme:general", "", "scope"}, {"acme:#general", "", "scope"}, {"acme:", "", "scope"}, {"elsewhere", "", "scope"}, {"elsewhere:C06RY3YBSLE", "", "scope"}, {"agent:nobody", "", "scope"},
		{"acme", "2", "for"}, {"acme", "0d", "for"}, {"acme", "-1h", "for"}, {"acme", "soon", "for"},
	} {
		made, err := s.Pause(t.Context(), operator.Write{By: "olga"}, operator.NewPause{Scope: c.scope, For: c.length})
		faults, _ := errors.AsType[event.FieldErrors](err)
		if (err == nil) != (c.field == "") || err != nil && (len(faults) != 1 || faults[0].Field != c.field) {
			t.Errorf("%q for %q: %v", c.scope, c.length, err)
		}
		if c.length == "2w" && made.Until.Sub(made.At) != 14*24*time.Hour {
			t.Errorf("a pause of two weeks ends after %s", made.Until.Sub(made.At))
		}
	}
}

// TestAPauseStopsTheRunsInThreads: a pause of a channel also stops the runs in the channel's threads that are channels of their own.
func TestAPauseStopsTheRunsInThreads(t *testing.T) {
	s := searched(t)
	err := s.Journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE threads SET run_id = 'r' || id, run_begun_at = 1, parent = CASE WHEN id = 1 THEN 'C06RY3YBSLE' ELSE '' END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if made, err := s.Pause(t.Context(), operator.Write{By: "olga"}, operator.NewPause{Scope: "acme:C06RY3YBSLE", Now: true}); err != nil || made.Stopped != 1 {
		t.Errorf("stopped: %d, %v", made.Stopped, err)
	}
}

// TestWhyNamesThePause: the reason of a message that came during a pause names the pause that still stands, and the command that ends it.
func TestWhyNamesThePause(t *testing.T) {
	s := searched(t)
	at := time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)
	s.Now = func() time.Time { return at }
	err := s.Journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`UPDATE messages SET reason = 'paused', trigger = 'passive'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	why := func(words, change string) {
		t.Helper()
		w, err := s.Why(t.Context(), operator.OnSocket(""), "acme11")
		if err != nil || w.Words != words || w.Change != change {
			t.Errorf("%q, change: %q, %v", w.Words, w.Change, err)
		}
	}
	by := operator.Write{By: "olga"}
	why("an operator had paused the agent there; no pause covers it now", "")
	for _, pause := range []operator.NewPause{{Scope: "guild"}, {Scope: "acme", For: "2h", Say: "Back at five."}} {
		if _, err := s.Pause(t.Context(), by, pause); err != nil {
			t.Fatal(err)
		}
	}
	why("an operator had paused the agent there; acme is paused since 2026-11-30T15:00:00Z until 2026-11-30T17:00:00Z: Back at five., by olga", "parley resume acme")
}
