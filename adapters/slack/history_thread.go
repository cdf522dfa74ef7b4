package slack

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

var _ adapters.ContextReader = (*Adapter)(nil)

const (
	// threadPage is how many messages of a thread the first call reads, and
	// threadRest each further one, the most that Slack allows.
	// https://docs.slack.dev/reference/methods/conversations.replies#arguments
	threadPage, threadRest = 200, 999
	// restCalls bounds the calls that read on to the end of a thread, and tailCalls
	// those that look for the end of a longer one.
	restCalls, tailCalls = 2, 4
)

// Root is the message that a channel's or a group's thread hangs under. What was said
// in a direct message was said to us, and is known.
func (a *Adapter) Root(thread event.ThreadKey) (id string, ok bool) {
	channel, root, err := parseThreadKey(thread)
	if err != nil || root == "" || strings.HasPrefix(channel, "D") {
		return "", false
	}
	return channel + "/" + root, true
}

// Before reads a thread: most are read whole by one call. Slack begins with the oldest
// message, so that the end of a long one is looked for by its time. A thread that is
// gone has nothing.
func (a *Adapter) Before(ctx context.Context, thread event.ThreadKey, upTo string, newest int) (adapters.Before, error) {
	var before adapters.Before
	channel, root, err := parseThreadKey(thread)
	if err != nil {
		return before, err
	}
	self, err := a.knownSelf(ctx)
	if err != nil {
		return before, err
	}
	r := replies{adapter: a, channel: channel, root: root, newest: newest}
	if _, ts, _ := strings.Cut(upTo, "/"); isTimestamp(ts) {
		r.upTo = ts
	}
	list, err := r.read(ctx)
	if answered(err, "thread_not_found") {
		return before, nil
	}
	if err != nil {
		return before, fmt.Errorf("read slack thread %s/%s: %w", channel, root, err)
	}
	for _, m := range list {
		before.Envelopes = append(before.Envelopes, event.Envelope{
			Workspace: a.Workspace, Platform: event.Slack, Transport: event.Reread, ReceivedAt: a.now(),
			Body: callback(self, append(append([]byte(nil), m.raw[:len(m.raw)-1]...), `,"channel":`+quoted(channel)+`}`...)),
		})
	}
	before.Earlier, before.Gap = r.earlier, r.gap
	return before, nil
}

// replies is the reading of one thread.
type replies struct {
	adapter       *Adapter
	channel, root string
	upTo          string // the ts of the message that asks; empty where it has none
	newest        int

	earlier int
	gap     bool
}

// read returns the root, if it is there, and the newest replies.
func (r *replies) read(ctx context.Context) ([]pastMessage, error) {
	first, err := r.page(ctx, threadPage, "", time.Time{})
	if err != nil {
		return nil, err
	}
	list := first.replies
	if first.next != "" && len(list) > 0 && len(first.root) > 0 {
		count := first.root[0].ReplyCount
		if left := count - len(list); left <= restCalls*threadRest {
			list, r.gap = r.rest(ctx, list, first.next)
		} else {
			list, r.gap = r.tail(ctx, list[len(list)-1].at, left)
		}
		r.earlier = max(count-len(list), 0)
	}
	if n := len(list); n > 0 && list[n-1].TS == r.upTo {
		list = list[:n-1]
	}
	if surplus := len(list) - r.newest; surplus > 0 {
		list, r.earlier = list[surplus:], r.earlier+surplus
	}
	return append(first.root, list...), nil
}

// rest reads on to the thread's end; gap says that it was not reached.
func (r *replies) rest(ctx context.Context, list []pastMessage, next string) (all []pastMessage, gap bool) {
	for range restCalls + 1 { // some may have been said meanwhile
		page, err := r.page(ctx, threadRest, next, time.Time{})
		if err != nil {
			return nil, true
		}
		list = append(list, page.replies...)
		if next = page.next; next == "" {
			return list, false
		}
	}
	return nil, true
}

// tail looks for the end of a thread of which so many replies are left behind a
// time, as if they had been said evenly; gap says that it was not found.
func (r *replies) tail(ctx context.Context, behind time.Time, left int) (list []pastMessage, gap bool) {
	end := r.adapter.now()
	if r.upTo != "" {
		end = sentAt(r.upTo)
	}
	whole := end.Sub(behind)
	reach := whole / time.Duration(left) * threadPage
	for range tailCalls {
		page, err := r.page(ctx, threadRest, "", end.Add(-reach))
		switch {
		case err != nil:
			return nil, true
		case page.next != "": // too many, and not the last of them
			reach /= 8
		case len(page.replies) > r.newest:
			return page.replies, false
		default: // it is an end, if a short one
			list = page.replies
			reach = min(4*reach, whole)
		}
	}
	return list, len(list) == 0
}

// threadPart is one page of a thread.
type threadPart struct {
	root    []pastMessage // one, or none where it is not on the page
	replies []pastMessage
	next    string // the cursor of the next page; empty for none
}

// page reads so many messages at the most, from a cursor or a time on.
func (r *replies) page(ctx context.Context, limit int, cursor string, since time.Time) (part threadPart, err error) {
	query := url.Values{"channel": {r.channel}, "ts": {r.root}, "limit": {strconv.Itoa(limit)}, "inclusive": {"true"}}
	if r.upTo != "" {
		query.Set("latest", r.upTo)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if !since.IsZero() {
		query.Set("oldest", timestamp(since))
	}
	var page messagePage
	if err := r.adapter.ask(ctx, "conversations.replies", query, &page); err != nil {
		return part, err
	}
	for _, raw := range page.Messages {
		switch m, ok := readPast(raw); {
		case !ok:
		case m.TS == r.root:
			part.root = []pastMessage{m}
		default:
			part.replies = append(part.replies, m)
		}
	}
	part.next = page.ResponseMetadata.Cursor
	return part, nil
}
