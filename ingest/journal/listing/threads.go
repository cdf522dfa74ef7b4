package listing

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Thread is a thread as an operator sees it.
type Thread struct {
	Row       int64
	ID        string // its UUID
	Key       event.ThreadKey
	Workspace string
	Platform  event.Platform
	Channel   string
	Type      event.ChannelType // of the channel
	// Room says that the thread is in a room. The others are direct or group messages, or of a
	// channel whose type is not known.
	Room    bool
	Agent   string    // of the turn that is due, or of the unfinished run; empty for none
	Run     string    // the unfinished run; empty for none
	LastAt  time.Time // when its last message was recorded; zero if none was
	Newest  int64     // its highest thread_seq
	Pending int64     // envelopes without a result yet
	Last    string    // the state of the newest run that has ended, as in Run; empty for none
	First   messages.Message
}

// Cursor is the thread's position in the order of AllThreads.
func (t *Thread) Cursor() string { return threads.Cursor(t.LastAt, t.Row) }

func (t *Thread) size() int { return t.First.Size() }

func (t *Thread) dest() []any {
	return []any{&t.Row, &t.ID, (*string)(&t.Key), &t.Workspace, (*string)(&t.Platform), &t.Channel, &t.Room, &t.Agent, &t.Run, &t.LastAt, &t.Newest, &t.Pending,
		(*string)(&t.Type), &t.Last, &t.First.Content, &t.First.Metadata, &t.First.Version}
}

// threadQuery reads threads, t in the condition, each with its first message that has a text. The
// channel of a thread that is a channel itself, as on Discord, has a parent.
const threadQuery = `SELECT t.id, t.uuid, t.key, t.workspace, t.platform, t.channel,
	` + ofRoom + `,
	CASE WHEN t.run_id IS NOT NULL OR t.turn_since IS NOT NULL THEN t.agent ELSE '' END, coalesce(t.run_id, ''), t.last_at,
	t.next_seq - 1, t.pending, ` + channelType + `,
	coalesce((SELECT r.state FROM runs r WHERE r.id = (SELECT l.run FROM messages l WHERE l.thread = t.id AND l.seq > t.next_seq - 20 AND l.run IS NOT NULL ORDER BY l.seq DESC LIMIT 1)), ''), m.content, m.metadata, coalesce(m.version, 1)
	FROM threads t LEFT JOIN messages m ON m.row = (SELECT f.row FROM messages f WHERE f.thread = t.id AND f.seq IS NOT NULL
		AND f.content <> '' AND f.author <> 'system' ORDER BY f.seq LIMIT 1) WHERE `

// ThreadFilter chooses threads. An empty field chooses all.
type ThreadFilter struct {
	Workspaces   []string
	Channel      string // the thread's own, or the parent of that
	Agent        string // of its newest turn or run
	State        ThreadState
	Since, Until time.Time // of the last message
	Before       string    // the next of the page before; empty for the first page
	Limit        int
}

// ThreadState is a state by which threads are listed.
type ThreadState string

// The states of threads.
const (
	ThreadRunning ThreadState = "running" // an agent works on it
	ThreadQueued  ThreadState = "queued"  // a turn is due
	ThreadAsking  ThreadState = "asking"  // an agent waits for an answer of its people
	ThreadFailed  ThreadState = "failed"  // it has a failed run
)

// ThreadStates returns the states by which threads are listed.
func ThreadStates() []ThreadState {
	return []ThreadState{ThreadRunning, ThreadQueued, ThreadAsking, ThreadFailed}
}

// threadMatches is the condition of a ThreadFilter, without its workspaces and positions; see args.
const threadMatches = ` AND t.last_at >= $1 AND t.last_at <= $2 AND ($3 = '' OR $3 IN (t.channel, t.parent)) AND ($4 = '' OR t.agent = $4)
	AND ($5 = '' OR $5 = 'running' AND t.run_id IS NOT NULL OR $5 = 'queued' AND t.turn_since IS NOT NULL AND t.run_id IS NULL
		OR $5 = 'asking' AND t.id IN (SELECT q.thread FROM questions q WHERE q.state = 'open' AND q.until_at > $6 LIMIT ` + mostCounted + `)
		OR $5 = 'failed' AND t.id IN (SELECT r.thread FROM runs r WHERE r.state = 'failed' AND r.ended_at >= $1 ORDER BY r.ended_at DESC LIMIT ` + mostCounted + `))`

