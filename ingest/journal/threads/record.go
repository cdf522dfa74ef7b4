package threads

import (
	"time"

	"parley/ingest/journal/storage"
)

// Change is what one recorded event changes in the row of its thread.
type Change struct {
	Thread, Now int64
	Messages    int64  // new messages with a thread_seq
	Pending     int64  // the change of the number of pending envelopes
	OpenedOn    string // of a new thread: external id of the message of another thread on which it was opened; empty for none
	// Begins is the run that begins with the message; nil for none. No field below applies then.
	Begins *Begins
	// Deleted is the number of deleted messages of the unfinished run, and EditedAt the time of an edit of one of
	// them; 0 for none.
	Deleted, EditedAt int64
	// Due is when the turn of the messages that wait is due; nil if that does not change.
	Due *Due
}

// Begins is a run that begins with its message.
type Begins struct {
	Run, Agent string
	ResumeAt   int64 // from then on any node may resume it
}

// Due is when the turn of messages that wait is due: at At, but no more than Most milliseconds after the first of them came; later if
// a message that came by then waits for its files.
type Due struct {
	At, Most int64
	// Asks is the message that asks for the turn. If it is nil, the time of a turn that waits changes, unless that waits for the
	// answer to a question.
	Asks *Asks
}

// Asks is a message that asks for a turn. The thread keeps the agent of its unfinished run, or of the messages that wait already.
type Asks struct {
	Agent string
	Bot   string // the workspace and the channel, if a bot asks; else empty
	// WaitsForAnswer makes the turn due when the time to answer the thread's question is over, or earlier if the question
	// is closed before.
	WaitsForAnswer bool
}

// Changed is the row of a thread after a Change.
type Changed struct {
	Pending int64
	TurnDue time.Time
	Left    int64 // messages of the unfinished run; unless a run began
	// Of the run that began:
	Place
	History     string // of the thread; see SetHistory
	ContextFrom int64
	Question    string // the id of the run whose question it answers; empty for none
	Changes     int64  // the thread's number of changes
}

// noEvents are the values of a run that begins: no events are stored, and no agent has taken it.
const noEvents = `, run_seq = 0, run_events = 0, run_event_at = 0, run_dropped = 0, run_taken = 0, run_answer = NULL`

const (
	// change counts $2 new messages at the time $3, and changes the number of pending envelopes by $4. A new thread gets the message $5 on
	// which it was opened.
	change = `UPDATE threads SET pending = pending + $4, intake_at = CASE WHEN pending + $4 > 0 THEN CAST($3 AS BIGINT) END,
		next_seq = next_seq + $2, last_at = CASE WHEN $2 > 0 THEN $3 ELSE last_at END, opened_on = CASE WHEN opened_on = '' THEN $5 ELSE opened_on END`
	// changed ends each of the statements.
	changed = ` WHERE id = $1 RETURNING pending, turn_at`

	// changeBegins makes the run $6 of the message the thread's run.
	changeBegins = change + `, run_context_from = context_from, run_question = question, question = '', run_id = $6, agent = $7, turn_at = $8, begun_seq = next_seq, run_begun_at = $3, run_not_before = 0,
		run_attempts = 0, run_fence = fence, run_claims = 0, run_reruns = 0, run_left = 1, run_edited_at = 0, run_bot_channel = NULL` + noEvents + changed +
		`, key, uuid, workspace, platform, channel, parent, opened_on, history, context_from, run_question, changed`

	// changeRun notes $6 deletes, and an edit at $7, of messages of the unfinished run.
	changeRun  = change + `, run_left = run_left - $6, run_edited_at = CASE WHEN $7 > run_edited_at THEN $7 ELSE run_edited_at END`
	changedRun = changed + `, run_left`
	changes    = changeRun + changedRun
	// withdraws makes the unfinished run due if its last message was deleted: it waits for nothing any more, whether for its agent's
	// answer or for another attempt.
	withdraws = changeRun + `, turn_at = CASE WHEN run_left <= $6 THEN $3 ELSE turn_at END, run_not_before = CASE WHEN run_left <= $6 THEN 0 ELSE run_not_before END` + changedRun
	// dueAt is when a turn is due; see Due: at $8, but no more than $9 after the first message that waits.
	dueAt = `(SELECT CASE WHEN files.until > ready.at THEN files.until ELSE ready.at END
		FROM (SELECT CASE WHEN coalesce(turn_since, $3) + $9 < $8 THEN coalesce(turn_since, $3) + $9 ELSE $8 END AS at) AS ready,
			(SELECT max(files_until) AS until FROM messages WHERE thread = $1 AND files_until > 0 AND run IS NULL
				AND created_at <= coalesce(turn_since, $3) + $9) AS files)`
	awaits = changeRun + `, turn_at = CASE WHEN turn_since IS NULL OR question <> '' THEN turn_at ELSE ` + dueAt + ` END` + changedRun
	ask    = changeRun + `, agent = CASE WHEN run_id IS NULL AND turn_since IS NULL THEN $10 ELSE agent END, turn_since = coalesce(turn_since, $3), bot_channel = coalesce($11, bot_channel), turn_at = `
	asks   = ask + dueAt + changedRun
	// asksAfter waits until the question of the thread is closed.
	asksAfter = ask + `coalesce((SELECT until_at FROM questions WHERE run = question), ` + dueAt + `)` + changedRun
)

