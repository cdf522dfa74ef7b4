package journal

import (
	"context"
	"slices"
	"strings"
)

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

// FirstUnknown returns the first of the platform ids that belongs to no delivery and to no
// message of the workspace; empty for none.
func (j *Journal) FirstUnknown(ctx context.Context, workspace string, platformIDs []string) (string, error) {
	return read(ctx, j, func(tx *txn) string {
		for _, id := range platformIDs {
			if !tx.isPost(workspace, id) && !tx.has(`SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2`, workspace, id) {
				return id
			}
		}
		return ""
	})
}

// IsSending reports whether a post of ours with this text is being sent in a thread, so that
// its id is not known yet. An empty text matches every post.
func (j *Journal) IsSending(ctx context.Context, thread int64, text string) (bool, error) {
	text = strings.TrimSpace(text)
	return read(ctx, j, func(tx *txn) bool {
		payloads := rows(tx, func(p *string) []any { return []any{p} },
			`SELECT payload FROM deliveries WHERE thread = $1 AND state = 'sending'`, thread)
		return slices.ContainsFunc(payloads, func(p string) bool { return text == "" || strings.TrimSpace(p) == text })
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
