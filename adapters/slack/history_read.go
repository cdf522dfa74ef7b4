package slack

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
	"parley/ingest/event"
)

const (
	// editReach is how old a message may have been at the beginning of a gap for an edit
	// in the gap to be noticed, as far as the pages that are read anyway reach.
	editReach = time.Hour
	// editedStep is the precision of an edit's time: Slack tells it in seconds.
	editedStep = time.Second
	// channelBytes bounds what ReadChannel reads of one channel.
	channelBytes = 64 << 20
	// maxThread bounds the messages that are read of one thread.
	maxThread = 10_000
)

// Began returns the time of the thread's root. A direct or group conversation is older
// than any gap; in a command's thread, nothing is said by others.
func (a *Adapter) Began(thread event.ThreadKey) (channel string, at time.Time, ok bool) {
	channel, root, err := parseThreadKey(thread)
	switch {
	case err != nil || isCommandThread(thread):
		return "", time.Time{}, false
	case root != "":
		at = sentAt(root)
	}
	return channel, at, true
}

// ReadThread reads a thread page by page, or a conversation whole. Edits since the gap
// began are handed over as edits; our own messages are passed over.
func (a *Adapter) ReadThread(ctx context.Context, thread event.ThreadKey, read adapters.Reading) error {
	channel, root, err := parseThreadKey(thread)
	if err != nil {
		return err
	}
	r, err := a.rereads(ctx, channel, read)
	if err != nil {
		return err
	}
	if root == "" {
		r.limit = maxThread
		if err := r.channel(ctx); err != nil {
			return err
		}
		return r.hand(r.oldestFirst(), nil)
	}
	return r.thread(ctx, root)
}

// ReadChannel reads the messages of a channel or conversation that are in no thread, and
// returns the threads with replies since the gap began.
func (a *Adapter) ReadChannel(ctx context.Context, read adapters.Reading) (adapters.Found, error) {
	r, err := a.rereads(ctx, read.Gap.Channel, read)
	if err != nil {
		return adapters.Found{}, err
	}
	r.limit = read.Messages
	if err := r.channel(ctx); err != nil {
		return adapters.Found{}, err
	}
	found, list := adapters.Found{}, r.oldestFirst()
	left := map[event.ThreadKey]bool{}
	for _, m := range list {
		if root := r.repliedTo(m); root != "" {
			thread := ThreadKey(a.Workspace, event.Channel{ID: r.Gap.Channel}, "", root)
			if !left[thread] {
				found.Threads = append(found.Threads, thread)
			}
			left[thread] = true
		}
	}
	found.Cut = r.cut
	return found, r.hand(list, left)
}

// repliedTo returns the root of the thread that may have replies since the gap began, if
// the message tells: it is the root, or a reply that was also sent to the channel.
func (r *rereading) repliedTo(m pastMessage) (root string) {
	switch {
	case m.ThreadTS != "" && m.ThreadTS != m.TS:
		return m.ThreadTS
	case m.ReplyCount > 0 && isTimestamp(m.LatestReply) && !sentAt(m.LatestReply).Before(r.Gap.From):
		return m.TS
	}
	return ""
}

// rereads begins to read a gap.
func (a *Adapter) rereads(ctx context.Context, channel string, read adapters.Reading) (*rereading, error) {
	self, err := a.knownSelf(ctx)
	if err != nil {
		return nil, err
	}
	kind, err := a.kind(ctx, read.Urgent, channel)
	if err != nil {
		return nil, err
	}
	read.Gap.Channel = channel
	return &rereading{Reading: read, adapter: a, self: self, kind: kind}, nil
}

// pastMessage is a message of history, with what of it matters here.
// https://docs.slack.dev/reference/methods/conversations.history#response
type pastMessage struct {
	raw         json.RawMessage
	at          time.Time
	TS          string      `json:"ts"`
	ThreadTS    string      `json:"thread_ts"`
	User        string      `json:"user"`
	BotID       string      `json:"bot_id"`
	Subtype     string      `json:"subtype"`
	Edited      *wireEdited `json:"edited"`
	ReplyCount  int         `json:"reply_count"`
	LatestReply string      `json:"latest_reply"`
}

// readPast reads a message of history. It returns false if the value is no message.
func readPast(raw json.RawMessage) (pastMessage, bool) {
	m := pastMessage{}
	_ = json.Unmarshal(raw, &m) // Normalize reports the fault
	if !isObject(raw) || !isTimestamp(m.TS) {
		return m, false
	}
	m.raw, m.at = bytes.TrimSpace(raw), sentAt(m.TS)
	return m, true
}

// rereading is one read of a gap.
type rereading struct {
	adapters.Reading
	adapter  *Adapter
	limit    int // of the messages in the gap
	self     event.Self
	kind     string
	messages []pastMessage
	size     int
	cut      bool
}

