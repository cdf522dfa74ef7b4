package runs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

const (
	// spareRunEvents is the number of stored events of a run, without chunks, above stream.MaxKept from
	// which on older ones are removed: many at once.
	spareRunEvents = 500
	// maxRunChunks bounds its chunks: more than an agent says in five minutes.
	maxRunChunks = 20_000
	// keptFor is how long each event is stored at least, so that a live reader gets it.
	keptFor = time.Minute
)

// AnswerActivity returns the activity id of the ANSWER that repeats a run's reply. The chunks
// of the reply have the same one.
func AnswerActivity(run string) string { return run + "/answer" }

// AppendEvents stores messages of a run while it goes on. Chunks are removed when a message
// of their activity is stored, and when the run ends. The oldest messages beyond the run's bound are
// removed; see stream.Keep. COMPLETE and TERMINATED of main are left out: only the run's end stores them. A call
// with an unknown outcome may be repeated with the same messages.
func (r *Runs) AppendEvents(ctx context.Context, claim *threads.Claim, run *Run, messages []stream.Message) error {
	var seq int64
	var told []string
	again, known := run.unclear, max(run.appended, run.EventSeq)
	err := r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		a := appender{Txn: tx, run: run.ID, now: storage.Millis(r.db.Now()), shows: r.db.Shows}
		lockRun(tx, claim, run, a.dest(), appenderColumns)
		if m := messages[len(messages)-1]; !again || !tx.Has(`SELECT 1 FROM run_events WHERE run = $1 AND seq > $2 AND type = $3
			AND workstream = $4 AND activity = $5 AND text = $6`, run.ID, known, int64(m.Type), m.Workstream, m.ActivityID, m.Text) {
			a.append(messages, false)
		}
		seq, told = a.stored.Seq, a.told
	})
	if run.unclear = errors.Is(err, storage.ErrUnclear) || err != nil && again; err == nil {
		run.appended, run.Followed = seq, true
		wake(r.db, append(told, storage.OfRun+run.ID))
	}
	return err
}

// Added are messages that another writer adds to a run.
type Added struct {
	Messages []stream.Message
	// Key is the writer's own key of the request: a request with the same key adds nothing. It is empty
	// for none.
	Key string
	// Most bounds the messages that such writers may add to the run; 0 is no bound.
	Most int64
	// Own means that the run's own agent says them. Its chunks of main without an activity are those of its answer, and the next whole
	// message without one takes them.
	Own bool
	// Answer is the run's later answer behind the messages, nil for none, and AnswerKeys are its keys; see AnswerRun.
	Answer     *stream.Message
	AnswerKeys []string
}

// ErrManyEvents is the error of AddEvents above its bound.
var ErrManyEvents = errors.New("the run has too many messages of other writers")

// AddEvents stores messages that another writer adds to an unfinished run. A whole message that the run
// has already is left out. AddEvents fails with ErrEnded if the run has ended, with ErrNotFound if there
// is none, and with ErrManyEvents; with an answer also as AnswerRun. It stores all of them or none, and a repetition of the answer
// does nothing.
func (r *Runs) AddEvents(ctx context.Context, run string, added Added) error {
	told := []string{storage.OfRun + run}
	err := r.db.Change(ctx, "", func(tx *storage.Txn) {
		a := appender{Txn: tx, run: run, now: storage.Millis(r.db.Now()), shows: r.db.Shows}
		works := tx.Row(a.dest(), `SELECT `+appenderColumns+` FROM threads WHERE run_id = $1 FOR UPDATE`, run)
		key := cmp.Or(added.Key, uuid.Must(uuid.NewV7()).String())
		if tx.Has(`SELECT 1 FROM run_posts WHERE run = $1 AND key = $2`, run, key) {
			return
		}
		if !works && added.Answer != nil {
			answer(tx, run, *added.Answer, added.AnswerKeys, a.now) // it may be a repetition
			return
		}
		if !works {
			failEnded(tx, run)
		}
		seq := a.stored.Seq
		if added.Answer != nil {
			last := *added.Answer
			if slices.ContainsFunc(added.Messages, func(m stream.Message) bool {
				return m.Type == stream.StreamingChunk && a.activity(m) == AnswerActivity(run)
			}) {
				last.ActivityID = cmp.Or(last.ActivityID, AnswerActivity(run))
			}
			last.ActivityID = a.activity(last)
			if !answer(tx, run, last, added.AnswerKeys, a.now) {
				return
			}
		}
		for _, m := range added.Messages {
			if added.Own {
				m.ActivityID = a.activity(m)
			}
			if m = m.WithoutResult(); m.Type == stream.StreamingChunk || !a.has(m) {
				a.append([]stream.Message{m}, false)
			}
		}
		var before, counted int64
		if added.Most > 0 {
			counted = a.stored.Seq - seq
			tx.Row([]any{&before}, `SELECT coalesce(CAST(sum(messages) AS BIGINT), 0) FROM run_posts WHERE run = $1`, run)
		}
		if before+counted > added.Most && added.Most > 0 {
			tx.Fail(ErrManyEvents)
		}
		tx.Do(`INSERT INTO run_posts (run, key, messages, at) VALUES ($1, $2, $3, $4)`, run, key, counted, a.now)
		told = append(told, a.told...)
	})
	if err == nil {
		wake(r.db, told)
	}
	return err
}

