package journal

import (
	"context"

	"github.com/google/uuid"
)

// runID returns the id of a new run: the one that the client gave, or a new one if the client
// gave none or another run has it. A run's id is unique in the store, but clients of different
// threads may choose the same.
func (tx *txn) runID(given string) string {
	if given == "" || tx.has(`SELECT 1 FROM messages WHERE run = $1 UNION ALL SELECT 1 FROM runs WHERE id = $1 LIMIT 1`, given) {
		return uuid.Must(uuid.NewV7()).String()
	}
	return given
}

// RunInput returns what a client gave for an unfinished run besides the text: a JSON object; nil
// for nothing.
func (j *Journal) RunInput(ctx context.Context, run *Run) (input []byte, err error) {
	if run.Named {
		_, err = j.row(ctx, []any{&input}, `SELECT run_input FROM messages WHERE run = $1`, run.ID) // its only message
	}
	return input, err
}

// NamedRun returns the id of the run that a client of a workspace asked for under an id of its
// own; empty if it has not begun. The client is madeBy, which has made the thread. The thread is
// the one with the UUID threadID; if that is empty, the newest with such a run. NamedRun fails
// with ErrNotFound if there is none.
func (j *Journal) NamedRun(ctx context.Context, workspace, madeBy, threadID, name string) (run string, err error) {
	err = j.one(ctx, []any{&run}, `SELECT coalesce(m.run, '') FROM messages m JOIN threads t ON t.id = m.thread
		WHERE m.client_run_id = $1 AND t.workspace = $2 AND t.made_by = $4 AND (t.uuid = $3 OR $3 = '') ORDER BY m.row DESC LIMIT 1`,
		name, workspace, threadID, madeBy)
	return run, err
}
