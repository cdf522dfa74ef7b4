package messages

import (
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// ForAgent is the condition that a message waits for a run of an agent: $1 is the thread,
// $2 the agent.
const ForAgent = `thread = $1 AND trigger = 'run' AND run IS NULL AND agent = $2`

// Incomplete is the condition that files of a run's messages, or the rest of one of them, came after
// its input was read. The arguments are a thread, its run and the number of files in the input.
func Incomplete(thread, run, files string) string {
	return `(SELECT CAST(coalesce(sum(files), 0) AS BIGINT) FROM messages WHERE author <> 'agent' AND run = ` + run + `) > ` + files + `
		OR EXISTS (SELECT 1 FROM messages WHERE thread = ` + thread + ` AND ` + rest(run) + `)`
}

// rest is the condition that a message is the rest of one of a run's.
func rest(run string) string { return `trigger = 'run' AND run IS NULL AND continues = ` + run }

// Joins is the condition that a message may join a run: $1 is the thread, $2 the run's agent, $3
// the message's row, or null for any. A message that came with an id for its run has a run of its
// own. If the run is one of those, named, only reports of workstreams join it.
func Joins(named bool) string {
	condition := ForAgent + ` AND client_run_id IS NULL AND row = coalesce($3, row)`
	if named {
		condition += ` AND reason = '` + string(event.ReasonWorkstream) + `'`
	}
	return condition
}

// OfTurn is the condition that a message m of a run is one of its turn: it asked for the run, or it is the run's answer or one of
// the rows before that. A notice of Parley about the run is not; a report or a prompt of Parley that the run answers is.
const OfTurn = `(m.author <> 'system' OR m.trigger = 'run')`

// Waits is the condition that a message waits for a turn: $1 is the thread.
const Waits = `thread = $1 AND trigger = 'run' AND run IS NULL`

// Grows are the parts of an UPDATE of threads that counts $2 new messages at the time $3.
const Grows = `, next_seq = next_seq + $2, last_at = CASE WHEN $2 > 0 THEN $3 ELSE last_at END`

// Opens is the part of an UPDATE of threads that stores in a new thread the message of another one on
// which it was opened: $5.
const Opens = `, opened_on = CASE WHEN opened_on = '' THEN $5 ELSE opened_on END`

// Grow counts a new message of a thread.
func Grow(tx *storage.Txn, thread, now int64) {
	tx.Do(`UPDATE threads SET next_seq = next_seq + 1, last_at = $2 WHERE id = $1`, thread, now)
}

// GrowBefore counts a message of a thread from before the journal knew it.
func GrowBefore(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET next_seq = next_seq + 1 WHERE id = $1`, thread)
}

// GrowTo sets the next thread_seq of a thread, whose last message has a time.
func GrowTo(tx *storage.Txn, thread, nextSeq, last int64) {
	tx.Do(`UPDATE threads SET next_seq = $2, last_at = CASE WHEN last_at < $3 THEN $3 ELSE last_at END WHERE id = $1`, thread, nextSeq, last)
}

// Emptied notes that all messages of a thread were moved to another one.
func Emptied(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET last_at = 0 WHERE id = $1`, thread)
}

// RowsOf returns the rows of a thread's messages, in their order.
func RowsOf(tx *storage.Txn, thread int64) []int64 {
	return storage.Rows(tx, storage.Self[int64], `SELECT row FROM messages WHERE thread = $1 AND seq IS NOT NULL ORDER BY seq`, thread)
}

// Move moves a message of a turn that has ended to another thread, with a thread_seq. The block of its turn begins after
// the thread_seq after.
func Move(tx *storage.Txn, row, thread, after, seq int64) {
	tx.Do(`UPDATE messages SET thread = $2, seq = $3, context_after = $4, base_seq = $3 WHERE row = $1`, row, thread, seq, after)
}

