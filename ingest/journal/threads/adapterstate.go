package threads

import (
	"context"
	"errors"
	"fmt"

	"parley/ingest/journal/storage"
)

// ErrAdapterState means that a name or a value of an AdapterState is too long.
var ErrAdapterState = errors.New("adapter state")

// The bounds of an adapter's named value, in bytes.
const (
	maxStateName  = 100
	maxStateValue = 64 << 10
)

// AdapterState is a durable store of small named values for the adapter of one workspace.
// All nodes share it. The values are removed with the workspace.
type AdapterState struct {
	db        *storage.DB
	workspace string
}

// AdapterState returns the store of a workspace's adapter.
func (s *Threads) AdapterState(workspace string) AdapterState { return AdapterState{s.db, workspace} }

// Get returns the value of a name. It is empty if none was stored.
func (s AdapterState) Get(ctx context.Context, name string) (value string, err error) {
	_, err = s.db.Row(ctx, []any{&value}, `SELECT value FROM adapter_state WHERE workspace = $1 AND name = $2`, s.workspace, name)
	return value, err
}

// Put stores a value of at most 64 KiB under a name of at most 100 bytes.
func (s AdapterState) Put(ctx context.Context, name, value string) error {
	return s.Update(ctx, name, func(string) string { return value })
}

// Update replaces a value by the result of change, in one transaction, so that concurrent
// updates of a name lose nothing. It may call change several times. The caller must not
// use what change has noted if Update fails, because change may still run.
func (s AdapterState) Update(ctx context.Context, name string, change func(value string) string) error {
	if name == "" || len(name) > maxStateName {
		return fmt.Errorf("%w: the name has %d bytes, must have 1 to %d", ErrAdapterState, len(name), maxStateName)
	}
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		var value string
		tx.Do(`INSERT INTO adapter_state (workspace, name, value) VALUES ($1, $2, '') ON CONFLICT DO NOTHING`, s.workspace, name)
		if !tx.Row([]any{&value}, `SELECT value FROM adapter_state WHERE workspace = $1 AND name = $2 FOR UPDATE`, s.workspace, name) {
			return
		}
		value = change(value)
		if len(value) > maxStateValue {
			tx.Fail(fmt.Errorf("%w: the value of %q has %d bytes, may have %d", ErrAdapterState, name, len(value), maxStateValue))
		}
		tx.Do(`UPDATE adapter_state SET value = $3 WHERE workspace = $1 AND name = $2`, s.workspace, name, value)
	})
}
