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