// has reports whether the run has a message already.
func (a *appender) has(m stream.Message) bool {
	return a.Txn.Has(`SELECT 1 FROM run_events WHERE run = $1 AND type = $2 AND workstream = $3 AND activity = $4 AND text = $5
		AND (details = $6 OR details IS NULL AND $7 = 0)`, a.run, int64(m.Type), m.Workstream, m.ActivityID, m.Text, event.Shallow(m.Details), int64(len(m.Details)))
}

// activity returns the activity of a message of the run's own agent. One that names none belongs to the run's answer if it is a part of its
// text, or if it takes the parts that are stored.
func (a *appender) activity(m stream.Message) string {
	of := AnswerActivity(a.run)
	if m.ActivityID == "" && m.OfMain() && (m.Type == stream.StreamingChunk ||
		m.Takes() && a.Has(`SELECT 1 FROM run_events WHERE run = $1 AND type = 12 AND activity = $2`, a.run, of)) {
		return of
	}
	return m.ActivityID
}

// appender adds events to a run, whose thread's row the transaction has locked. So the seqs
// of a run's events are committed in order.
type appender struct {
	*storage.Txn
	run    string
	now    int64
	thread int64
	stored threads.Events
	key    event.ThreadKey
	told   []string // the words that wake the readers of the runs and threads above it

	workspace, agent string
	shows            func(workspace, agent, messages string) bool // as storage.DB.Shows
}

const appenderColumns = `key, id, run_seq, run_events, run_event_at, run_dropped, workspace, agent`

func (a *appender) dest() []any {
	return []any{(*string)(&a.key), &a.thread, &a.stored.Seq, &a.stored.Count, &a.stored.At, &a.stored.Dropped, &a.workspace, &a.agent}
}

