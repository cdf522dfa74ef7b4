package journal

import (
	"context"
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// ReplyID returns the external id of the reply of ours that the post with a platform id
// belongs to; empty if the post belongs to none.
func (j *Journal) ReplyID(ctx context.Context, workspace, platformID string) (id string, err error) {
	_, err = j.db.Row(ctx, []any{&id}, `SELECT m.external_id FROM deliveries d JOIN messages m ON m.run = d.run AND m.author = 'agent'
		WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, platformID)
	return id, err
}

// maxOriginals bounds the messages among which Author looks.
const maxOriginals = 20

// Author returns the metadata of a person's message: of the one with the external id if it is stored,
// else of the newest in the thread that isOriginal accepts; nil for none.
func (j *Journal) Author(ctx context.Context, thread int64, externalID string, isOriginal func(m *Message) bool) ([]byte, error) {
	return storage.Read(ctx, j.db, func(tx *storage.Txn) []byte {
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

// FirstUnknown returns the first of the platform ids that belongs to no delivery and to no
// message of the workspace; empty for none.
func (j *Journal) FirstUnknown(ctx context.Context, workspace string, platformIDs []string) (string, error) {
	return storage.Read(ctx, j.db, func(tx *storage.Txn) string {
		for _, id := range platformIDs {
			if !isPost(tx, workspace, id) && !tx.Has(`SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2`, workspace, id) {
				return id
			}
		}
		return ""
	})
}

// IsSending reports whether a message looks like the post of ours that is being sent in its
// thread, so that the id of the post is not known yet. A message without text and files may be any
// post, because a payload may lack them at first. A platform that converts a file, as BlueBubbles
// does for webhooks, names the result by the file's id.
func (j *Journal) IsSending(ctx context.Context, thread int64, m *event.Message) (bool, error) {
	d, err := j.NextDelivery(ctx, thread)
	if err != nil || d == nil || d.State != DeliverySending || !d.Puts() {
		return false, err
	}
	text, file := strings.TrimSpace(m.Content), d.Post.File
	switch {
	case text != "":
		return strings.TrimSpace(d.Post.Text) == text, nil
	case len(m.Attachments) == 0:
		return true, nil
	}
	return file != nil && slices.ContainsFunc(m.Attachments, func(a event.Attachment) bool {
		return a.Name == file.Name || strings.HasPrefix(a.Name, a.ID+".")
	}), nil
}

// Knows reports whether a message is stored with its content, or was and is deleted. If
// posts is set, it also reports whether the id is that of a post of ours that carries a
// reply.
func (j *Journal) Knows(ctx context.Context, workspace, externalID string, posts bool) (bool, error) {
	query := `SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2 AND seq IS NOT NULL`
	if posts {
		query += ` UNION ALL SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`
	}
	return j.db.Row(ctx, []any{new(int64)}, query+` LIMIT 1`, workspace, externalID)
}
