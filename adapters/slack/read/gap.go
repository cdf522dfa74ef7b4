package read

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

const (
	// editReach bounds the age, at the beginning of a gap, of a reply whose edit in the gap
	// backfill notices. Backfill notices such an edit only if it reads the thread anyway.
	editReach = time.Hour
	// editedStep is the precision of an edit's time: Slack gives it in seconds.
	editedStep = time.Second
	// channelBytes bounds the messages that ReadChannel reads from one channel, in bytes.
	channelBytes = 64 << 20
	// maxThread bounds the number of messages that are read from one thread.
	maxThread = 10_000
)

// Began returns the channel of a thread and the time of its root. For a direct or group
// conversation the time is zero, because the conversation is older than any gap. For a
// command's thread Began returns false, because other people can't write in it.
func (r *Reader) Began(thread event.ThreadKey) (channel string, at time.Time, ok bool) {
	channel, root, err := payload.ParseThreadKey(thread)
	switch {
	case err != nil || payload.IsCommandThread(thread):
		return "", time.Time{}, false
	case root != "":
		at = payload.SentAt(root)
	}
	return channel, at, true
}

// ReadThread reads a thread page by page, or a whole conversation. It hands over edits
// since the beginning of the gap as edits, and skips our own messages.
func (r *Reader) ReadThread(ctx context.Context, thread event.ThreadKey, read adapters.Reading) error {
	channel, root, err := payload.ParseThreadKey(thread)
	if err != nil {
		return err
	}
	gap, err := r.newGapReader(ctx, channel, read)
	if err != nil {
		return err
	}
	if root == "" {
		gap.limit = maxThread
		if err := gap.channel(ctx); err != nil {
			return err
		}
		return gap.handOver(gap.oldestFirst(), nil)
	}
	return gap.thread(ctx, root)
}

// ReadChannel reads the messages of a channel or conversation that are outside threads.
// It returns the threads that have replies since the beginning of the gap.
func (r *Reader) ReadChannel(ctx context.Context, read adapters.Reading) (adapters.Found, error) {
	gap, err := r.newGapReader(ctx, read.Gap.Channel, read)
	if err != nil {
		return adapters.Found{}, err
	}
	gap.limit = read.Messages
	if err := gap.channel(ctx); err != nil {
		return adapters.Found{}, err
	}
	found, list := adapters.Found{}, gap.oldestFirst()
	left := map[event.ThreadKey]bool{}
	for _, m := range list {
		if root := gap.repliedThread(m); root != "" {
			thread := payload.ThreadKey(r.workspace, event.Channel{ID: gap.Gap.Channel}, "", root)
			if !left[thread] {
				found.Threads = append(found.Threads, thread)
			}
			left[thread] = true
		}
	}
	found.Cut = gap.cut
	return found, gap.handOver(list, left)
}

// repliedThread returns the root of a thread that may have replies since the beginning
// of the gap. The message reveals that if it is the root, or a reply that was also sent
// to the channel. Otherwise repliedThread returns an empty string.
func (r *gapReader) repliedThread(m historyMessage) (root string) {
	switch {
	case m.ThreadTS != "" && m.ThreadTS != m.TS:
		return m.ThreadTS
	case m.ReplyCount > 0 && payload.IsTimestamp(m.LatestReply) && !payload.SentAt(m.LatestReply).Before(r.Gap.From):
		return m.TS
	}
	return ""
}

// newGapReader prepares the reading of a gap.
func (r *Reader) newGapReader(ctx context.Context, channel string, read adapters.Reading) (*gapReader, error) {
	self, err := r.client.Self(ctx)
	if err != nil {
		return nil, err
	}
	kind, err := r.kind(ctx, read.Urgent, channel)
	if err != nil {
		return nil, err
	}
	read.Gap.Channel = channel
	return &gapReader{Reading: read, reader: r, self: self, kind: kind}, nil
}

// historyMessage is a message of a channel's history, with the fields that backfill
// uses.
// https://docs.slack.dev/reference/methods/conversations.history#response
type historyMessage struct {
	raw         json.RawMessage
	at          time.Time
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	Subtype     string          `json:"subtype"`
	Edited      *payload.Edited `json:"edited"`
	ReplyCount  int             `json:"reply_count"`
	LatestReply string          `json:"latest_reply"`
}

// decodeHistory decodes a message of history. It returns false if the value is not a
// message.
func decodeHistory(raw json.RawMessage) (historyMessage, bool) {
	m := historyMessage{}
	_ = json.Unmarshal(raw, &m) // Normalize reports the fault
	if !payload.IsObject(raw) || !payload.IsTimestamp(m.TS) {
		return m, false
	}
	m.raw, m.at = bytes.TrimSpace(raw), payload.SentAt(m.TS)
	return m, true
}

// changedAt returns the ts of the message's last edit; else the message's own.
func (m historyMessage) changedAt() string {
	if m.Edited != nil {
		return m.Edited.TS
	}
	return m.TS
}

// gapReader reads one gap of one channel or thread.
type gapReader struct {
	adapters.Reading
	reader   *Reader
	limit    int // maximum number of messages in the gap
	self     event.Self
	kind     string
	messages []historyMessage
	size     int
	cut      bool
}

