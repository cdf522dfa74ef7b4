package journal

import (
	"context"
	"time"
)

// Hold takes what one node at a time may have, such as a platform's connection,
// or keeps it, for so long from now; false while another node has it. It goes by
// a name of its own. Where one process at a time has the journal nobody else can
// have anything: nothing is stored then.
func (j *Journal) Hold(ctx context.Context, name string, lease time.Duration) (held bool, err error) {
	if j.lease == 0 {
		return true, nil
	}
	return write(Urgent(ctx), j, func(tx Tx) (bool, error) {
		now := millis(j.now())
		var owner string
		// Asked in vain it changes nothing, so that those who stand by cost no commits.
		return tx.Row([]any{&owner}, `INSERT INTO holds (name, owner, until) SELECT ?1, ?2, ?3
			WHERE NOT EXISTS (SELECT 1 FROM holds WHERE name = ?1 AND owner <> ?2 AND until > ?4)
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
			WHERE holds.owner = excluded.owner OR holds.until <= ?4 RETURNING owner`,
			name, j.node, now+lease.Milliseconds(), now)
	})
}

// Drop gives back what Hold has taken; what another node has stays its own.
func (j *Journal) Drop(ctx context.Context, name string) error {
	if j.lease == 0 {
		return nil
	}
	return j.engine.Write(Urgent(ctx), func(tx Tx) error {
		_, err := tx.Exec(`DELETE FROM holds WHERE name = ? AND owner = ?`, name, j.node)
		return err
	})
}