// pages reads page after page, as long as take returns true.
func (r *rereading) pages(ctx context.Context, method, root string, take func(list []pastMessage, last bool) (more bool, err error)) error {
	query := url.Values{
		"channel": {r.Gap.Channel}, "limit": {historyPage}, "inclusive": {"true"},
		"oldest": {timestamp(r.Gap.From.Add(-editReach))}, "latest": {timestamp(r.Gap.Until)},
	}
	if root != "" {
		query.Set("ts", root)
	}
	for {
		var page messagePage
		if err := r.adapter.paced(ctx, r.Urgent, method, query, &page); err != nil {
			return err
		}
		var list []pastMessage
		for _, raw := range page.Messages {
			if m, ok := readPast(raw); ok {
				list = append(list, m)
			}
		}
		next := page.ResponseMetadata.Cursor
		last := next == "" || next == query.Get("cursor")
		if more, err := take(list, last); err != nil || !more || last {
			return err
		}
		query.Set("cursor", next)
	}
}

// channel reads the messages outside of threads, the newest first: back to the gap's
// beginning, or up to the limit.
func (r *rereading) channel(ctx context.Context) error {
	within := 0
	err := r.pages(ctx, "conversations.history", "", func(list []pastMessage, last bool) (more bool, err error) {
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

// thread hands over a thread, whose pages begin with the oldest messages. One that is
// gone has none.
func (r *rereading) thread(ctx context.Context, root string) error {
	read := 0
	err := r.pages(ctx, "conversations.replies", root, func(list []pastMessage, _ bool) (more bool, err error) {
		read += len(list)
		return read < maxThread, r.hand(list, nil)
	})
	if err != nil && !answered(err, "thread_not_found") {
		return fmt.Errorf("read slack thread %s/%s: %w", r.Gap.Channel, root, err)
	}
	return nil
}

// oldestFirst returns the messages that were read, with the newest of the gap, as many as
// the limit allows.
func (r *rereading) oldestFirst() []pastMessage {
	list := r.messages
	slices.SortFunc(list, func(a, b pastMessage) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.TS, b.TS)) })
	list = slices.CompactFunc(list, func(a, b pastMessage) bool { return a.TS == b.TS }) // pages may overlap
	first := slices.IndexFunc(list, func(m pastMessage) bool { return !m.at.Before(r.Gap.From) })
	if surplus := len(list) - first - r.limit; first >= 0 && surplus > 0 {
		list, r.cut = slices.Delete(list, first, first+surplus), true
	}
	return list
}

// hand hands over messages as events, by thread: new ones of those in the gap, and changes
// of those that were edited or removed since it began. It leaves out our own messages, and
// those of the threads that are left to ReadThread.
func (r *rereading) hand(list []pastMessage, left map[event.ThreadKey]bool) error {
	channel := orGuess((&payload{channel: r.Gap.Channel, channelType: r.kind}).told())
	var threads []event.ThreadKey
	missed := map[event.ThreadKey][]adapters.Missed{}
	for _, m := range list {
		thread := ThreadKey(r.adapter.Workspace, channel, m.TS, m.ThreadTS)
		if left[thread] || same(m.User, r.self.UserID) || same(m.BotID, r.self.BotID) {
			continue
		}
		var out adapters.Missed
		gone := m.Subtype == "tombstone"
		if !m.at.Before(r.Gap.From) && !gone {
			out.New = r.envelope(placed(m.raw, r.Gap.Channel, r.kind))
		}
		if gone || m.Edited != nil && isTimestamp(m.Edited.TS) && sentAt(m.Edited.TS).Add(editedStep).After(r.Gap.From) {
			out.Change = r.envelope(r.changed(m))
		}
		if missed[thread] == nil {
			threads = append(threads, thread)
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

func (r *rereading) envelope(inner []byte) *event.Envelope {
	return &event.Envelope{
		Workspace: r.adapter.Workspace, Platform: event.Slack, Transport: event.Backfilled,
		ReceivedAt: r.adapter.now(), Body: callback(r.self, inner),
	}
}

// placed is the event of a message of history: its own members, byte for byte, and its
// channel.
func placed(raw []byte, channel, kind string) []byte {
	body := append([]byte(nil), raw[:len(raw)-1]...) // the last of two members with one name counts
	return append(body, `,"channel":`+quoted(channel)+`,"channel_type":`+quoted(kind)+`}`...)
}

// changed is the event of its last edit, or of its going.
func (r *rereading) changed(m pastMessage) []byte {
	when := m.TS
	if m.Edited != nil {
		when = m.Edited.TS
	}
	return []byte(`{"type":"message","subtype":"message_changed","hidden":true,"channel":` + quoted(r.Gap.Channel) +
		`,"channel_type":` + quoted(r.kind) + `,"ts":` + quoted(when) + `,"message":` + string(m.raw) + `}`)
}

// quoted is a JSON string.
func quoted(s string) string {
	raw, _ := json.Marshal(s) // a text always encodes
	return string(raw)
}
