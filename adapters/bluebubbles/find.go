package bluebubbles

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// clockSkew bounds the difference of the server's clock and ours.
	clockSkew = time.Minute
	// settleText and settleFile are the multiples of the timeout after which a send has
	// certainly taken effect, or never will. The server itself waits for a text's row for two
	// minutes, and for a file's for twenty.
	settleText, settleFile = 4, 40
)

// List returns our own messages that look like the post: in its chat, with its text or its
// file. It reads all rows since the post was made and compares here, because the server
// cannot search for the text of own messages. If Messages could not deliver the only such
// message, the error is ErrUndelivered.
func (a *Adapter) List(ctx context.Context, post adapters.Post) (ids []string, err error) {
	undelivered := false
	after := max(post.NotBefore.Add(-clockSkew).UnixMilli(), 0)
	_, err = a.rows(ctx, query{After: after, Sort: "ASC"}, func(row json.RawMessage) error {
		p, err := read(asWebhook(row))
		switch {
		case err != nil || p.kind != event.KindMessage || !p.fromMe || chatName(p.chat.guid) != post.To.Channel || !p.looksLike(post):
		case p.failure != 0:
			undelivered = true
		default:
			ids = append(ids, p.guid)
		}
		return nil
	})
	if err == nil && len(ids) == 0 && undelivered {
		err = adapters.ErrUndelivered
	}
	return ids, err
}

// looksLike reports whether a message has the post's text or file.
func (m message) looksLike(post adapters.Post) bool {
	if post.File == nil {
		return strings.TrimSpace(m.content()) == strings.TrimSpace(post.Text)
	}
	return slices.ContainsFunc(m.attachments, func(f event.Attachment) bool { return f.Name == post.File.Name })
}

// Settles returns how long after the end of its call a post may still appear.
func (a *Adapter) Settles(post adapters.Post) time.Duration {
	if post.File != nil {
		return (settleFile - 1) * a.config.Timeout
	}
	return (settleText - 1) * a.config.Timeout
}
