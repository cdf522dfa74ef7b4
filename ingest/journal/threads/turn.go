package threads

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// Turn is the row of a thread whose turn may be due.
type Turn struct {
	Place
	NextSeq, BegunSeq int64
	ContextFrom       int64 // thread_seq of the last command for a new context; 0: none
	TurnAt            int64 // when the turn, or the unfinished run, is due; 0: none
	Pending, IntakeAt int64
	// Missed says that envelopes wait for messages that the thread has. On PostgreSQL, if a message is recorded while
	// an envelope about it is accepted, neither transaction sees the other's row.
	Missed     bool
	BotChannel string // the workspace and the channel, if a bot asked for the turn
	Agent      string // of the turn, or of the unfinished run
	Question   string // the run whose question the next run gets; empty for none
	History    string // see SetHistory
	Changes    int64  // the thread's number of changes
	Run        Unfinished
}

// Unfinished is the state of a run that has not ended.
type Unfinished struct {
	ID                 string // empty if the thread has none; then the other fields have no meaning
	BegunAt, NotBefore time.Time
	Attempts, Reruns   int64
	ContextFrom        int64
	Question           string
	Taken              bool
	Answer             string // the later answer of its agent; empty for none
}

// missed is the condition of Turn.Missed. Few envelopes wait, so the condition begins with them.
const missed = `EXISTS (SELECT 1 FROM envelopes e WHERE e.workspace = threads.workspace AND e.state = 'pending' AND e.thread IS NULL
	AND EXISTS (SELECT 1 FROM messages m WHERE m.workspace = e.workspace AND m.external_id = e.message_id AND m.thread = threads.id))`

// LockTurn reads the row of a thread whose turn may be due, and locks it as Lock does.
func LockTurn(tx *storage.Txn, claim *Claim) (t Turn) {
	t.Thread = claim.Thread
	if r := &t.Run; !tx.Row(append(t.Place.dest(), &t.NextSeq, &t.BegunSeq, &t.ContextFrom, &t.TurnAt, &t.Pending, &t.IntakeAt, &t.Missed, &t.BotChannel, &t.Agent, &t.Question,
		&t.History, &t.Changes, &r.ID, &r.BegunAt, &r.NotBefore, &r.Attempts, &r.Reruns, &r.ContextFrom, &r.Question, &r.Taken, &r.Answer),
		`SELECT key, uuid, workspace, platform, channel, parent, opened_on, next_seq, begun_seq, context_from, turn_at, pending, intake_at, `+missed+`, bot_channel, agent, question,
			history, changed, run_id, run_begun_at, run_not_before, run_attempts, run_reruns, run_context_from, run_question, run_taken, run_answer
		FROM threads WHERE id = $1 AND fence = $2 FOR UPDATE`, claim.Thread, claim.Fence) {
		tx.Fail(storage.ErrFenced)
	}
	return t
}

// intakeDone is the condition that a thread's intake has recorded what is due at $3, and that no
// envelope waits for the thread to admit it.
const intakeDone = `(pending = 0 OR intake_at IS NULL OR intake_at > $3) AND NOT ` + missed

// RunStands reports whether the messages of an unfinished run are as many as left and have no edit after seen, and whether intake has
// recorded every event of the thread that is due. It fails with ErrFenced if the claim or the run has ended.
func RunStands(ctx context.Context, db *storage.DB, claim *Claim, run string, seen time.Time, left int64) (stands bool, err error) {
	found, err := db.Row(ctx, []any{&stands}, `SELECT run_edited_at <= $5 AND run_left >= $6 AND `+intakeDone+`
		FROM threads WHERE id = $1 AND fence = $2 AND run_id = $4`,
		claim.Thread, claim.Fence, storage.Millis(db.Now()), run, storage.Millis(seen), left)
	return stands, fenced(found, err)
}

// MessageStands is RunStands for a message that waits for a turn, by its row and the time of its last edit.
func MessageStands(ctx context.Context, db *storage.DB, claim *Claim, message int64, editedAt time.Time) (stands bool, err error) {
	found, err := db.Row(ctx, []any{&stands}, `SELECT `+intakeDone+` AND EXISTS (SELECT 1 FROM messages m WHERE m.row = $4 AND m.run IS NULL AND m.edited_at = $5 AND m.deleted_at = 0)
		FROM threads WHERE id = $1 AND fence = $2`,
		claim.Thread, claim.Fence, storage.Millis(db.Now()), message, storage.Millis(editedAt))
	return stands, fenced(found, err)
}

// fenced returns ErrFenced if a read of a claimed thread's row has found none.
func fenced(found bool, err error) error {
	if err == nil && !found {
		return storage.ErrFenced
	}
	return err
}

