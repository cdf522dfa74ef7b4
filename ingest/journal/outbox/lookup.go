package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// ReplyID returns the external id of the reply of ours that the post with a platform id
// belongs to; empty if the post belongs to none.
func (o *Outbox) ReplyID(ctx context.Context, workspace, platformID string) (id string, err error) {
	_, err = o.db.Row(ctx, []any{&id}, `SELECT m.external_id FROM deliveries d JOIN messages m ON m.run = d.run AND m.author = 'agent'
		WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, platformID)
	return id, err
}

// Shown reports whether people are shown a message by a post, and returns the platform's id of that; empty while it is on its
// way.
func (o *Outbox) Shown(ctx context.Context, message string) (id string, shown bool, err error) {
	shown, err = o.db.Row(ctx, []any{&id}, `SELECT platform_id FROM deliveries WHERE key = $1 AND state IN ('pending', 'sending', 'sent')`, Key(message, 0))
	return id, shown, err
}

// ShownAbove returns the platform's id of the post that has shown people the last message that a run answers; empty for none.
func (o *Outbox) ShownAbove(ctx context.Context, run string) (id string, err error) {
	var message string
	if found, err := o.db.Row(ctx, []any{&message}, `SELECT id FROM messages WHERE run = $1 AND author IN ('human', 'bot') ORDER BY sent_at DESC, seq DESC LIMIT 1`, run); !found {
		return "", err
	}
	id, _, err = o.Shown(ctx, message)
	return id, err
}

// FirstPostIn returns the platform's id of the first post of a thread, if that is at the top of a channel, and the id of its run;
// empty for none. Of a long thread it reads the beginning alone.
func (o *Outbox) FirstPostIn(ctx context.Context, thread int64) (id, run string, err error) {
	_, err = o.db.Row(ctx, []any{&id, &run}, `SELECT d.platform_id, d.run FROM (SELECT id, run FROM messages WHERE thread = $1 AND seq IS NOT NULL ORDER BY seq LIMIT 20) AS m
		JOIN deliveries d ON d.run IN (m.id, m.run) WHERE d.thread = $1 AND d.part = 0 AND d.state = 'sent' AND d.place = '' AND d.platform_id IS NOT NULL ORDER BY d.id LIMIT 1`, thread)
	return id, run, err
}

// ThreadOfPost returns the key of the thread of the post with a platform id; empty for none.
func (o *Outbox) ThreadOfPost(ctx context.Context, workspace, platformID string) (key event.ThreadKey, err error) {
	_, err = o.db.Row(ctx, []any{(*string)(&key)},
		`SELECT t.key FROM deliveries d JOIN threads t ON t.id = d.thread WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, platformID)
	return key, err
}

// Announces reports whether the post with a platform id shows people a message of its thread.
func Announces(tx *storage.Txn, workspace, platformID string) bool {
	return tx.Has(`SELECT 1 FROM deliveries d JOIN messages m ON m.id = d.run AND m.author IN ('human', 'bot') WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, platformID)
}

// FirstUnknown returns the first of the platform ids that belongs to no delivery and to no
// message of the workspace; empty for none.
func (o *Outbox) FirstUnknown(ctx context.Context, workspace string, platformIDs []string) (string, error) {
	return storage.Read(ctx, o.db, func(tx *storage.Txn) string {
		for _, id := range platformIDs {
			if !IsPost(tx, workspace, id) && !tx.Has(`SELECT 1 FROM messages WHERE workspace = $1 AND external_id = $2`, workspace, id) {
				return id
			}
		}
		return ""
	})
}

// ReactionID returns the id of our reaction with an emoji to the message with a platform id.
func ReactionID(workspace, emoji, message string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "parley:reaction:%s:%s %s", workspace, emoji, message)).String()
}

// Reacted reports whether we add a reaction to a message, or have added it.
func (o *Outbox) Reacted(ctx context.Context, workspace, emoji, message string) (bool, error) {
	return storage.Read(ctx, o.db, func(tx *storage.Txn) bool {
		return tx.Has(`SELECT 1 FROM deliveries WHERE key = $1 AND kind = 'react'`, Key(ReactionID(workspace, emoji, message), NoPart))
	})
}

// IsSending reports whether a message looks like the post of ours that is being sent in its
// thread, so that the id of the post is not known yet. A message without text and files may be any
// post, because a payload may lack them at first. A platform that converts a file, as BlueBubbles
// does for webhooks, names the result by the file's id.
func (o *Outbox) IsSending(ctx context.Context, thread int64, m *event.Message) (bool, error) {
	d, err := o.NextDelivery(ctx, thread)
	if err != nil || d == nil || d.State != Sending || !d.Puts() {
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
