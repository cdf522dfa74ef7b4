package threads

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// AcquireLease acquires the named exclusive lease for this node, or renews it, for a
// duration from now. It returns false while another node has the lease. An embedded store
// has one process, so it stores nothing and the answer is always true.
func (s *Threads) AcquireLease(ctx context.Context, name string, duration time.Duration) (acquired bool, err error) {
	if s.db.Lease == 0 {
		return true, nil
	}
	return storage.Write(ctx, s.db, storage.WriteOptions{Urgent: true}, func(tx *storage.Txn) bool {
		now := storage.Millis(s.db.Now())
		// A refused call changes nothing, so nodes on standby cost no commits.
		return tx.Row([]any{new(string)}, `INSERT INTO exclusive_leases (name, owner, until) SELECT $1, $2, $3
			WHERE NOT EXISTS (SELECT 1 FROM exclusive_leases WHERE name = $1 AND owner <> $2 AND until > $4)
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
			WHERE exclusive_leases.owner = excluded.owner OR exclusive_leases.until <= $4 RETURNING owner`,
			name, s.db.Node, now+duration.Milliseconds(), now)
	})
}

// ReleaseLease gives up an exclusive lease if this node has it.
func (s *Threads) ReleaseLease(ctx context.Context, name string) error {
	if s.db.Lease == 0 {
		return nil
	}
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`DELETE FROM exclusive_leases WHERE name = $1 AND owner = $2`, name, s.db.Node)
	})
}
