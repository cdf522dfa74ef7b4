package postgres_test

import (
	"log/slog"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// TestABrokenConnectionReleasesThreads proves that a node that stops releases its threads
// even if it loses the answer to COMMIT.
func TestABrokenConnectionReleasesThreads(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]verdict{"before COMMIT": cut, "before the answer": deaf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := through(t, database(t))
			e := engine(t, postgres.Options{URL: p.url})
			j := journal.New(e, journal.Options{Node: "leaving", Lease: time.Minute, Now: time.Now})
			accepted, err := j.Envelopes.Accept(t.Context(), envelopes.AcceptRequest{Claim: true,
				Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, ReceivedAt: time.Now(), Body: []byte(`{}`)},
				Keys:     event.Keys{Kind: event.KindMessage, Dedupe: "1", Thread: "slack:acme:C1:1"}})
			if err != nil || accepted.Fence == 0 {
				t.Fatal(accepted, err)
			}
			scheduler := work.New(e, work.Options{Node: "leaving", Lease: time.Minute, Log: slog.New(slog.DiscardHandler)})
			p.set(at("COMMIT", what))
			scheduler.Accepted(accepted, nil)
			if err := scheduler.Close(t.Context()); err != nil {
				t.Error(err)
			}
			held := int64(1)
			if err := e.Read(t.Context(), func(tx storage.Tx) error {
				_, err := tx.Row([]any{&held}, `SELECT count(*) FROM threads WHERE owner <> ''`)
				return err
			}); err != nil || held != 0 {
				t.Errorf("%d threads are still claimed, %v", held, err)
			}
		})
	}
}
