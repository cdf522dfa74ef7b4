package messages

import (
	"context"
	"slices"

	"parley/ingest/journal/storage"
)

// maxOriginals bounds the messages among which Author looks.
const maxOriginals = 20

// Author returns the metadata of a person's message: of the one with the external id if it is stored,
// else of the newest in the thread that isOriginal accepts; nil for none.
func (s *Messages) Author(ctx context.Context, thread int64, externalID string, isOriginal func(m *Message) bool) ([]byte, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) []byte {
		for _, m := range findAll(tx, `m.thread = $1 AND m.author = 'human' AND m.external_id = $2`, thread, externalID) {
			return m.Metadata
		}
		list := findAll(tx, `m.thread = $1 AND m.author = 'human' AND m.seq IS NOT NULL ORDER BY m.seq DESC LIMIT $2`, thread, int64(maxOriginals))
		if at := slices.IndexFunc(list, func(m Message) bool { return isOriginal(&m) }); at >= 0 {
			return list[at].Metadata
		}
		return nil
	})
}

// Knows reports whether a message is stored with its content, or was and is deleted. If
// posts is set, it also reports whether the id is that of a post of ours that carries a
// reply.
func (m *Messages) Knows(ctx context.Context, workspace, externalID string, posts bool) (bool, error) {
	query := `SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2 AND seq IS NOT NULL`
	if posts {
		query += ` UNION ALL SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`
	}
	return m.db.Row(ctx, []any{new(int64)}, query+` LIMIT 1`, workspace, externalID)
}
