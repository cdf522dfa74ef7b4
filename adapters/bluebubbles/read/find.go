package read

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
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
// file. It reads all rows since the post was made and compares here, because the server cannot
// search for the text of own messages, and an earlier process may have used another service of the
// chat. If Messages could not deliver any of them, the error is ErrUndelivered.
func (r *Reader) List(ctx context.Context, post adapters.Post) (ids []string, err error) {
	var found []payload.Payload
	after := max(post.NotBefore.Add(-clockSkew).UnixMilli(), 0)
	if _, err := r.client.Rows(ctx, call.Query{After: after, Sort: "ASC"}, func(page []json.RawMessage) error {
		for _, raw := range page {
			p := payload.Parse(r.client.Row(raw))
			if p.IsPost(post) {
				found = append(found, *p)
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b payload.Payload) int { return cmp.Compare(a.Row, b.Row) })
	var failed []string
	for _, p := range found {
		if p.Failure == 0 {
			ids = append(ids, p.GUID)
		} else {
			failed = append(failed, p.GUID)
		}
	}
	if len(ids) == 0 && len(failed) > 0 {
		return failed, adapters.ErrUndelivered
	}
	return ids, nil
}

// Settles returns how long after the end of its call a post may still appear.
func (r *Reader) Settles(post adapters.Post) time.Duration {
	if post.File != nil {
		return (settleFile - 1) * r.client.Timeout
	}
	return (settleText - 1) * r.client.Timeout
}
