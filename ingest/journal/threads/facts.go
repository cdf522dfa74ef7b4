package threads

import (
	"context"
	"fmt"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Self returns our identity in a workspace; zero if it is not known yet.
func (s *Threads) Self(ctx context.Context, workspace string) (self event.Self, err error) {
	return readSelf(ctx, s.db, workspace)
}

func readSelf(ctx context.Context, db *storage.DB, workspace string) (self event.Self, err error) {
	var raw string
	if _, err := db.Row(ctx, []any{&raw}, `SELECT self FROM workspaces WHERE id = $1`, workspace); err != nil {
		return self, err
	}
	if err := storage.Unpack(raw, &self); err != nil {
		return self, fmt.Errorf("identity in workspace %s: %w", workspace, err)
	}
	return self, nil
}

// StoreSelf stores our identity in a workspace. It does not write a known identity again.
func StoreSelf(ctx context.Context, db *storage.DB, workspace string, self event.Self) error {
	if known, err := readSelf(ctx, db, workspace); err == nil && known == self {
		return nil
	}
	return db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO workspaces (id, self) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET self = excluded.self`, workspace, tx.Pack(self, false))
	})
}

// Channel is a channel that a payload has named.
type Channel struct {
	ID   string // the platform's
	Type event.ChannelType
}

// Channels returns the channels of a workspace behind an id, in the order of their ids; all begin behind "".
func (s *Threads) Channels(ctx context.Context, workspace, after string, limit int) ([]Channel, error) {
	return storage.List(ctx, s.db, func(c *Channel) []any { return []any{&c.ID, (*string)(&c.Type)} },
		`SELECT id, type FROM channels WHERE workspace = $1 AND id > $2 ORDER BY id LIMIT CAST($3 AS BIGINT)`, workspace, after, int64(limit))
}

// ChannelType returns the stored type of a channel; empty if no payload has named it.
func (s *Threads) ChannelType(ctx context.Context, workspace, channel string) (kind event.ChannelType, err error) {
	_, err = s.db.Row(ctx, []any{(*string)(&kind)}, `SELECT type FROM channels WHERE workspace = $1 AND id = $2`, workspace, channel)
	return kind, err
}
