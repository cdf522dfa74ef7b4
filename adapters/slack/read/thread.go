package read

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

const (
	// firstPage is the number of messages that the first call reads. nextPage is the
	// number for each further call; it is Slack's maximum.
	// https://docs.slack.dev/reference/methods/conversations.replies#arguments
	firstPage, nextPage = 200, 999
	// maxNextPages bounds the calls that read on to the end of a thread. maxProbes bounds
	// the calls that search for the end of a longer thread.
	maxNextPages, maxProbes = 2, 4
)

// Root returns the id of the root message of a thread in a channel or group. It returns
// false for a direct message: the bot received every message there, so the journal has
// them.
func (r *Reader) Root(thread event.ThreadKey) (id string, ok bool) {
	channel, root, err := payload.ParseThreadKey(thread)
	if err != nil || root == "" || payload.IsDirect(channel) {
		return "", false
	}
	return payload.MessageID(channel, root), true
}

// ReadHistory reads a thread up to the message upTo. One call reads most threads whole.
// Slack returns the oldest messages first, so ReadHistory searches for the end of a long
// thread by time. A deleted thread has no messages.
func (r *Reader) ReadHistory(ctx context.Context, thread event.ThreadKey, upTo string, newest int) (adapters.ThreadHistory, error) {
	var before adapters.ThreadHistory
	channel, root, err := payload.ParseThreadKey(thread)
	if err != nil {
		return before, err
	}
	self, err := r.client.Self(ctx)
	if err != nil {
		return before, err
	}
	one := threadReader{reader: r, channel: channel, root: root, newest: newest}
	if _, ts, _ := strings.Cut(upTo, "/"); payload.IsTimestamp(ts) {
		one.upTo = ts
	}
	list, err := one.read(ctx)
	if call.Code(err) == "thread_not_found" {
		return before, nil
	}
	if err != nil {
		return before, fmt.Errorf("read slack thread %s/%s: %w", channel, root, err)
	}
	for _, m := range list {
		before.Envelopes = append(before.Envelopes, event.Envelope{
			Workspace: r.workspace, Platform: event.Slack, Transport: event.Reread, ReceivedAt: r.client.Now(),
			Body: payload.Callback(self, payload.WithChannel(m.raw, channel, "")),
		})
	}
	before.Earlier, before.Gap = one.earlier, one.gap
	return before, nil
}

// threadReader reads one thread.
type threadReader struct {
	reader        *Reader
	channel, root string
	upTo          string // ts of the message that triggers the run; empty if there is none
	newest        int

	earlier int
	gap     bool
}

// read returns the root, if it still exists, and the newest replies.
func (r *threadReader) read(ctx context.Context) ([]historyMessage, error) {
	first, err := r.page(ctx, firstPage, "", time.Time{})
	if err != nil {
		return nil, err
	}
	list := first.replies
	if first.next != "" && len(list) > 0 && len(first.root) > 0 {
		count := first.root[0].ReplyCount
		if left := count - len(list); left <= maxNextPages*nextPage {
			list, r.gap = r.readOn(ctx, list, first.next)
		} else {
			list, r.gap = r.findEnd(ctx, list[len(list)-1].at, left)
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

// readOn reads on to the end of the thread. It returns true for gap if it does not
// reach the end.
func (r *threadReader) readOn(ctx context.Context, list []historyMessage, next string) (all []historyMessage, gap bool) {
	for range maxNextPages + 1 { // one page more, for replies that arrive meanwhile
		page, err := r.page(ctx, nextPage, next, time.Time{})
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

// findEnd searches for the end of a thread that has the given number of replies left
// after a time. It assumes that the replies are evenly spread in time. It returns true
// for gap if it does not find the end.
func (r *threadReader) findEnd(ctx context.Context, behind time.Time, left int) (list []historyMessage, gap bool) {
	end := r.reader.client.Now()
	if r.upTo != "" {
		end = payload.SentAt(r.upTo)
	}
	whole := end.Sub(behind)
	reach := whole / time.Duration(left) * firstPage
	for range maxProbes {
		page, err := r.page(ctx, nextPage, "", end.Add(-reach))
		switch {
		case err != nil:
			return nil, true
		case page.next != "": // more replies than one page: the end is not on it
			reach /= 8
		case len(page.replies) > r.newest:
			return page.replies, false
		default: // the end of the thread, but fewer replies than wanted
			list = page.replies
			reach = min(4*reach, whole)
		}
	}
	return list, len(list) == 0
}

// repliesPage is one page of a thread.
type repliesPage struct {
	root    []historyMessage // one message, or none if it is not on the page
	replies []historyMessage
	next    string // cursor of the next page; empty if there is none
}

// page reads at most limit messages, from a cursor or from a time.
func (r *threadReader) page(ctx context.Context, limit int, cursor string, since time.Time) (part repliesPage, err error) {
	query := url.Values{"channel": {r.channel}, "ts": {r.root}, "limit": {strconv.Itoa(limit)}, "inclusive": {"true"}}
	if r.upTo != "" {
		query.Set("latest", r.upTo)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if !since.IsZero() {
		query.Set("oldest", payload.Timestamp(since))
	}
	var page messagePage
	if err := r.reader.client.Ask(ctx, "conversations.replies", query, &page); err != nil {
		return part, err
	}
	for _, raw := range page.Messages {
		switch m, ok := decodeHistory(raw); {
		case !ok:
		case m.TS == r.root:
			part.root = []historyMessage{m}
		default:
			part.replies = append(part.replies, m)
		}
	}
	part.next = page.ResponseMetadata.Cursor
	return part, nil
}