const (
	// waiting keeps turn_since if a message still waits for a turn in the thread $1.
	waiting = `turn_since = CASE WHEN EXISTS (SELECT 1 FROM messages WHERE thread = $1 AND trigger = 'run' AND run IS NULL) THEN turn_since END`
	// botWaiting keeps bot_channel if a bot's message still waits for a turn.
	botWaiting = `bot_channel = CASE WHEN bot_channel IS NOT NULL THEN (SELECT threads.bot_channel FROM messages
		WHERE messages.thread = threads.id AND messages.trigger = 'run' AND messages.run IS NULL AND messages.author = 'bot' LIMIT 1) END`
)

// EndTurn notes that no message waits for a turn.
func EndTurn(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET turn_at = NULL, turn_since = NULL, bot_channel = NULL WHERE id = $1`, thread)
}

// CheckTurn notes whether a message still waits for a turn.
func CheckTurn(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET `+waiting+` WHERE id = $1`, thread)
}

// SetAgent sets the agent of a thread's turn.
func SetAgent(tx *storage.Txn, thread int64, agent string) {
	tx.Do(`UPDATE threads SET agent = $2 WHERE id = $1`, thread, agent)
}

// SetBegun sets the highest thread_seq of a thread when its last run began.
func SetBegun(tx *storage.Txn, thread, seq int64) {
	tx.Do(`UPDATE threads SET begun_seq = $2 WHERE id = $1`, thread, seq)
}

// Hasten makes the turn, or the unfinished run, of a thread due at a time, if it is due later.
func Hasten(tx *storage.Txn, thread, at int64) {
	tx.Do(`UPDATE threads SET turn_at = $2 WHERE id = $1 AND turn_at > $2`, thread, at)
}

// HastenAll makes each turn due at a time that is due later, in threads without an unfinished run.
func HastenAll(tx *storage.Txn, at int64) {
	tx.Do(`UPDATE threads SET turn_at = $1 WHERE turn_at > $1 AND run_id IS NULL`, at)
}

// AskAgain makes a turn due for messages of a run that has failed. If that was the thread's last run, whose block has the bounds after
// and base, the block of the turn begins where the run's did. The thread keeps the agent of its unfinished run, or of
// the messages that wait already.
func AskAgain(tx *storage.Txn, thread int64, agent string, after, base, now int64) {
	tx.Do(`UPDATE threads SET agent = CASE WHEN run_id IS NULL AND turn_since IS NULL THEN $2 ELSE agent END, turn_since = coalesce(turn_since, $3), turn_at = $3,
		begun_seq = CASE WHEN begun_seq = $5 AND run_id IS NULL THEN CAST($4 AS BIGINT) ELSE begun_seq END WHERE id = $1`,
		thread, agent, now, after, base)
}

// AskPeople gives the next run of a thread the question of a run. Messages that wait are older than the question, and
// have a turn when its time is over.
func AskPeople(tx *storage.Txn, thread int64, run string, until int64) {
	tx.Do(`UPDATE threads SET question = $2, turn_at = CASE WHEN turn_since IS NOT NULL THEN CAST($3 AS BIGINT) END WHERE id = $1`, thread, run, until)
}

// ForgetQuestion takes the question of a thread from its next run.
func ForgetQuestion(tx *storage.Txn, thread, now int64) {
	tx.Do(`UPDATE threads SET question = '', turn_at = CASE WHEN turn_at > $2 THEN $2 ELSE turn_at END WHERE id = $1 AND question <> ''`, thread, now)
}

// Orphans are the due turns of an agent that this node does not know.
type Orphans struct {
	Agent string
	// Due is the time before which they became due, and Ended the greatest end of a lease that is over. See LeasesEnded.
	Due, Ended int64
}

const orphan = `turn_at IS NOT NULL AND agent = $1 AND turn_at <= $2 AND (owner = '' OR lease_until <= $3)`

// TurnAgents returns the agents that have turns or unfinished runs.
func TurnAgents(ctx context.Context, db *storage.DB) ([]string, error) {
	return storage.List(ctx, db, storage.Self[string], `SELECT DISTINCT agent FROM threads WHERE turn_at IS NOT NULL`)
}

// Threads returns the threads of the turns.
func (o Orphans) Threads(ctx context.Context, db *storage.DB) ([]int64, error) {
	return storage.List(ctx, db, storage.Self[int64], `SELECT id FROM threads WHERE `+orphan, o.Agent, o.Due, o.Ended)
}

// Assign gives a thread's turn to an heir, if it is still one of the orphans; it returns false if it is not. A run
// that waits for its agent's later answer becomes due.
func (o Orphans) Assign(tx *storage.Txn, thread int64, heir string, now int64) bool {
	return tx.Exec(`UPDATE threads SET agent = $4, turn_at = CASE WHEN run_taken = 1 AND turn_at > $6 THEN $6 ELSE turn_at END,
		run_not_before = CASE WHEN run_taken = 1 THEN 0 ELSE run_not_before END, run_taken = 0
		WHERE id = $5 AND `+orphan, o.Agent, o.Due, o.Ended, heir, thread, now) > 0
}
