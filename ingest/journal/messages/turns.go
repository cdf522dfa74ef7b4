package messages

import (
	"slices"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// forAgent is the condition that a message waits for a run of an agent: $1 is the thread,
// $2 the agent.
const forAgent = `thread = $1 AND trigger = 'run' AND run IS NULL AND agent = $2`

// incomplete is the condition that files of a run's messages, or the rest of one of them, came after
// its input was read. The arguments are a thread, its run and the number of files in the input.
func incomplete(thread, run, files string) string {
	return `(SELECT CAST(coalesce(sum(files), 0) AS BIGINT) FROM messages WHERE author <> 'agent' AND run = ` + run + `) > ` + files + `
		OR EXISTS (SELECT 1 FROM messages WHERE thread = ` + thread + ` AND ` + rest(run) + `)`
}

// IsIncomplete reports whether files of a run's messages, or the rest of one of them, came after its input was read, which has so many
// files.
func IsIncomplete(tx *storage.Txn, thread int64, run string, files int64) bool {
	return tx.Has(`SELECT 1 FROM threads WHERE id = $1 AND (`+incomplete(`$1`, `$2`, `$3`)+`)`, thread, run, files)
}

// rest is the condition that a message is the rest of one of a run's.
func rest(run string) string { return `trigger = 'run' AND run IS NULL AND continues = ` + run }

// joins is the condition that a message may join a run: $1 is the thread, $2 the run's agent, $3
// the message's row, or null for any. A message that came with an id for its run has a run of its
// own. If the run is one of those, named, only reports of workstreams join it.
func joins(named bool) string {
	condition := forAgent + ` AND client_run_id IS NULL AND row = coalesce($3, row)`
	if named {
		condition += ` AND reason = '` + string(event.ReasonWorkstream) + `'`
	}
	return condition
}

// Joinable returns the messages that may join an unfinished run, by time: those that wait for its agent, or the reports of workstreams among
// them if the run is named; see runs.Run.
func Joinable(tx *storage.Txn, thread int64, agent, run string, named bool) []Message {
	return lines(tx, joins(named)+` AND EXISTS (SELECT 1 FROM threads WHERE id = $1 AND run_id = $4) ORDER BY m.sent_at, m.seq`, thread, agent, nil, run)
}

// AsksAfter reports whether a message after a thread_seq waits for an agent, other than the prompt of a schedule and the report of a workstream.
func AsksAfter(tx *storage.Txn, thread int64, agent string, seq int64) bool {
	return tx.Has(`SELECT 1 FROM messages WHERE `+forAgent+` AND seq > $3 AND reason NOT IN ($4, $5) LIMIT 1`, thread, agent, seq, string(event.ReasonWorkstream), string(event.ReasonSchedule))
}

// IsWaiting reports whether the message with a row waits for a turn of a thread.
func IsWaiting(tx *storage.Txn, thread, row int64) bool {
	return tx.Has(`SELECT 1 FROM messages WHERE row = $2 AND `+waits, thread, row)
}

// CountWaiting returns the number of messages that wait for a turn of a thread.
func CountWaiting(tx *storage.Txn, thread int64) (n int64) {
	tx.Row([]any{&n}, `SELECT count(*) FROM messages WHERE `+waits, thread)
	return n
}

// JoinsWaiting reports whether a message for an agent gets one run with those that wait in a thread: the newest of them, without the
// one with a row, is for the same agent, and came without an id for its run.
func JoinsWaiting(tx *storage.Txn, thread int64, agent string, row int64) (joins bool) {
	tx.Row([]any{&joins}, `SELECT CASE WHEN agent = $2 AND client_run_id IS NULL THEN 1 ELSE 0 END FROM messages WHERE `+waits+` AND row <> $3
		ORDER BY sent_at DESC, seq DESC LIMIT 1`, thread, agent, row)
	return joins
}

// waits is the condition that a message waits for a turn: $1 is the thread.
const waits = `thread = $1 AND trigger = 'run' AND run IS NULL`

// RowsOf returns the rows of a thread's messages, in their order.
func RowsOf(tx *storage.Txn, thread int64) []int64 {
	return storage.Rows(tx, storage.Self[int64], `SELECT row FROM messages WHERE thread = $1 AND seq IS NOT NULL ORDER BY seq`, thread)
}

// Move moves a message of a turn that has ended to another thread, with a thread_seq. The block of its turn begins after
// the thread_seq after.
func Move(tx *storage.Txn, row, thread, after, seq int64) {
	tx.Do(`UPDATE messages SET thread = $2, seq = $3, context_after = $4, base_seq = $3 WHERE row = $1`, row, thread, seq, after)
}

// ofPeople is the condition that a message is the one with the row $2, or that a person wrote it; any message if $2 is 0.
const ofPeople = ` AND (CAST($2 AS BIGINT) = 0 OR row = $2 OR author = 'human' AND external_id NOT LIKE 'injected:%')`

// Waiting returns at most limit messages of a thread that wait for a turn, the earliest one first: all of them, or only the answer
// to a question with its row and those that people have written themselves.
func Waiting(tx *storage.Txn, thread, answer int64, limit int) []Message {
	return lines(tx, `m.thread = $1 AND m.trigger = 'run' AND m.run IS NULL`+ofPeople+` ORDER BY m.sent_at, m.seq LIMIT CAST($3 AS BIGINT)`,
		thread, answer, int64(limit))
}

// Bounds are the bounds of the block of a turn.
type Bounds struct {
	After, Base int64
	Gap         bool // some earlier messages could not be read
}

// TakeUpTo gives a run the messages that Waiting returns, from the first one, which gets the bounds of the turn's block, up to the last one.
func TakeUpTo(tx *storage.Txn, thread, answer int64, run string, first, last *Message, block Bounds) {
	tx.Do(`UPDATE messages SET run = $3, context_after = CASE WHEN row = $6 THEN CAST($7 AS BIGINT) ELSE context_after END,
		base_seq = CASE WHEN row = $6 THEN CAST($8 AS BIGINT) ELSE base_seq END, gap = CASE WHEN row = $6 THEN CAST($9 AS BIGINT) ELSE gap END
		WHERE thread = $1 AND trigger = 'run' AND run IS NULL AND (sent_at < $4 OR (sent_at = $4 AND seq <= $5))`+ofPeople,
		thread, answer, run, storage.Millis(last.SentAt), last.Seq, first.Row, block.After, block.Base, storage.Number(block.Gap))
}

// TakeRest gives a run the rest of its messages.
func TakeRest(tx *storage.Txn, thread int64, run string) {
	tx.Do(`UPDATE messages SET run = $2 WHERE thread = $1 AND `+rest(`$2`), thread, run)
}

// TakeJoining gives a run the messages that may join it, or the one with a row. It returns their number, and whether one of
// them is a bot's.
func TakeJoining(tx *storage.Txn, thread int64, agent string, row any, run string, named bool) (n int, bots bool) {
	authors := storage.Rows(tx, storage.Self[string], `UPDATE messages SET run = $4 WHERE `+joins(named)+` RETURNING author`, thread, agent, row, run)
	return len(authors), slices.Contains(authors, string(ByBot))
}

// TakeAll gives a run all messages that wait in a thread.
func TakeAll(tx *storage.Txn, thread int64, run string) {
	tx.Do(`UPDATE messages SET run = $2 WHERE `+waits, thread, run)
}

// ForgetReports lets the reports wait no more that a thread's next turn would answer: those of a run's workstreams, or of all if run is
// empty. They stay in the thread, for later runs to see. It returns their number.
func ForgetReports(tx *storage.Txn, thread int64, run string) int64 {
	return tx.Exec(`UPDATE messages SET trigger = 'passive' WHERE `+waits+` AND reason = $3
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
	tx.Do(`UPDATE messages SET agent = $3 WHERE `+forAgent, thread, agent, heir)
}

// AskAgain lets the messages of a run that has failed wait again: those that asked for a run, also a schedule's and the report of a workstream,
// without deleted ones. It returns their number.
func AskAgain(tx *storage.Txn, run string) int64 {
	return tx.Exec(`UPDATE messages SET context_after = NULL, base_seq = NULL, gap = 0, run = NULL
		WHERE run = $1 AND trigger = 'run' AND deleted_at = 0`, run)
}
