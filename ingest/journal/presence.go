package journal

import (
	"context"
	"time"
)

// A node that listens has a hold of its own, by this prefix and its name; listens is
// the condition that a hold is one.
const (
	presence = "node/"
	listens  = `name LIKE '` + presence + `%'`
)

// Attend says for so long that this node listens to the platforms, and returns
// whether others have said so. Where one process has the journal there are none.
func (j *Journal) Attend(ctx context.Context, lease time.Duration) (others bool, err error) {
	if j.lease == 0 {
		return false, nil
	}
	return write(ctx, j, func(tx Tx) (bool, error) {
		now := millis(j.now())
		if err := tx.Later(nil, nil, `DELETE FROM holds WHERE `+listens+` AND until <= ?`, now); err != nil {
			return false, err
		}
		if err := tx.Later(nil, nil, `INSERT INTO holds (name, owner, until) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET until = excluded.until`, presence+j.node, j.node, now+lease.Milliseconds()); err != nil {
			return false, err
		}
		var one int64
		return tx.Row([]any{&one}, `SELECT 1 FROM holds WHERE `+listens+` AND owner <> ? LIMIT 1`, j.node)
	})
}

// Leave takes back that this node listens.
func (j *Journal) Leave(ctx context.Context) error { return j.Drop(ctx, presence+j.node) }
