package threads

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/ingest/journal/storage"
)

// Configured records which workspaces this node has configured. Any other workspace
// counts as removed, until a node that has it calls Configured. It writes again if the outcome of
// a write is not known, because the daemon's start fails with it.
func (s *Threads) Configured(ctx context.Context, workspaces []string) error {
	for {
		err := s.db.Change(ctx, "", func(tx *storage.Txn) {
			for _, id := range slices.Sorted(slices.Values(workspaces)) {
				tx.Do(`INSERT INTO workspaces (id, self) VALUES ($1, '')
					ON CONFLICT (id) DO UPDATE SET removed_at = 0 WHERE workspaces.removed_at > 0`, id)
			}
			tx.Do(`UPDATE workspaces SET removed_at = $1 WHERE removed_at = 0 AND $2 NOT LIKE '%,' || id || ',%'`,
				storage.Millis(s.db.Now()), ","+strings.Join(workspaces, ",")+",")
		})
		if !errors.Is(err, storage.ErrUnclear) || ctx.Err() != nil {
			return err
		}
	}
}
