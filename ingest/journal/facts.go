package journal

import (
	"context"
	"fmt"

	"parley/ingest/event"
)

// Self returns our identity in a workspace; zero if it is not known yet.
func (j *Journal) Self(ctx context.Context, workspace string) (self event.Self, err error) {
	var raw string
	if _, err := j.row(ctx, []any{&raw}, `SELECT self FROM workspaces WHERE id = $1`, workspace); err != nil {
		return self, err
	}
	if err := unpack(raw, &self); err != nil {
		return self, fmt.Errorf("identity in workspace %s: %w", workspace, err)
	}
	return self, nil
}

// SetSelf stores our identity in a workspace, and makes the envelopes due that wait for
// it. It does not write a known identity again. After an error, some of the envelopes may
// stay postponed until their time.
func (j *Journal) SetSelf(ctx context.Context, workspace string, self event.Self) error {
	if known, err := j.Self(ctx, workspace); err != nil || known != self {
		if err := j.change(ctx, "", func(tx *txn) {
			tx.do(`INSERT INTO workspaces (id, self) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET self = excluded.self`, workspace, tx.pack(self, false))
		}); err != nil {
			return err
		}
	}
	now := millis(j.now())
	return j.eachThread(ctx, func(tx *txn, thread int64) {
		tx.do(`UPDATE threads SET intake_at = $1 WHERE id = $2 AND intake_at > $3`, now, thread, now)
		// The state is named for the index of pending envelopes.
		tx.do(`UPDATE envelopes SET not_before = 0 WHERE thread = $1 AND state = 'pending' AND not_before > $2`, thread, now)
	}, `intake_at > $1 AND workspace = $2`, now, workspace)
}

// ChannelType returns the stored type of a channel; empty if no payload has named it.
func (j *Journal) ChannelType(ctx context.Context, workspace, channel string) (kind event.ChannelType, err error) {
	_, err = j.row(ctx, []any{(*string)(&kind)}, `SELECT type FROM channels WHERE workspace = $1 AND id = $2`, workspace, channel)
	return kind, err
}
