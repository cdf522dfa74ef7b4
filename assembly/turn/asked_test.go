package turn_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// TestAttemptsAreKept checks what the journal keeps of each request of a run.
func TestAttemptsAreKept(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		inBubble(t, func(d *fixture) { d.settings.KeepInputs = keeps }, func(d *fixture) {
			begun := time.Now()
			d.agent.does = []script{fails(errors.New("503 busy")), func(ctx context.Context, emit func(stream.Message) error) error {
				d.agent.inputs[1].Measure(assembly.Usage{Finish: "stop", TokensIn: 7, TokensOut: 2})
				return thinks(time.Second, "Hello.")(ctx, emit)
			}}
			d.asks("1", "hi")
			pass(time.Minute)
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Answered})
			same(t, "reported", d.reports[1].Usage, assembly.Usage{Finish: "stop", TokensIn: 7, TokensOut: 2})

			input, err := json.Marshal(d.agent.inputs[0].Messages)
			d.must(err)
			sum := sha256.Sum256(input)
			hash, at := hex.EncodeToString(sum[:]), func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond).UTC() }
			run, err := d.journal.Listing.FindRun(d.Context(), d.runs[0].ID)
			d.must(err)
			same(t, "attempts", run.Attempts, []listing.Attempt{
				{N: 1, Node: "node1", BegunAt: at(0), EndedAt: at(0), Error: "503 busy", InputSHA256: hash},
				{N: 2, Node: "node1", BegunAt: at(1000), FirstAt: at(2000), EndedAt: at(2000), InputSHA256: hash, TokensIn: 7, TokensOut: 2, Finish: "stop"},
			})
			_, kept, err := d.journal.Listing.KeptInput(d.Context(), run.ID)
			if keeps {
				d.must(err)
				same(t, "kept", kept, string(input))
			} else if err == nil {
				t.Errorf("the input %s is kept", kept)
			}
		})
	}
}

// TestTheAttemptOfAStoppedRunIsKept although the journal has ended the run before.
func TestTheAttemptOfAStoppedRunIsKept(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{untilEnd(fails(nil))}
		d.asks("1", "one")
		pass(time.Second)
		d.asks("2", "/stop")
		pass(time.Second)
		run, err := d.journal.Listing.FindRun(d.Context(), d.runs[0].ID)
		d.must(err)
		if len(run.Attempts) != 1 || run.Attempts[0].Error == "" || run.State != "cancelled" {
			t.Errorf("the run is %+v", run)
		}
	})
}

// TestTokensArePaid checks that each attempt pays for its tokens from the counters of the sender and of the workspace: one that failed, one whose agent
// reports them among its answer's keys, and one during which the process stops.
func TestTokensArePaid(t *testing.T) {
	inBubble(t, func(d *fixture) { d.settings.Tokens = budgets.Tokens{PerUser: 1000, PerWorkspace: 1000} }, func(d *fixture) {
		measures := func(n int64, then script) script {
			return func(ctx context.Context, emit func(stream.Message) error) error {
				d.agent.inputs[len(d.agent.inputs)-1].Measure(assembly.Usage{TokensIn: n, TokensOut: 1})
				return then(ctx, emit)
			}
		}
		own := func(_ context.Context, emit func(stream.Message) error) error {
			return emit(stream.Message{Type: stream.Answer, Text: "Hello.", Details: []byte(`{"usage":{"inputTokens":400,"outputTokens":1}}`)})
		}
		d.agent.does = []script{measures(100, fails(errors.New("503 busy"))), own, measures(50, thinks(time.Hour, "late")), measures(7, answers("Hello."))}
		d.asks("1", "hi")
		pass(time.Minute)
		d.asks("2", "ho")
		pass(time.Second)
		d.stop()
		d.work()
		pass(time.Minute)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Answered, turn.LeftOff, turn.Answered})
		payer, _ := d.runs[0].Cause()
		paid := []int64{}
		d.must(d.engine.Read(d.Context(), func(tx storage.Tx) error {
			return tx.Rows(func(scan func(...any) error) error {
				var n int64
				err := scan(&n)
				paid = append(paid, n)
				return err
			}, `SELECT runs FROM budgets WHERE name IN ('all tokens', $1) ORDER BY name`, "tokens of "+payer)
		}))
		same(t, "paid", paid, []int64{561, 561})
	})
}
