package turn

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// BenchmarkWindow reads and assembles a turn's input in threads of different lengths:
// half of the messages are questions, half are answers. Once the window is full, the cost
// does not depend on the length.
func BenchmarkWindow(b *testing.B) {
	for _, stored := range []int{1, 10, 100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(stored), func(b *testing.B) {
			engine, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "window.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer engine.Close()
			long(b, engine, stored)
			j := journal.New(engine, journal.Options{})
			a := &attempt{
				Runner:   New(Parts{Runs: j.Runs, Deliveries: j.Outbox, Workspaces: nobody{}, Agents: nobody{}, Now: time.Now}),
				settings: Settings{Window: assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20}},
				profile:  Profile{ID: "echo"},
				going: &going{run: &runs.Run{
					ID: fmt.Sprint("run-", stored), Place: threads.Place{Thread: 1, ThreadKey: "slack:w:C1:1.000001", Workspace: "w", Platform: event.Slack}, Agent: "echo",
					ContextAfter: int64(stored - 1), BaseSeq: int64(stored),
				}},
			}
			b.ReportAllocs()
			for b.Loop() {
				input, err := a.input(b.Context())
				if err != nil || len(input.Messages) == 0 {
					b.Fatal(len(input.Messages), err)
				}
			}
		})
	}
}

// nobody has neither workspaces nor agents.
type nobody struct{}

func (nobody) Settings(threads.Place) Settings                       { return Settings{} }
func (nobody) Self(*runs.Run) event.Self                             { return event.Self{} }
func (nobody) Sight(context.Context, *runs.Run) (*runs.Sight, error) { return nil, nil }
func (nobody) Profile(string) (Profile, bool)                        { return Profile{}, false }
func (nobody) AgentIDs() []string                                    { return nil }

// long makes a thread whose last message is the turn. The question with thread_seq n,
// and the answer after it, belong to the run "run-n".
func long(b *testing.B, engine storage.Engine, stored int) {
	b.Helper()
	now := time.Now().UnixMilli()
	err := engine.Write(b.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		if _, err := tx.Exec(`INSERT INTO threads (id, key, uuid, workspace, platform, channel) VALUES (1, 'slack:w:C1:1.000001', '', 'w', 'slack', 'C1')`); err != nil {
			return err
		}
		for seq := 1; seq <= stored; seq++ {
			author, sender, run := "human", "slack:U1", seq
			if (stored-seq)%2 == 1 {
				author, sender, run = "agent", "agent:echo", seq-1
			}
			var after, base any // set for the first message of a turn
			if author == "human" {
				after, base = int64(seq-1), int64(seq)
			}
			if _, err := tx.Exec(`INSERT INTO messages (id, thread, seq, workspace, external_id, sender_id, author, trigger, content, metadata, version, origin,
					sent_at, created_at, run, context_after, base_seq)
				VALUES ($1, 1, $2, 'w', $1, $3, $4, 'run', $5, $6, 1, 'live', $7, $7, $8, $9, $10)`,
				fmt.Sprint("message-", seq), int64(seq), sender, author, fmt.Sprintf("this is message number %d, in one sentence of an ordinary length or so", seq),
				[]byte(`{"source":"slack","sender_id":"slack:U1","sender_display_name":"Olivia","sender_type":"human","channel_external_id":"C1","mention_token":"<@U1>","passive":false,"include_in_memory":true,"trigger_rag":true}`),
				now+int64(seq), fmt.Sprint("run-", run), after, base); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
