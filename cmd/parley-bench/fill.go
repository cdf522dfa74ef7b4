package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// fillThreads is how many threads share what a filled store holds, and again as
// many what waits there.
const fillThreads = 10_000

// fill makes a store as the daemon would have left it: messages that were
// answered long ago, in SQL, and envelopes that wait for intake, through the
// journal. The latter are in the ledger.
func fill(ctx context.Context, path string, stored, pending int, l *ledger) (err error) {
	engine, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	for _, statement := range past() {
		err := engine.Write(ctx, journal.WriteOptions{}, func(tx journal.Tx) error {
			_, err := tx.Exec(numbers+statement, int64(stored), int64(fillThreads), time.Now().Add(-240*time.Hour).UnixMilli())
			return err
		})
		if err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return accept(ctx, journal.New(engine, journal.Options{}), pending, l)
}

// numbers are 1 to ?1.
const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) `

// past are the rows of questions (odd) and answers (even), in ?2 threads, since ?3.
func past() []string {
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
		`INSERT INTO envelopes (id, workspace, platform, transport, dedupe_key, kind, thread, subject, received_at, accepted_at, state, claims, disposition, message, message_id, body)
			SELECT i, 'bench', 'slack', 'http', 'message:C0PAST/' || i || '.000001', 'message', 1 + (i - 1) / 2 % $2, 'C0PAST/' || i || '.000001',
				$3 + i, $3 + i, 'done', 0, 'stored', i, 'past-' || i, x''
			FROM n WHERE i % 2`,
		`INSERT INTO runs (id, thread, agent, sender_id, state, attempts, begun_at, answered_at, ended_at, error)
			SELECT 'past-' || ((i + 1) / 2), 1 + (i - 1) / 2 % $2, 'echo', 'slack:U0HUMAN01', 'done', 0, $3 + i, $3 + i, $3 + i, ''
			FROM n WHERE i % 2`,
		`INSERT INTO deliveries (thread, run, part, key, workspace, channel, root, payload, state, attempts, created_at, platform_id, due_at, kind)
			SELECT 1 + (i - 1) / 2 % $2, 'past-' || ((i + 1) / 2), 0, 'past-' || i, 'bench', 'C0PAST', i || '.000000', 'an answer', 'sent', 1, $3 + i, 'C0PAST/' || i || '.000002', $3 + i, 'post'
			FROM n WHERE i % 2`,
	}
}

// facts are what is known before the first payload.
type facts struct{}

func (facts) Self() event.Self {
	return event.Self{TeamID: slacktest.Team, UserID: slacktest.BotUser, BotID: slacktest.BotID}
}

func (facts) ChannelType(string) event.ChannelType { return event.ChannelUnknown }

// accept takes custody of n new messages, as the hook does.
func accept(ctx context.Context, j *journal.Journal, n int, l *ledger) error {
	conversations := make([]*conversation, fillThreads)
	for i := range conversations {
		conversations[i] = newConversation(i)
	}
	const hands = 64
	errs := make([]error, hands)
	var group sync.WaitGroup
	for hand := range hands {
		group.Go(func() {
			for i := hand; i < n && errs[hand] == nil; i += hands {
				errs[hand] = acceptOne(ctx, j, l.say(conversations[(i/hands%(fillThreads/hands))*hands+hand]))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func acceptOne(ctx context.Context, j *journal.Journal, m *message) error {
	m.revisions[0].sent = time.Now()
	envelope := event.Envelope{Workspace: workspace, Platform: event.Slack, Transport: "http", ReceivedAt: time.Now(), Body: m.said()}
	keys := slack.Normalizer{Workspace: workspace}.Keys(envelope, facts{})
	if _, err := j.Accept(ctx, journal.AcceptRequest{Envelope: envelope, Keys: keys, LearnChannel: true}); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	m.revisions[0].acked = time.Now()
	return nil
}
