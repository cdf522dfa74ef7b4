package journal

import "context"

// ThreadChannel returns the platform's id of a thread's channel; empty if no payload has
// named it.
func (j *Journal) ThreadChannel(ctx context.Context, thread int64) (channel string, err error) {
	_, err = j.row(ctx, []any{&channel}, `SELECT channel FROM threads WHERE id = $1`, thread)
	return channel, err
}

// StoredMetadata returns the current metadata of the message with an external id; nil if
// there is no such message.
func (j *Journal) StoredMetadata(ctx context.Context, workspace, externalID string) (metadata []byte, err error) {
	_, err = j.row(ctx, []any{&metadata}, `SELECT metadata FROM messages WHERE workspace = $1 AND external_id = $2`, workspace, externalID)
	return metadata, err
}

// ReplyIDs returns, for those platform ids that are posts of a reply of ours, the external
// id of that reply.
func (j *Journal) ReplyIDs(ctx context.Context, workspace string, platformIDs []string) (map[string]string, error) {
	return read(ctx, j, func(tx *txn) map[string]string {
		ids := map[string]string{}
		for _, platformID := range platformIDs {
			var id string
			if tx.row([]any{&id}, `SELECT m.external_id FROM deliveries d JOIN messages m ON m.run = d.run AND m.author = 'agent'
				WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, platformID) {
				ids[platformID] = id
			}
		}
		return ids
	})
}

// Known returns the platform ids that belong to deliveries of the workspace.
func (j *Journal) Known(ctx context.Context, workspace string, platformIDs []string) (map[string]bool, error) {
	return read(ctx, j, func(tx *txn) map[string]bool {
		known := map[string]bool{}
		for _, id := range platformIDs {
			known[id] = tx.has(`SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`, workspace, id)
		}
		return known
	})
}

// Knows reports whether a message is stored with its content, or was and is deleted. If
// posts is set, it also reports whether the id is that of a post of ours that carries a
// reply.
func (j *Journal) Knows(ctx context.Context, workspace, externalID string, posts bool) (bool, error) {
	query := `SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2 AND seq IS NOT NULL`
	if posts {
		query += ` UNION ALL SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`
	}
	return j.row(ctx, []any{new(int64)}, query+` LIMIT 1`, workspace, externalID)
}
