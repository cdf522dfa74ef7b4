package player

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"parley/adapters/replay"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/wake"
)

// TestARunEndsBeforeItsMessageIsReported checks that the result of a message has its run in both orders.
func TestARunEndsBeforeItsMessageIsReported(t *testing.T) {
	t.Parallel()
	message := messages.Message{Row: 7}
	recorded := record.Result{Result: event.Result{Disposition: event.Stored}, TurnAt: time.Now(), Message: &message}
	for name, early := range map[string]bool{"before": true, "after": false} {
		var out bytes.Buffer
		p := &player{Recording: Recording{Out: &out, JSON: true}, envelopes: map[int64]*replay.Result{}, repeats: map[int64][]*replay.Result{},
			asked: map[int64]*replay.Result{}, early: map[int64]func(*replay.Result){}, changed: wake.NewSignal(), results: make([]*replay.Result, 1)}
		p.place(1, p.result(3))
		end := func() {
			p.RunEnded(&runs.Run{Messages: []messages.Message{message}}, turn.Report{Outcome: turn.Answered, Input: assembly.Input{Messages: []assembly.Message{{Role: assembly.RoleUser}}}})
		}
		if early {
			end()
		}
		p.Processed(&envelopes.Pending{ID: 3}, recorded)
		if !early {
			end()
		}
		if err := p.print(false); err != nil || !strings.Contains(out.String(), `"assembled":[{`) {
			t.Errorf("%s: %v, %q", name, err, out.String())
		}
	}
}
