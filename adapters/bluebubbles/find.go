package bluebubbles

import (
	"cmp"
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
// file. It reads the chat's rows since the post was made and compares here, because the server
// cannot search for the text of own messages. If Messages could not deliver any of them, the error
// is ErrUndelivered.
func (a *Adapter) List(ctx context.Context, post adapters.Post) (ids []string, err error) {
	chat, _, err := a.destination(ctx, post.To)
	if err != nil {
		return nil, err
	}
	var found []payload
	for _, guid := range variants(chat) {
		more, err := a.ownRows(ctx, guid, post)
		if err != nil && (guid == chat || !isMissing(err)) {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.SortStableFunc(found, func(a, b payload) int { return cmp.Compare(a.row, b.row) })
	var failed []string
	for _, p := range found {
		if p.failure == 0 {
			ids = append(ids, p.guid)
		} else {
			failed = append(failed, p.guid)
		}
	}
	if len(ids) == 0 && len(failed) > 0 {
		return failed, adapters.ErrUndelivered
	}
	return ids, nil
}

// variants returns the guids that a chat has on the services, beginning with its own. An
// earlier process may have used another service than the one last seen.
func variants(guid string) []string {
	all := []string{guid}
	for _, service := range services {
		if at := strings.IndexByte(guid, ';'); at >= 0 && service != guid[:at] {
			all = append(all, service+guid[at:])
		}
	}
	return all
}

// ownRows returns the own messages of a chat that look like a post.
func (a *Adapter) ownRows(ctx context.Context, chat string, post adapters.Post) (found []payload, err error) {
	after := max(post.NotBefore.Add(-clockSkew).UnixMilli(), 0)
	_, err = a.rows(ctx, query{Chat: chat, After: after, Sort: "ASC"}, func(page []json.RawMessage) error {
		for _, raw := range page {
			if p := parse(a.row(raw)); p.err == nil && p.kind == event.KindMessage && p.fromMe && p.looksLike(post) {
				found = append(found, p.payload)
			}
		}
		return nil
	})
	return found, err
}

// looksLike reports whether a message has the post's text or file.
func (m message) looksLike(post adapters.Post) bool {
	if post.File == nil {
		return strings.TrimSpace(m.text) == strings.TrimSpace(post.Text)
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
