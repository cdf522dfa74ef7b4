package postgres_test

import (
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
)

// TestAThreadIsGivenBackAlthoughTheConnectionBreaks: a node that stops leaves no
// thread to the end of its lease, whichever way its COMMIT was lost.
func TestAThreadIsGivenBackAlthoughTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]verdict{"before the server has COMMIT": cut, "before its answer": deaf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := through(t, database(t))
			e := engine(t, postgres.Options{URL: p.url})
			j := journal.New(e, journal.Options{Node: "leaving", Lease: time.Minute, Now: time.Now})
			custody, err := j.Accept(t.Context(), journal.Acceptance{Claim: true,
				Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, ReceivedAt: time.Now(), Body: []byte(`{}`)},
				Keys:     event.Keys{Kind: event.KindMessage, Dedupe: "1", Thread: "slack:acme:C1:1"}})
			if err != nil || custody.Fence == 0 {
				t.Fatal(custody, err)
			}
			p.set(at("COMMIT", what))
			if err := j.Release(t.Context(), []journal.Lease{{Thread: custody.Thread, Key: custody.Key, Fence: custody.Fence}}); err != nil {
				t.Error(err)
			}
			held := int64(1)
			if err := e.Read(t.Context(), func(tx journal.Tx) error {
				_, err := tx.Row([]any{&held}, `SELECT count(*) FROM threads WHERE owner <> ''`)
				return err
			}); err != nil || held != 0 {
				t.Errorf("%d threads are still held, %v", held, err)
			}
		})
	}
}
