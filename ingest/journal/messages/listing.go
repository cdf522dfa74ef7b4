package messages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Freshness shows how much of its thread the agent of a message knew, in thread_seqs.
type Freshness struct {
	event.Known
	ServerSeq int64 // the thread's highest one when the message was submitted
}

// Asked is the run that a message asked for.
type Asked struct {
	ID    string // empty if it has not begun
	State string // queued, running, done, failed, cancelled
	Error string // for people; empty if there is none
	Cause string // of a failed run, for operators; empty if it is not known
}

// Listed is a message in a list of its thread.
type Listed struct {
	Message
	// Freshness is set for replies, and for messages of agents outside Parley.
	Freshness *Freshness
	// Asked is set for messages that ask for a run.
	Asked *Asked

	base, latest, server int64 // of Freshness; -1: unknown
	asked                Asked // with the stored state of the run
}

// Page bounds a list of messages by thread_seq.
type Page struct {
	After  int64 // 0 for the first message
	Before int64 // 0 for no bound; without After, the page ends there
	Limit  int
}

// ThreadMessages returns a page of the messages of a workspace's thread, in order, deleted ones as
// tombstones. A page ends at PageBytes; IsFull tells whether more may follow. It fails with ErrNotFound if there is no such thread.
func (m *Messages) ThreadMessages(ctx context.Context, workspace, threadID string, page Page) ([]Listed, error) {
	return storage.Read(ctx, m.db, func(tx *storage.Txn) []Listed {
		var thread int64
		if !tx.Row([]any{&thread}, `SELECT id FROM threads WHERE uuid = $1 AND workspace = $2`, threadID, workspace) {
			tx.Fail(storage.ErrNotFound)
		}
		if page.Before == 0 || page.After > 0 {
			return list(tx, `m.thread = $1 AND m.seq > $2 AND (m.seq < $3 OR $3 = 0) ORDER BY m.seq LIMIT CAST($4 AS BIGINT)`,
				thread, page.After, page.Before, int64(page.Limit))
		}
		last := list(tx, `m.thread = $1 AND m.seq < $2 ORDER BY m.seq DESC LIMIT CAST($3 AS BIGINT)`, thread, page.Before, int64(page.Limit))
		slices.Reverse(last)
		return last
	})
}

// runStates are the external names of the states of ended runs.
var runStates = map[string]string{
	"done": "done", "quiet": "done", "failed": "failed", "canceled": "cancelled", "dropped": "cancelled", "interrupted": "cancelled",
}

// StateOf returns the external name of the state of a run that has ended; empty for another state.
func StateOf(state string) string { return runStates[state] }

// listedColumns are the columns of a message in a list. A run whose row is too old to be
// stored ended as its reply and its message show.
const listedColumns = messageColumns + `, coalesce(CASE WHEN m.author = 'agent' THEN m.base_seq ELSE m.sender_base_seq END, -1),
		coalesce(m.latest_seen_seq, -1), coalesce(m.server_seq, -1), m.run,
		CASE WHEN m.run IS NULL THEN 'queued' WHEN t.run_id = m.run THEN 'running' ELSE coalesce(r.state, CASE
			WHEN EXISTS (SELECT 1 FROM messages a WHERE a.run = m.run AND a.author = 'agent') THEN 'done'
			WHEN m.deleted_at > 0 THEN 'canceled' ELSE 'failed' END) END,
		CASE WHEN r.state = 'dropped' THEN r.error
			ELSE (SELECT n.content FROM messages n WHERE n.run = m.run AND n.author = 'system' AND n.trigger <> 'run' LIMIT 1) END, CASE WHEN r.state = 'failed' THEN r.error ELSE '' END`

// dest is the scan target for listedColumns.
func (l *Listed) dest() []any {
	return append(l.Message.dest(), &l.base, &l.latest, &l.server, &l.asked.ID, &l.asked.State, &l.asked.Error, &l.asked.Cause)
}

// freshness returns nil for a message of no agent.
func freshness(base, latest, server int64) *Freshness {
	if server < 0 {
		return nil
	}
	fresh := &Freshness{ServerSeq: server}
	if base >= 0 {
		fresh.BaseSeq = &base
	}
	if latest >= 0 {
		fresh.LatestSeenSeq = &latest
	}
	return fresh
}

// ByRow returns the message with a row, as a list shows it; nil for none.
func ByRow(tx *storage.Txn, row int64) *Listed {
	if found := list(tx, `m.row = $1`, row); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// list reads messages, m in the condition, with the facts that a list shows.
func list(tx *storage.Txn, where string, args ...any) []Listed {
	listed := storage.UpTo(tx, func(m *Listed) int { return m.Size() }, (*Listed).dest, `SELECT `+listedColumns+`
		FROM messages m JOIN threads t ON t.id = m.thread LEFT JOIN runs r ON r.id = m.run WHERE `+where, args...)
	for i := range listed {
		l := &listed[i]
		unpack(tx, &l.Message)
		LoadFiles(tx, &l.Message)
		l.Freshness = freshness(l.base, l.latest, l.server)
		if l.Trigger == TriggerRun {
			asked := l.asked
			asked.State = cmp.Or(StateOf(asked.State), asked.State)
			l.Asked = &asked
		}
	}
	return listed
}

// ThreadSummary describes a thread in a list.
type ThreadSummary struct {
	ID       string // its UUID
	Key      event.ThreadKey
	LastAt   time.Time // when its last message was recorded
	Messages int64     // its highest thread_seq
	First    Message   // its first message with a text, for the title and the right to see the title
	row      int64
}

// Cursor is the thread's position in the order of a workspace's threads.
func (s *ThreadSummary) Cursor() string { return threads.Cursor(s.LastAt, s.row) }

// Threads returns the threads of a workspace that have messages, the last active first. It
// begins after the thread with the given Cursor; the first page has none.
func (m *Messages) Threads(ctx context.Context, workspace, before string, limit int) ([]ThreadSummary, error) {
	at, row, err := threads.ReadCursor(before)
	if err != nil {
		return nil, err
	}
	// A message without a thread_seq has no text. The query names the thread_seq for its index.
	return storage.ReadOne(ctx, m.db, func(tx *storage.Txn) []ThreadSummary {
		return storage.UpTo(tx, (*ThreadSummary).size, func(s *ThreadSummary) []any {
			return []any{&s.row, &s.ID, (*string)(&s.Key), &s.LastAt, &s.Messages, &s.First.Content, &s.First.Metadata, &s.First.Version,
				&s.First.Seq, &s.First.ExternalID, &s.First.SenderID, (*string)(&s.First.Author), &s.First.Memory, &s.First.Run}
		}, `SELECT t.id, t.uuid, t.key, t.last_at, t.next_seq - 1, m.content, m.metadata, coalesce(m.version, 1),
			m.seq, m.external_id, m.sender_id, m.author, m.memory, m.run
		FROM threads t LEFT JOIN messages m ON m.row = (SELECT f.row FROM messages f WHERE f.thread = t.id AND f.seq IS NOT NULL
			AND f.content <> '' AND f.author <> 'system' ORDER BY f.seq LIMIT 1)
		WHERE t.workspace = $1 AND t.last_at > 0 AND (t.last_at, t.id) < ($3, $4) ORDER BY t.last_at DESC, t.id DESC LIMIT CAST($2 AS BIGINT)`,
			workspace, int64(limit), at, row)
	})
}