// args are the arguments of threadMatches.
func (f *ThreadFilter) args(l *Listing) []any {
	until := int64(math.MaxInt64)
	if !f.Until.IsZero() {
		until = storage.Millis(f.Until)
	}
	return []any{storage.Millis(f.Since), until, f.Channel, f.Agent, string(f.State), storage.Millis(l.db.Now())}
}

// AllThreads returns a page of the threads that have messages, the last active first. next is the position of the page after it; empty if
// there is none. With a filter, a page looks at the next CountLimit threads of each workspace, so it may have fewer than Limit threads, or
// none, before the last one.
func (l *Listing) AllThreads(ctx context.Context, f ThreadFilter) (list []Thread, next string, err error) {
	at, row, err := threads.ReadCursor(f.Before)
	if err != nil {
		return nil, "", err
	}
	if !f.Until.IsZero() {
		at = min(at, storage.Millis(f.Until)+1)
	}
	list, err = storage.Read(ctx, l.db, func(tx *storage.Txn) (list []Thread) {
		more, floor := false, Thread{} // the page ends before floor
		next = ""
		for _, workspace := range f.Workspaces {
			var last Thread // the first one that is not looked at
			if f.chooses() {
				tx.Row([]any{&last.LastAt, &last.Row}, `SELECT last_at, id FROM threads WHERE workspace = $1 AND last_at > 0 AND (last_at, id) < ($2, $3)
					ORDER BY last_at DESC, id DESC LIMIT 1 OFFSET `+mostCounted, workspace, at, row)
			}
			page := storage.UpTo(tx, (*Thread).size, (*Thread).dest, threadQuery+`t.workspace = $7 AND t.last_at > 0 AND (t.last_at, t.id) < ($8, $9)
				AND (t.last_at, t.id) > ($10, $11)`+threadMatches+` ORDER BY t.last_at DESC, t.id DESC LIMIT CAST($12 AS BIGINT)`,
				append(f.args(l), workspace, at, row, storage.Millis(last.LastAt), last.Row, int64(f.Limit))...)
			more = more || storage.IsFull(page, f.Limit, (*Thread).size)
			list = newest(append(list, page...), f.Limit)
			if last.Row > 0 && !last.LastAt.Before(f.Since) && (floor.Row == 0 || later(last, floor) < 0) {
				floor = last
			}
		}
		if floor.Row > 0 {
			list = slices.DeleteFunc(list, func(t Thread) bool { return later(t, floor) >= 0 })
		}
		switch {
		case len(list) > 0 && (more || len(list) == f.Limit):
			next = list[len(list)-1].Cursor()
		case floor.Row > 0:
			next = threads.Cursor(floor.LastAt, floor.Row+1)
		}
		return list
	})
	return list, next, err
}

// chooses reports whether the filter leaves out threads of the page.
func (f *ThreadFilter) chooses() bool { return f.Channel != "" || f.Agent != "" || f.State != "" }

// later compares the positions of threads in the order of AllThreads.
func later(a, b Thread) int { return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(b.Row, a.Row)) }

// newest returns the first threads in the order of AllThreads.
func newest(list []Thread, limit int) []Thread {
	slices.SortFunc(list, later)
	return list[:min(limit, len(list))]
}

// ThreadOf returns the thread with a UUID or a key. It fails with ErrNotFound if there is none.
func (l *Listing) ThreadOf(ctx context.Context, ref string) (t Thread, err error) {
	err = l.db.One(ctx, t.dest(), threadQuery+`t.id = coalesce((SELECT id FROM threads WHERE key = $1), (SELECT max(id) FROM threads WHERE uuid = $1))`, ref)
	return t, err
}

// ThreadsOf returns those of the threads with some UUIDs that a filter chooses, in the order of the UUIDs. It does not look at the bounds of
// the filter's page.
func (l *Listing) ThreadsOf(ctx context.Context, uuids []string, f ThreadFilter) ([]Thread, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) (list []Thread) {
		for _, uuid := range uuids {
			for _, t := range storage.Rows(tx, (*Thread).dest, threadQuery+`t.id = (SELECT max(id) FROM threads WHERE uuid = $7)`+threadMatches, append(f.args(l), uuid)...) {
				if slices.Contains(f.Workspaces, t.Workspace) {
					list = append(list, t)
				}
			}
		}
		return list
	})
}
