package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/adapters/slack/payload"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

// Scale measures start-up time and memory with a large store.
type Scale struct {
	stored, pending int
	wait            time.Duration
}

func (s *Scale) Define(f *rig.FlagSet) {
	f.Number(&s.stored, "stored", 1_000_000, 0, "number of messages in the large store")
	f.Number(&s.pending, "pending", 100_000, 0, "number of pending envelopes in the large store")
	f.Duration(&s.wait, "wait", 10*time.Minute, 0, "time limit for the replies")
}

// idleAfter is the time without load before the measurement of idle memory.
const idleAfter = 3 * time.Second

// Run starts the daemon on a store with many messages and pending envelopes.
func (s *Scale) Run(ctx context.Context, b *rig.Bench) error {
	t, err := trial.New(ctx, b, "large", trial.Setup{})
	if err != nil {
		return err
	}
	daemon, begun := t.Nodes.All[0], time.Now()
	if err := fill(ctx, daemon.StorePath(), s.stored, s.pending, t.Ledger); err != nil {
		return err
	}
	b.Printf("large store: filled in %v\n", figure.Round(begun))
	ready, err := daemon.Start(ctx)
	if err != nil {
		return err
	}
	begun = time.Now()
	if err := t.AwaitPosts(ctx, s.pending, s.wait); err != nil {
		return err
	}
	b.Printf("%d stored, %d pending: ready in %s; all answered %v after that, %v\n", s.stored, s.pending, figure.Millis(ready), figure.Round(begun), t.Nodes.Memory())
	if err := t.Finish(); err != nil {
		return err
	}
	if ready, err = daemon.Start(ctx); err != nil {
		return err
	}
	wake.After(ctx, idleAfter)
	b.Printf("%d stored, none pending: ready in %s, idle %v\n", s.stored+2*s.pending, figure.Millis(ready), t.Nodes.Memory())
	return t.Nodes.Stop()
}

// fillThreads is the number of threads with the stored messages. The pending envelopes
// are in as many other threads.
const fillThreads = 10_000

// fill makes a store like that of a daemon after long use. SQL statements store the
// messages that were answered long ago. The journal accepts the pending envelopes, whose
// messages are in the ledger.
func fill(ctx context.Context, path string, stored, pending int, l *ledger.Ledger) (err error) {
	engine, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	for _, statement := range pastRows() {
		err := engine.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
			_, err := tx.Exec(numbers+statement, int64(stored), int64(fillThreads), time.Now().Add(-240*time.Hour).UnixMilli())
			return err
		})
		if err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return acceptAll(ctx, journal.New(engine, journal.Options{}), pending, l)
}

// numbers is a table with the numbers 1 to $1.
const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) `

// pastRows returns statements that store questions (odd numbers) and answers (even
// numbers) in $2 threads. The first is as old as $3, in Unix milliseconds.
func pastRows() []string {
	return []string{
		`INSERT INTO threads (id, key, uuid, workspace, platform, channel, agent, next_seq, begun_seq)
			SELECT i, 'slack:bench:C0PAST:' || i || '.000000', 'past-' || i, 'bench', 'slack', 'C0PAST', 'echo', $1 / $2 + 2, $1 / $2
			FROM n WHERE i <= $2 AND $3 = $3`,
		`INSERT INTO messages (row, id, thread, seq, workspace, external_id, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at, run, context_after, base_seq)
			SELECT i, 'past-' || i, 1 + (i - 1) / 2 % $2, 1 + (i - 1) / 2 / $2 * 2 + (i - 1) % 2, 'bench', 'C0PAST/' || i || '.000001',
				iif(i % 2, 'slack:U0HUMAN01', 'agent:echo'), iif(i % 2, 'human', 'agent'), iif(i % 2, 'run', 'none'),
				'<@U0BOT> what has been said long ago is number ' || i || ', and somebody may want to read it again',
				CAST('{"source":"slack","sender_id":"slack:U0HUMAN01","sender_display_name":"Human 1","sender_type":"human","channel_external_id":"C0PAST","mention_token":"<@U0HUMAN01>","passive":false,"include_in_memory":true,"trigger_rag":true,"recipient_id":"bot:echo"}' AS BLOB),
				1, 'live', $3 + i, $3 + i, 'past-' || ((i + 1) / 2), iif(i % 2, (i - 1) / 2 / $2 * 2, NULL), 1 + (i - 1) / 2 / $2 * 2
			FROM n`,
		`INSERT INTO envelopes (id, workspace, platform, transport, dedupe_key, kind, thread, message_id, received_at, accepted_at, state, claims, disposition, message, message_uuid, body)
			SELECT i, 'bench', 'slack', 'http', 'message:C0PAST/' || i || '.000001', 'message', 1 + (i - 1) / 2 % $2, 'C0PAST/' || i || '.000001',
				$3 + i, $3 + i, 'done', 0, 'stored', i, 'past-' || i, x''
			FROM n WHERE i % 2`,
		`INSERT INTO runs (id, thread, agent, state, begun_at, answered_at, ended_at, error)
			SELECT 'past-' || ((i + 1) / 2), 1 + (i - 1) / 2 % $2, 'echo', 'done', $3 + i, $3 + i, $3 + i, ''
			FROM n WHERE i % 2`,
		`INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload, state, attempts, created_at, platform_id, due_at, kind)
			SELECT 1 + (i - 1) / 2 % $2, 'past-' || ((i + 1) / 2), 0, 'past-' || i, 'bench', 'C0PAST', i || '.000000', 'an answer', 'sent', 1, $3 + i, 'C0PAST/' || i || '.000002', $3 + i, 'post'
			FROM n WHERE i % 2`,
	}
}

// facts are the facts about the workspace that the daemon knows before the first payload.
type facts struct{}

func (facts) Self() event.Self {
	return event.Self{TeamID: slacktest.Team, UserID: slacktest.BotUser, BotID: slacktest.BotID}
}

func (facts) ChannelType(string) event.ChannelType { return event.ChannelUnknown }

// acceptAll accepts n new messages, as the hook does. It does so concurrently, so the
// journal can group its commits.
func acceptAll(ctx context.Context, j *journal.Journal, n int, l *ledger.Ledger) error {
	conversations := ledger.NewConversations(fillThreads)
	const workers = 64
	errs := make([]error, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += workers {
				errs[worker] = accept(ctx, j, l.Say(conversations[(i/workers%(fillThreads/workers))*workers+worker]))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func accept(ctx context.Context, j *journal.Journal, m *ledger.Message) error {
	m.Revisions[0].Sent = time.Now()
	envelope := event.Envelope{Workspace: rig.Workspace, Platform: event.Slack, Transport: "http", ReceivedAt: time.Now(), Body: m.Slack().Event()}
	keys := payload.Normalizer{}.Keys(envelope, facts{})
	if _, err := j.Envelopes.Accept(ctx, envelopes.AcceptRequest{Envelope: envelope, Keys: keys, LearnChannel: true}); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	m.Revisions[0].Acked = time.Now()
	return nil
}