// Changed notes that a remembered transcript of a thread no longer holds, because a message got its
// turn without being one that a run begins with. The store does the same after a change of a message.
func Changed(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET changed = changed + 1 WHERE id = $1`, thread)
}

// ofPeople is the condition that a message is the one with the row $2, or that a person wrote it; any message if $2 is 0.
const ofPeople = ` AND (CAST($2 AS BIGINT) = 0 OR row = $2 OR author = 'human' AND external_id NOT LIKE 'injected:%')`

// Waiting returns at most limit messages of a thread that wait for a turn, the earliest one first: all of them, or only the answer
// to a question with its row and those that people have written themselves.
func Waiting(tx *storage.Txn, thread, answer int64, limit int) []Message {
	return Lines(tx, `m.thread = $1 AND m.trigger = 'run' AND m.run IS NULL`+ofPeople+` ORDER BY m.sent_at, m.seq LIMIT CAST($3 AS BIGINT)`,
		thread, answer, int64(limit))
}

// TakeUpTo gives a run the messages that Waiting returns, up to one of them.
func TakeUpTo(tx *storage.Txn, thread, answer int64, run string, last *Message) {
	tx.Do(`UPDATE messages SET run = $3 WHERE thread = $1 AND trigger = 'run' AND run IS NULL AND (sent_at < $4 OR (sent_at = $4 AND seq <= $5))`+ofPeople,
		thread, answer, run, storage.Millis(last.SentAt), last.Seq)
}

// Bound stores the bounds of a turn's block with its first message. gap means that some earlier messages
// could not be read.
func Bound(tx *storage.Txn, first *Message, after, base int64, gap bool) {
	tx.Do(`UPDATE messages SET context_after = $2, base_seq = $3, gap = $4 WHERE row = $1`, first.Row, after, base, storage.Number(gap))
}

// TakeRest gives a run the rest of its messages.
func TakeRest(tx *storage.Txn, thread int64, run string) {
	tx.Do(`UPDATE messages SET run = $2 WHERE thread = $1 AND `+rest(`$2`), thread, run)
}

// TakeJoining gives a run the messages that may join it, or the one with a row, and returns their number.
func TakeJoining(tx *storage.Txn, thread int64, agent string, row any, run string, named bool) int64 {
	return tx.Exec(`UPDATE messages SET run = $4 WHERE `+Joins(named), thread, agent, row, run)
}

// TakeAll gives a run all messages that wait in a thread.
func TakeAll(tx *storage.Txn, thread int64, run string) {
	tx.Do(`UPDATE messages SET run = $2 WHERE `+Waits, thread, run)
}

// ForgetReports lets the reports wait no more that a thread's next turn would answer: those of a run's workstreams, or of all if run is
// empty. They stay in the thread, for later runs to see. It returns their number.
func ForgetReports(tx *storage.Txn, thread int64, run string) int64 {
	return tx.Exec(`UPDATE messages SET trigger = 'passive' WHERE `+Waits+` AND reason = $3
		AND (CAST($2 AS TEXT) = '' OR EXISTS (SELECT 1 FROM workstreams w WHERE w.run = $2 AND messages.external_id LIKE w.thread || '/%'))`,
		thread, run, string(event.ReasonWorkstream))
}

// TakeOne gives a run a message that waits. The transaction fails with ErrNotFound if it does not.
func TakeOne(tx *storage.Txn, row int64, run string) {
	tx.Must(storage.ErrNotFound, `UPDATE messages SET run = $2 WHERE row = $1 AND trigger = 'run' AND run IS NULL`, row, run)
}

// GiveBack takes the messages from a run, so that they wait again.
func GiveBack(tx *storage.Txn, run string) {
	tx.Do(`UPDATE messages SET context_after = NULL, base_seq = NULL, gap = 0,
		run = CASE WHEN deleted_at = 0 THEN NULL ELSE run END WHERE run = $1`, run)
}

// MoveBase moves the end of the block of a run's turn.
func MoveBase(tx *storage.Txn, run string, base int64) {
	tx.Do(`UPDATE messages SET base_seq = $2 WHERE run = $1`, run, base)
}

// SetAgent gives the messages that wait for an agent to another one.
func SetAgent(tx *storage.Txn, thread int64, agent, heir string) {
	tx.Do(`UPDATE messages SET agent = $3 WHERE `+ForAgent, thread, agent, heir)
}

// OpenOn stores the external id of the message of another thread on which a thread was opened, unless the thread has one already.
func OpenOn(tx *storage.Txn, thread, externalID string) {
	tx.Do(`UPDATE threads SET opened_on = $2 WHERE key = $1 AND opened_on = ''`, thread, externalID)
}

// ReplyOf is the condition that a message is the reply of a post of ours: $1 is the
// post's workspace, $2 its platform id. The user adds the closing bracket.
const ReplyOf = `author = 'agent' AND run = (SELECT d.run FROM deliveries d WHERE d.workspace = $1 AND d.platform_id = $2`

// AskAgain lets the messages of a run that has failed wait again: those that asked for a run, also a schedule's and the report of a workstream,
// without deleted ones. It returns their number.
func AskAgain(tx *storage.Txn, run string) int64 {
	return tx.Exec(`UPDATE messages SET context_after = NULL, base_seq = NULL, gap = 0, run = NULL
		WHERE run = $1 AND trigger = 'run' AND deleted_at = 0`, run)
}
