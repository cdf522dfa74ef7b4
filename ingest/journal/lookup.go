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

// ReplyID returns the external id of the reply of ours that the post with a platform id
// belongs to; empty if the post belongs to none.
func (j *Journal) ReplyID(ctx context.Context, workspace, platformID string) (id string, err error) {
	_, err = j.row(ctx, []any{&id}, `SELECT m.external_id FROM deliveries d JOIN messages m ON m.run = d.run AND m.author = 'agent'
		WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, platformID)
	return id, err
}

// FirstUnknown returns the first of the platform ids that belongs to no delivery of the
// workspace; empty for none.
func (j *Journal) FirstUnknown(ctx context.Context, workspace string, platformIDs []string) (string, error) {
	return read(ctx, j, func(tx *txn) string {
		for _, id := range platformIDs {
			if !tx.isPost(workspace, id) {
				return id
			}
		}
		return ""
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
