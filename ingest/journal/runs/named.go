package runs

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// RunID returns the id of a new run: the one that the client gave, or a new one if the client
// gave none or another run has it. A run's id is unique in the store, but clients of different
// threads may choose the same.
func RunID(tx *storage.Txn, given string) string {
	if given == "" || tx.Has(`SELECT 1 FROM messages WHERE run = $1 UNION ALL SELECT 1 FROM runs WHERE id = $1 LIMIT 1`, given) {
		return uuid.Must(uuid.NewV7()).String()
	}
	return given
}

// AgentID returns the id by which the run's agent knows the run: an id of the journal. A client may
// have chosen the run's ID, and another program may have a run with that id on the agent's server. The
// id of the message that the client gave it with replaces it.
func (run *Run) AgentID() string {
	for i := range run.Messages {
		if m := &run.Messages[i]; m.ClientRunID != "" && m.ClientRunID == run.ID {
			return m.UUID
		}
	}
	return run.ID
}

// AgentID returns the id by which agents know a run of a thread. The run is given by its id or by the
// name that its client gave; an unknown one is returned as it is.
func (r *Runs) AgentID(ctx context.Context, thread int64, run string) (id string, err error) {
	err = r.db.One(ctx, []any{&id}, `SELECT CASE WHEN run = client_run_id THEN id ELSE run END FROM messages
		WHERE client_run_id = $1 AND thread = $2 AND run IS NOT NULL`, run, thread)
	if errors.Is(err, storage.ErrNotFound) {
		return run, nil
	}
	return id, err
}

// knownToAgents is the id of the run that agents know by the id $1; $1 if it is not one of Run.AgentID.
const knownToAgents = `coalesce((SELECT run FROM messages WHERE id = $1 AND client_run_id IS NOT NULL), $1)`

// RunInput returns what a client gave for an unfinished run besides the text: a JSON object; nil
// for nothing.
func (r *Runs) RunInput(ctx context.Context, run *Run) (input []byte, err error) {
	if run.Named {
		_, err = r.db.Row(ctx, []any{&input}, `SELECT run_input FROM messages WHERE run = $1 AND client_run_id IS NOT NULL`, run.ID)
	}
	return input, err
}

// Named is a run that a client asked for under an id of its own.
type Named struct {
	ID       string // empty if it has not begun
	ThreadID string // the thread's UUID
}

// takesPart is the condition that the actor $2 takes part in the thread t.
const takesPart = ` AND EXISTS (SELECT 1 FROM participants p WHERE p.thread = t.id AND p.actor = $2)`

// asked is the condition that a message asked for a run: somebody who takes part in the thread gave
// the run this name. The thread is the one with a UUID; if that is empty, the newest with such a run that
// the actor itself asked for. With a plain JOIN, SQLite would begin with all threads of the workspace.
const asked = ` FROM messages m CROSS JOIN threads t
	WHERE t.id = m.thread AND t.workspace = $1 AND (t.uuid = $3 OR $3 = '' AND m.sender_id = $2) AND m.client_run_id = $4` + takesPart + `
		AND (m.trigger = 'run' OR m.run IS NOT NULL) ORDER BY m.row DESC LIMIT 1`

// accepted is asked for a message that is not recorded yet. In the key, the name follows the 41
// characters of "run:", the UUID and a colon; the index envelopes_run finds it there.
const accepted = ` FROM envelopes e CROSS JOIN threads t
	WHERE e.state = 'pending' AND substr(e.dedupe_key, 1, 4) = 'run:' AND e.workspace = $1 AND substr(e.dedupe_key, 42) = $4
		AND t.id = e.thread AND t.workspace = $1` + takesPart + ` AND (t.uuid = $3 OR $3 = '') AND e.dedupe_key = 'run:' || t.uuid || ':' || $4`

// NamedRun returns the run that a client of a workspace asked for under an id of its own. The
// actor takes part in the thread. The thread is the one with the UUID threadID; if that is empty, the
// newest with such a run that the actor asked for. Without one, it returns the run of any client that its
// agent knows by the name, see Run.AgentID; and then the run that the actor's message with this ClientMessageID in
// the thread asked for. NamedRun fails with ErrNotFound if there is none.
func (r *Runs) NamedRun(ctx context.Context, workspace, actor, threadID, name string) (run Named, err error) {
	err = r.db.One(ctx, []any{&run.ID, &run.ThreadID}, `SELECT * FROM (SELECT m.run, t.uuid`+asked+`) AS recorded
		UNION ALL SELECT * FROM (SELECT NULL, t.uuid`+accepted+`) AS waiting
		UNION ALL SELECT m.run, t.uuid FROM messages m JOIN threads t ON t.id = m.thread
			WHERE m.id = $4 AND m.client_run_id IS NOT NULL AND m.run IS NOT NULL
		UNION ALL SELECT m.run, t.uuid FROM threads t CROSS JOIN messages m
			WHERE t.uuid = $3 AND t.workspace = $1 AND m.thread = t.id AND m.sender_id = $2 AND m.client_message_id = $4
				AND (m.trigger = 'run' OR m.run IS NOT NULL)`+takesPart+` LIMIT 1`, workspace, actor, threadID, name)
	return run, err
}

// IsNameOfSeveral reports whether an actor has asked in several threads for a run under the same id of its own.
func (r *Runs) IsNameOfSeveral(ctx context.Context, workspace, actor, name string) (bool, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) bool {
		var threads int64
		tx.Row([]any{&threads}, `SELECT count(*) FROM (SELECT DISTINCT m.thread FROM messages m CROSS JOIN threads t
			WHERE m.client_run_id = $3 AND m.sender_id = $2 AND t.id = m.thread AND t.workspace = $1 LIMIT 2) AS named`, workspace, actor, name)
		return threads > 1
	})
}

// StopNamedRun ends a run before it begins, because its client wants no answer; see NamedRun. The
// notice, which has no posts, informs the thread. StopNamedRun returns ErrNotFound if no such run
// waits to begin.
func (r *Runs) StopNamedRun(ctx context.Context, workspace, actor, threadID, name string, notice outbox.Notice) error {
	thread, err := storage.Write(ctx, r.db, storage.WriteOptions{}, func(tx *storage.Txn) (thread int64) {
		var message, seq int64
		if !tx.Row([]any{&thread, &message}, `SELECT m.thread, m.row`+asked, workspace, actor, threadID, name) {
			tx.Fail(storage.ErrNotFound)
			return 0
		}
		tx.Row([]any{&seq}, `SELECT next_seq FROM threads WHERE id = $1 FOR UPDATE`, thread)
		run, now := RunID(tx, name), storage.Millis(r.db.Now())
		messages.TakeOne(tx, message, run)
		threads.CountChange(tx, thread)
		tx.Do(insertStopped+`row = $1`, message, run, now, string(Canceled))
		outbox.AddNotice(tx, thread, seq, workspace, run, notice, now)
		threads.Grow(tx, thread, now)
		return thread
	})
	if err == nil {
		threads.ThreadChanged(r.db, thread, true)
	}
	return err
}