// pages reads page by page, as long as take returns true.
func (r *gapReader) pages(ctx context.Context, method, root string, take func(list []historyMessage, last bool) (more bool, err error)) error {
	query := url.Values{
		"channel": {r.Gap.Channel}, "limit": {historyPage}, "inclusive": {"true"}, "latest": {payload.Timestamp(r.Gap.Until)},
	}
	if root != "" {
		query.Set("ts", root)
		query.Set("oldest", payload.Timestamp(r.Gap.From.Add(-editReach)))
	}
	return eachPage(query, func() (next string, err error) {
		var page messagePage
		if err := r.reader.client.Paced(ctx, r.Urgent, method, query, &page); err != nil {
			return "", err
		}
		var list []historyMessage
		for _, raw := range page.Messages {
			if m, ok := decodeHistory(raw); ok {
				list = append(list, m)
			}
		}
		next = page.Next(query)
		if more, err := take(list, next == ""); err != nil || !more {
			return "", err
		}
		return next, nil
	})
}

// channel reads the messages outside threads, newest first. It stops after the page with the
// beginning of the gap, at the limit, or at channelBytes. The messages before the gap on that
// page show which older threads have replies in the gap.
func (r *gapReader) channel(ctx context.Context) error {
	within := 0
	err := r.pages(ctx, "conversations.history", "", func(list []historyMessage, last bool) (more bool, err error) {
		before := false
		for _, m := range list {
			r.size += len(m.raw)
			if m.at.Before(r.Gap.From) {
				before = true
			} else {
				within++
			}
		}
		r.messages = append(r.messages, list...)
		enough := within >= r.limit || r.size > channelBytes
		r.cut = r.cut || enough && !before && !last
		return !enough && !before, nil
	})
	if err != nil {
		return fmt.Errorf("read slack channel %s: %w", r.Gap.Channel, err)
	}
	return nil
}

// thread reads a thread, oldest messages first, and hands over each page. A deleted
// thread has no messages.
func (r *gapReader) thread(ctx context.Context, root string) error {
	read := 0
	err := r.pages(ctx, "conversations.replies", root, func(list []historyMessage, _ bool) (more bool, err error) {
		read += len(list)
		return read < maxThread, r.handOver(list, nil)
	})
	if err != nil && call.Code(err) != "thread_not_found" {
		return fmt.Errorf("read slack thread %s/%s: %w", r.Gap.Channel, root, err)
	}
	return nil
}

// oldestFirst returns the messages in order of time. From the gap it keeps only the
// newest messages, as many as the limit allows.
func (r *gapReader) oldestFirst() []historyMessage {
	list := r.messages
	slices.SortFunc(list, func(a, b historyMessage) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.TS, b.TS)) })
	list = slices.CompactFunc(list, func(a, b historyMessage) bool { return a.TS == b.TS }) // pages may overlap
	first := slices.IndexFunc(list, func(m historyMessage) bool { return !m.at.Before(r.Gap.From) })
	if surplus := len(list) - first - r.limit; first >= 0 && surplus > 0 {
		list, r.cut = slices.Delete(list, first, first+surplus), true
	}
	return list
}

// handOver hands over messages as events, by thread. A message in the gap is handed
// over as new. A message that was edited or deleted since the beginning of the gap is
// handed over as a change. handOver skips our own messages, and the threads in left,
// which ReadThread reads.
func (r *gapReader) handOver(list []historyMessage, left map[event.ThreadKey]bool) error {
	channel := payload.ChannelOf(r.Gap.Channel, r.kind)
	var threads []event.ThreadKey
	missed := map[event.ThreadKey][]adapters.Missed{}
	for _, m := range list {
		thread := payload.ThreadKey(r.reader.workspace, channel, m.TS, m.ThreadTS)
		if left[thread] {
			continue
		}
		if missed[thread] == nil {
			threads, missed[thread] = append(threads, thread), []adapters.Missed{}
		}
		if payload.SameID(m.User, r.self.UserID) || payload.SameID(m.BotID, r.self.BotID) {
			continue
		}
		var out adapters.Missed
		gone := m.Subtype == "tombstone"
		if !m.at.Before(r.Gap.From) && !gone {
			out.New = r.envelope(payload.WithChannel(m.raw, r.Gap.Channel, r.kind))
		}
		if gone || m.Edited != nil && payload.IsTimestamp(m.Edited.TS) && payload.SentAt(m.Edited.TS).Add(editedStep).After(r.Gap.From) {
			out.Change = r.envelope(payload.Change(r.Gap.Channel, r.kind, m.changedAt(), m.raw))
		}
		missed[thread] = append(missed[thread], out)
	}
	for _, thread := range threads {
		if err := r.Hand(thread, missed[thread]); err != nil {
			return err
		}
	}
	return nil
}

func (r *gapReader) envelope(inner []byte) *event.Envelope {
	return &event.Envelope{
		Workspace: r.reader.workspace, Platform: event.Slack, Transport: event.Backfilled,
		ReceivedAt: r.reader.client.Now(), Body: payload.Callback(r.self, inner),
	}
}