// append stores messages, without the results of tools, and with details that every reader can read: see event.Shallow.
// ends means that the run ends with them. The times of a run's
// events differ and rise, because clients order by them and continue behind them.
func (a *appender) append(messages []stream.Message, ends bool) {
	seq := a.stored.Seq
	for _, m := range messages {
		m = m.WithoutResult()
		chunk := m.Type == stream.StreamingChunk
		if m.Ends() && !ends {
			continue
		}
		if m.ActivityID != "" && !chunk && a.stored.Seq > a.stored.Count {
			a.Do(`DELETE FROM run_events WHERE run = $1 AND type = 12 AND activity = $2`, a.run, m.ActivityID)
		}
		a.stored.Seq++
		a.stored.Count += 1 - storage.Number(chunk)
		a.stored.At = max(a.now, a.stored.At+1)
		var details any
		if len(m.Details) > 0 {
			details = event.Shallow(m.Details)
		}
		a.Do(`INSERT INTO run_events (run, seq, type, workstream, activity, text, details, final, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			a.run, a.stored.Seq, int64(m.Type), m.Workstream, m.ActivityID, m.Text, details, storage.Number(m.Final), a.stored.At)
	}
	if a.stored.Seq > seq {
		a.evict()
		threads.SetEvents(a.Txn, a.thread, a.stored)
	}
	a.state(messages)
	if !ends {
		a.tellAbove(messages, false)
	}
}

// state notes that the run's messages change its state post. A PLAN begins one.
func (a *appender) state(messages []stream.Message) {
	if a.shows == nil || event.IsWorkstream(a.key) {
		return
	}
	var plans, changes bool
	for _, m := range messages {
		plans = plans || m.OfMain() && m.Type == stream.Plan
		changes = changes || m.OfMain() && IsStated(m.Type)
	}
	if changes {
		outbox.StateChanged(a.Txn, a.run, a.now, plans && a.shows(a.workspace, a.agent, "plan"))
	}
}

// evict removes the oldest events of a run beyond its bounds, but none that a live reader may not have.
func (a *appender) evict() {
	before := a.now - keptFor.Milliseconds()
	if a.stored.Seq-a.stored.Count > maxRunChunks {
		a.Do(`DELETE FROM run_events WHERE run = $1 AND type = 12 AND seq <= $2 AND at < $3`, a.run, a.stored.Seq-maxRunChunks, before)
	}
	excess := a.stored.Count - a.stored.Dropped - stream.MaxKept
	if excess < spareRunEvents {
		return
	}
	for _, types := range []string{`type IN (` + passing + `)`, `type NOT IN (` + passing + `, ` + lasting + `)`} {
		if excess > 0 {
			n := a.Exec(`DELETE FROM run_events WHERE run = $1 AND seq IN (SELECT seq FROM run_events WHERE run = $1 AND type <> 12 AND at < $2 AND `+
				types+` ORDER BY seq LIMIT CAST($3 AS BIGINT))`, a.run, before, excess)
			excess, a.stored.Dropped = excess-n, a.stored.Dropped+n
		}
	}
}

// passing and lasting are the types of stream.Passing and stream.Lasting.
var passing, lasting = numbers(stream.Passing()), numbers(stream.Lasting())

func numbers(types []stream.Type) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = strconv.FormatInt(int64(t), 10)
	}
	return strings.Join(list, ", ")
}

// events stores the messages that are not stored yet, at the end of a run. It leaves out
// those that readers compose from the run's row and its reply: see Page.
func (e *endRunTx) events(events []stream.Message, state State, reply string) {
	repeats := func(m stream.Message) bool {
		return m.OfMain() && m.Text == reply && len(m.Details) == 0 && (m.ActivityID == "" || m.ActivityID == AnswerActivity(e.run.ID))
	}
	e.tellAbove(events, state, reply)
	kept := slices.DeleteFunc(slices.Clone(events), func(m stream.Message) bool {
		return m.Ends() && (state != Done || len(m.Details) == 0 && (m.Text == "" || m.Text == reply))
	})
	if state == Done && !slices.ContainsFunc(kept, stream.Message.Ends) { // otherwise the ANSWER has its place before the last message
		kept = slices.DeleteFunc(kept, func(m stream.Message) bool { return m.Type == stream.Answer && repeats(m) })
	}
	if len(kept) == 0 {
		return
	}
	a := appender{Txn: e.Txn, run: e.run.ID, now: e.now, shows: e.shows}
	e.Row(a.dest(), `SELECT `+appenderColumns+` FROM threads WHERE id = $1`, e.run.Thread)
	a.append(kept, true)
}

// replaceChunks replaces the chunks of an attempt that has ended, because the next one begins its
// texts again, as other activities. Those of its workstreams go on. Clients replace chunks by a THOUGHT of their
// activity. It returns the seq of the run's last event.
func (b *beginRunTx) replaceChunks(run *Run) (last int64) {
	again := storage.Rows(b.Txn, func(m *stream.Message) []any { return []any{&m.Workstream, &m.ActivityID} },
		`SELECT workstream, activity FROM run_events WHERE run = $1 AND type = 12 AND activity <> '' AND `+ownChunks+` GROUP BY workstream, activity ORDER BY min(seq)`, run.ID)
	for i := range again {
		again[i].Type, again[i].Text = stream.Thought, "The answer begins again."
	}
	a := appender{Txn: b.Txn, run: run.ID, now: b.now}
	b.Row(a.dest(), `SELECT `+appenderColumns+` FROM threads WHERE id = $1`, run.Thread)
	b.Do(`DELETE FROM run_events WHERE run = $1 AND type = 12 AND `+ownChunks, run.ID)
	a.append(again, false)
	return a.stored.Seq
}

// ownChunks matches the events of a run's own agent, and none of its workstreams.
const ownChunks = `NOT EXISTS (SELECT 1 FROM workstreams w WHERE w.id = run_events.workstream)`

// dropChunks removes the chunks of a run.
func dropChunks(tx *storage.Txn, run string) {
	tx.Do(`DELETE FROM run_events WHERE run = $1 AND type = 12`, run)
}

// RunEnded wakes the readers of a run that has ended and of its thread, those on other nodes if tell is set, and removes the run's
// chunks. If that fails, readers leave them out, and retention removes them.
func RunEnded(ctx context.Context, db *storage.DB, run string, thread int64, tell bool, chunks int64) {
	runChanged(db, run, tell)
	threads.ThreadChanged(db, thread, tell)
	if chunks > 0 {
		_ = db.Change(ctx, "", func(tx *storage.Txn) { dropChunks(tx, run) })
	}
}

// DeleteEvents deletes the events of a run.
func DeleteEvents(tx *storage.Txn, run string) {
	tx.Do(`DELETE FROM run_events WHERE run = $1`, run)
}