// Save stores a change. It sets row now or later; see storage.Tx.
func (c *Change) Save(tx *storage.Txn, row *Changed) {
	args := []any{c.Thread, c.Messages, c.Now, c.Pending, c.OpenedOn}
	dest := []any{&row.Pending, &row.TurnDue}
	if b := c.Begins; b != nil {
		row.Place.Thread = c.Thread
		dest = append(append(dest, row.Place.dest()...), &row.History, &row.ContextFrom, &row.Question, &row.Changes)
		tx.Later(nil, dest, changeBegins, append(args, b.Run, b.Agent, b.ResumeAt)...)
		return
	}
	query, args := changes, append(args, c.Deleted, c.EditedAt)
	switch d := c.Due; {
	case d == nil && c.Deleted > 0:
		query = withdraws
	case d == nil:
	case d.Asks == nil:
		query, args = awaits, append(args, d.At, d.Most)
	default:
		if query = asks; d.Asks.WaitsForAnswer {
			query = asksAfter
		}
		args = append(args, d.At, d.Most, d.Asks.Agent, storage.Optional(d.Asks.Bot))
	}
	tx.Later(nil, append(dest, &row.Left), query, args...)
}

// Grow counts a new message of a thread.
func Grow(tx *storage.Txn, thread, now int64) {
	tx.Do(`UPDATE threads SET next_seq = next_seq + 1, last_at = $2 WHERE id = $1`, thread, now)
}

// GrowBefore counts a message of a thread from before the journal knew it.
func GrowBefore(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET next_seq = next_seq + 1 WHERE id = $1`, thread)
}

// Finish sets the next thread_seq of a thread, whose last message has a time, and the highest one when its last run began. The
// messages up to there are of turns that have ended.
func Finish(tx *storage.Txn, thread, nextSeq, last, begun int64) {
	tx.Do(`UPDATE threads SET next_seq = $2, last_at = CASE WHEN last_at < $3 THEN $3 ELSE last_at END, begun_seq = $4 WHERE id = $1`, thread, nextSeq, last, begun)
}

// Empty notes that all messages of a thread were moved to another one.
func Empty(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET last_at = 0 WHERE id = $1`, thread)
}

// OpenOn stores the external id of the message of another thread on which a thread was opened, unless the thread has one already.
func OpenOn(tx *storage.Txn, key, externalID string) {
	tx.Do(`UPDATE threads SET opened_on = $2 WHERE key = $1 AND opened_on = ''`, key, externalID)
}

// CountChange notes that a remembered transcript of a thread no longer holds, because a message got its
// turn without being one that a run begins with. The store does the same after a change of a message.
func CountChange(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET changed = changed + 1 WHERE id = $1`, thread)
}

// SetHistory stores the thread history of a thread. It sets changes to the thread's number of changes, now or later; see storage.Tx.
func SetHistory(tx *storage.Txn, thread int64, history string, changes *int64) {
	tx.Later(nil, []any{changes}, `UPDATE threads SET history = $2 WHERE id = $1 RETURNING changed`, thread, history)
}

// IsQuiet reports whether the last message of a thread is from before a time and visible to later turns, and no run is unfinished.
func IsQuiet(tx *storage.Txn, thread, since int64) bool {
	return tx.Has(`SELECT 1 FROM threads WHERE id = $1 AND last_at > 0 AND last_at < $2 AND run_id IS NULL AND next_seq > context_from + 1`, thread, since)
}

// NewContext lets later turns see nothing from before a thread_seq.
func NewContext(tx *storage.Txn, thread, seq int64) {
	tx.Do(`UPDATE threads SET context_from = $2 WHERE id = $1`, thread, seq)
}
