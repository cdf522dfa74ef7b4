package read

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// clockSkew is the maximum time by which Slack's clock may be behind ours. If it is behind by
// more, a post of ours is not found and is sent twice.
const clockSkew = 2 * time.Minute

// Find reads the thread or conversation from just before post.NotBefore to its last
// message. Among our own messages it looks for the one that carries the post's key, in
// its metadata or in its file's name. Any failure is an error, because an unread page
// may contain the message. Find does not wait for the pace of the method.
func (r *Reader) Find(ctx context.Context, post adapters.Post) (string, bool, error) {
	id := ""
	err := r.eachOwnMessage(ctx, post, func(m *payload.Message) bool {
		if m.Key() == post.Key {
			id = payload.MessageID(post.To.Channel, m.TS)
		}
		return id == ""
	})
	return id, id != "" && err == nil, err
}

// FindStream reads as Find does, and returns our messages without a key, oldest first.
func (r *Reader) FindStream(ctx context.Context, post adapters.Post) ([]string, error) {
	var found []string
	from := fromTS(post.NotBefore)
	err := r.eachOwnMessage(ctx, post, func(m *payload.Message) bool {
		if m.Key() == "" && m.TS >= from { // every page contains the thread's root
			found = append(found, m.TS)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	for i, ts := range found {
		found[i] = payload.MessageID(post.To.Channel, ts)
	}
	return found, nil
}

// fromTS returns the ts from which Slack must read to find messages since the given
// time. It is empty for the zero time.
func fromTS(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return payload.Timestamp(since.Add(-clockSkew))
}

// eachOwnMessage calls visit for our own messages at the post's address, until visit
// returns false.
func (r *Reader) eachOwnMessage(ctx context.Context, post adapters.Post, visit func(*payload.Message) bool) error {
	self, err := r.client.Self(ctx)
	if err != nil {
		return err
	}
	query := url.Values{"channel": {post.To.Channel}, "limit": {historyPage}, "include_all_metadata": {"true"}}
	if from := fromTS(post.NotBefore); from != "" {
		query.Set("oldest", from)
	}
	root := payload.ThreadTS(post.To)
	if root != "" {
		query.Set("ts", root)
		err = r.scan(ctx, "conversations.replies", query, self, visit)
		query.Del("ts")
	}
	// If a thread's root is deleted, Slack posts the reply in the channel.
	if root == "" || call.Code(err) == "thread_not_found" {
		err = r.scan(ctx, "conversations.history", query, self, visit)
	}
	if err != nil {
		return r.client.SendError("look for a post", post.To.Channel, err)
	}
	return nil
}

// scan reads page by page and calls visit for our messages, until visit returns false. Its
// calls count as calls of the minute and come before all others, because a reply waits.
func (r *Reader) scan(ctx context.Context, method string, query url.Values, self event.Self, visit func(*payload.Message) bool) error {
	return eachPage(query, func() (next string, err error) {
		var page messagePage
		if err := r.client.Ask(ctx, method, query, &page); err != nil {
			return "", err
		}
		for _, raw := range page.Messages {
			m := new(payload.Message)
			_ = json.Unmarshal(raw, m) // our messages have every field in the right form
			if m.IsOwn(self) && !visit(m) {
				return "", nil
			}
		}
		next = page.Next(query)
		if next == "" && (page.HasMore || page.ResponseMetadata.Cursor != "") {
			return "", errors.New("slack reports further messages without a cursor to read them")
		}
		return next, nil
	})
}
