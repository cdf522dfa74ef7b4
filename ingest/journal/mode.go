package journal

import (
	"context"

	"parley/ingest/event"
)

// ThreadMode says which messages of a thread trigger runs.
type ThreadMode string

// The modes of threads.
const (
	ModeOpen           ThreadMode = "open"            // those that the policy admits
	ModeInvocationOnly ThreadMode = "invocation_only" // of those, only mentions of an agent
)

// SetThreadMode sets the mode of a thread. It returns ErrNotFound if there is no such thread.
func (j *Journal) SetThreadMode(ctx context.Context, key event.ThreadKey, mode ThreadMode) error {
	return j.change(ctx, key, func(tx *txn) {
		tx.must(ErrNotFound, `UPDATE threads SET mode = $2 WHERE key = $1`, string(key), string(mode))
	})
}

// ThreadMode returns the mode of a thread. It returns ErrNotFound if there is no such thread.
func (j *Journal) ThreadMode(ctx context.Context, key event.ThreadKey) (mode ThreadMode, err error) {
	found, err := j.row(ctx, []any{(*string)(&mode)}, `SELECT mode FROM threads WHERE key = $1`, string(key))
	if err == nil && !found {
		err = ErrNotFound
	}
	return mode, err
}

// InvocationOnly implements Look.
func (r *recordTx) InvocationOnly() bool { return r.thread.mode == ModeInvocationOnly }
