package threads

import (
	"time"

	"parley/ingest/journal/storage"
)

// Beginning is a run that begins with messages that wait.
type Beginning struct {
	Run      string
	BaseSeq  int64  // the thread's highest thread_seq
	Messages int64  // that it has
	Bot      string // the workspace and the channel, if a bot asked; else empty
	More     bool   // messages are left for a further turn
}

// BeginRun makes a run that begins the thread's unfinished run. It has the thread's question.
func BeginRun(tx *storage.Txn, thread int64, b Beginning, now int64) {
	var since any
	if b.More {
		since = now
	}
	tx.Do(`UPDATE threads SET run_context_from = context_from, run_question = question, question = '', run_id = $2, begun_seq = $3, turn_since = $4, run_begun_at = $5, run_not_before = 0,
		run_attempts = 0, run_fence = fence, run_claims = 0, run_reruns = 0, run_left = $6, run_edited_at = 0, run_bot_channel = $7`+noEvents+`,
		`+botWaiting+` WHERE id = $1`, thread, b.Run, b.BaseSeq, since, now, b.Messages, storage.Optional(b.Bot))
}

// Resumed is the row of a thread whose unfinished run is resumed.
type Resumed struct {
	Claims   int64 // that ended with their process while they worked on the run
	EventSeq int64 // the seq of the run's last event
	Left     int64 // messages of the run that are not deleted
}

// ResumeRun counts the claim that worked on a thread's unfinished run before, if its process ended, and notes that the present one
// works on it, if the run has fewer than most of such claims. It sets row now or later; see storage.Tx.
func ResumeRun(tx *storage.Txn, thread, most int64, row *Resumed) {
	const claims = `run_claims + CASE WHEN run_fence IN (0, fence) THEN 0 ELSE 1 END`
	tx.Later(nil, []any{&row.Claims, &row.EventSeq, &row.Left}, `UPDATE threads SET run_claims = `+claims+`, run_fence = CASE WHEN `+claims+` < $2 THEN fence ELSE 0 END
		WHERE id = $1 RETURNING run_claims, run_seq, run_left`, thread, most)
}

// JoinRun notes that a message has joined the unfinished run, by its row and the time of its edit that the agent has seen. It is one
// that the run answers, if it counts.
func JoinRun(tx *storage.Txn, thread, message int64, seen time.Time, counts bool) {
	tx.Do(`UPDATE threads SET run_left = run_left + $4, `+botWaiting+`,
		run_edited_at = coalesce((SELECT edited_at FROM messages WHERE row = $2 AND edited_at > $3), run_edited_at),
		`+waiting+` WHERE id = $1`, thread, message, storage.Millis(seen), storage.Number(counts))
}

// CountBot makes the unfinished run one of a bot, whose message has joined it.
func CountBot(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET run_bot_channel = coalesce(run_bot_channel, bot_channel) WHERE id = $1`, thread)
}

// RepeatRun makes the unfinished run due again, with the messages that have joined it up to the thread_seq base.
func RepeatRun(tx *storage.Txn, thread int64, run string, base, now int64) {
	tx.Do(`UPDATE threads SET run_reruns = run_reruns + 1, begun_seq = $3, turn_at = $4, `+waiting+`, `+botWaiting+`, run_edited_at = 0, run_taken = 0, run_answer = NULL,
		run_left = (SELECT count(*) FROM messages WHERE run = $2 AND deleted_at = 0) WHERE id = $1`, thread, run, base, now)
}

// TakeRun notes that the agent has taken the unfinished run, or not after all. The transaction fails with ErrFenced if the claim or
// the run has ended.
func TakeRun(tx *storage.Txn, claim *Claim, run string, taken bool) {
	tx.Must(storage.ErrFenced, `UPDATE threads SET run_taken = $4 WHERE id = $1 AND fence = $2 AND run_id = $3`, claim.Thread, claim.Fence, run, storage.Number(taken))
}

// AnswerRun stores the later answer of an unfinished run, which makes the run due. It returns false if no thread has the run, or if
// the run has an answer.
func AnswerRun(tx *storage.Txn, run, answer string, now int64) bool {
	return tx.Exec(`UPDATE threads SET run_taken = 1, run_answer = $3, run_not_before = 0, turn_at = CASE WHEN turn_at > $2 THEN $2 ELSE coalesce(turn_at, $2) END
		WHERE run_id = $1 AND run_answer IS NULL`, run, now, answer) > 0
}

// NudgeRun makes an unfinished run due that its agent has taken and that waits.
func NudgeRun(tx *storage.Txn, run string, now int64) {
	tx.Do(`UPDATE threads SET run_not_before = 0, turn_at = CASE WHEN turn_at > $2 THEN $2 ELSE coalesce(turn_at, $2) END
		WHERE run_id = $1 AND run_taken = 1 AND run_answer IS NULL AND run_not_before > $2`, run, now)
}

// Events describes the stored events of an unfinished run.
type Events struct {
	Seq     int64 // of the last one
	Count   int64 // without chunks
	At      int64 // the time of the last one
	Dropped int64 // those without chunks that were removed
}

// SetEvents stores the state of the events of a thread's unfinished run.
func SetEvents(tx *storage.Txn, thread int64, e Events) {
	tx.Do(`UPDATE threads SET run_seq = $2, run_events = $3, run_event_at = $4, run_dropped = $5 WHERE id = $1`, thread, e.Seq, e.Count, e.At, e.Dropped)
}

// PostponeRun leaves the unfinished run to another attempt at a time; if that is 0, its time stays. failed counts the attempt as a
// failed one, and taken notes that the agent has taken the run. It sets next to the time of the attempt, now or later; see storage.Tx.
func PostponeRun(tx *storage.Txn, thread, at int64, failed, taken bool, now int64, next *time.Time) {
	tx.Later(nil, []any{next}, `UPDATE threads SET run_attempts = run_attempts + $3, run_fence = 0, run_taken = CASE WHEN $5 = 1 THEN 1 ELSE run_taken END,
		run_not_before = CASE WHEN CAST($2 AS BIGINT) > 0 THEN $2 ELSE run_not_before END,
		turn_at = CASE WHEN $2 > 0 THEN $2 WHEN run_not_before > $4 THEN run_not_before ELSE $4 END
		WHERE id = $1 RETURNING turn_at`, thread, at, storage.Number(failed), now, storage.Number(taken))
}

// EndRun ends the thread's run, and counts new messages of the thread. The next turn is due if messages wait for one. It
// sets more, which says so, and the number of stored chunks of the run, now or later; see storage.Tx.
func EndRun(tx *storage.Txn, thread, messages, now int64, more *bool, chunks *int64) {
	tx.Later(nil, []any{more, chunks}, `UPDATE threads SET run_id = NULL, run_bot_channel = NULL, run_answer = NULL,
		next_seq = next_seq + $2, last_at = CASE WHEN $2 > 0 THEN $3 ELSE last_at END,
		turn_at = CASE WHEN turn_since IS NULL THEN NULL ELSE turn_at END WHERE id = $1
		RETURNING turn_since IS NOT NULL, run_seq - run_events`, thread, messages, now)
}

// ReleaseRun ends the thread's run and makes a turn due at once that has its messages and its question. The block of the turn begins after
// the thread_seq begun. It sets the number of stored chunks of the run, now or later; see storage.Tx.
func ReleaseRun(tx *storage.Txn, thread, begun, now int64, chunks *int64) {
	tx.Later(nil, []any{chunks}, `UPDATE threads SET run_id = NULL, run_bot_channel = NULL, run_answer = NULL, begun_seq = $2, turn_since = coalesce(turn_since, $3), turn_at = $3,
		question = CASE WHEN run_question <> '' THEN run_question ELSE question END
		WHERE id = $1 RETURNING run_seq - run_events`, thread, begun, now)
}
