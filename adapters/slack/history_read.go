package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// editReach is how long before a gap a message may have been said of which an
	// edit in the gap is noticed, as far as the pages that are read anyway reach.
	editReach = time.Hour
	// editedStep is how far the time of an edit is cut off: Slack tells it in seconds.
	editedStep = time.Second
	// missedBytes bounds what is read of one gap.
	missedBytes = 64 << 20
)

// Missed reads the channel, and those of its threads in which something was said
// since, and hands the messages over as the events by which Slack tells of them. What
// was edited meanwhile is handed over as an edit too; our own messages are passed over.
func (a *Adapter) Missed(ctx context.Context, gap event.Gap, bounds adapters.Bounds, hand adapters.Hand) (cut bool, err error) {
	self, err := a.knownSelf(ctx)
	if err != nil {
		return false, err
	}
	kind, err := a.kind(ctx, gap.Place)
	if err != nil {
		return false, err
	}
	r := &rereading{adapter: a, gap: gap, limit: bounds.Messages, self: self, kind: kind, messages: map[string]pastMessage{}}
	if err := r.channel(ctx); err != nil {
		return false, err
	}
	for _, root := range r.roots(bounds.Threads) {
		if err := r.thread(ctx, root); err != nil {
			return false, err
		}
	}
	return r.cut, r.hand(hand)
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

// readPast reads a message of history; false for what is none.
func readPast(raw json.RawMessage) (pastMessage, bool) {
	m := pastMessage{}
	_ = json.Unmarshal(raw, &m) // who normalises it says what is wrong with it
	if !isObject(raw) || !isTimestamp(m.TS) {
		return m, false
	}
	m.raw, m.at = bytes.TrimSpace(raw), sentAt(m.TS)
	return m, true
}

// rereading is the reading of one gap.
type rereading struct {
	adapter  *Adapter
	gap      event.Gap
	limit    int
	self     event.Self
	kind     string
	messages map[string]pastMessage // by ts
	size     int
	cut      bool
}

// take keeps a page's messages. It returns how many were said in the gap, and
// whether some were said before it.
func (r *rereading) take(page *messagePage) (within int, before bool) {
	for _, raw := range page.Messages {
		m, ok := readPast(raw)
		if !ok {
			continue
		}
		if m.at.Before(r.gap.From) {
			before = true
		} else {
			within++
		}
		if _, again := r.messages[m.TS]; !again {
			r.messages[m.TS] = m
			r.size += len(raw)
		}
	}
	r.cut = r.cut || r.size > missedBytes
	return within, before
}

// pages reads page after page, as long as more says so.
func (r *rereading) pages(ctx context.Context, method, root string, more func(within int, before bool) bool) error {
	query := url.Values{
		"channel": {r.gap.Place}, "limit": {historyPage}, "inclusive": {"true"},
		"oldest": {timestamp(r.gap.From.Add(-editReach))}, "latest": {timestamp(r.gap.Until)},
	}
	if root != "" {
		query.Set("ts", root)
	}
	for {
		var page messagePage
		if err := r.adapter.unhurried(ctx, method, query, &page); err != nil {
			return err
		}
		within, before := r.take(&page)
		next := page.ResponseMetadata.Cursor
		if next == "" || next == query.Get("cursor") || r.size > missedBytes || !more(within, before) {
			return nil
		}
		query.Set("cursor", next)
	}
}

// channel reads what was said outside of threads, the newest first: back to the gap's
// beginning, or until there is enough.
func (r *rereading) channel(ctx context.Context) error {
	read := 0
	err := r.pages(ctx, "conversations.history", "", func(within int, before bool) bool {
		read += within
		r.cut = r.cut || read >= r.limit && !before
		return read < r.limit && !before
	})
	if err != nil {
		return fmt.Errorf("read slack channel %s: %w", r.gap.Place, err)
	}
	return nil
}

// roots are the threads in which something may have been said in the gap: those that
// say so, and of the lively ones those that nothing is known of.
func (r *rereading) roots(lively []event.ThreadKey) []string {
	roots := map[string]bool{}
	for ts, m := range r.messages {
		if m.ReplyCount > 0 && isTimestamp(m.LatestReply) && !sentAt(m.LatestReply).Before(r.gap.From) {
			roots[ts] = true
		}
	}
	for _, key := range lively {
		channel, root, err := parseThreadKey(key)
		if _, seen := r.messages[root]; err == nil && channel == r.gap.Place && root != "" && !seen {
			roots[root] = true
		}
	}
	return slices.Sorted(maps.Keys(roots))
}

// thread reads what was said in a thread, the oldest first. One that is gone has nothing.
func (r *rereading) thread(ctx context.Context, root string) error {
	read := 0
	err := r.pages(ctx, "conversations.replies", root, func(within int, _ bool) bool {
		read += within
		return read < maxThread
	})
	if err != nil && !answered(err, "thread_not_found") {
		return fmt.Errorf("read slack thread %s/%s: %w", r.gap.Place, root, err)
	}
	return nil
}

// maxThread bounds what is read of one thread.
const maxThread = 10_000

// hand hands over what was read, the oldest first.
func (r *rereading) hand(hand adapters.Hand) error {
	list := slices.SortedFunc(maps.Values(r.messages), func(a, b pastMessage) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.TS, b.TS))
	})
	first := slices.IndexFunc(list, func(m pastMessage) bool { return !m.at.Before(r.gap.From) })
	if first < 0 {
		first = len(list)
	}
	if surplus := len(list) - first - r.limit; surplus > 0 {
		list, r.cut = slices.Delete(list, first, first+surplus), true
	}
	for i, m := range list {
		if same(m.User, r.self.UserID) || same(m.BotID, r.self.BotID) {
			continue
		}
		if err := r.tell(m, i >= first, hand); err != nil {
			return err
		}
	}
	return nil
}

// tell hands over one message: as new where it was said in the gap, and as changed
// where it is known and may not be as it was.
func (r *rereading) tell(m pastMessage, within bool, hand adapters.Hand) error {
	gone := m.Subtype == "tombstone"
	edited := m.Edited != nil && isTimestamp(m.Edited.TS) && sentAt(m.Edited.TS).Add(editedStep).After(r.gap.From)
	if within && !gone {
		known, err := hand(m.at, r.envelope(r.said(m)))
		if err != nil || !known {
			return err
		}
	}
	if !gone && !edited {
		return nil
	}
	_, err := hand(m.at, r.envelope(r.changed(m)))
	return err
}

func (r *rereading) envelope(inner []byte) event.Envelope {
	return event.Envelope{
		Workspace: r.adapter.Workspace, Platform: event.Slack, Transport: event.CatchUp,
		ReceivedAt: r.adapter.now(), Body: callback(r.self, inner),
	}
}

// said is the event of a message: its own members, byte for byte, and where it was said.
func (r *rereading) said(m pastMessage) []byte { return placed(m.raw, r.gap.Place, r.kind) }

// placed adds to a message of history what its event has beside.
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
	return []byte(`{"type":"message","subtype":"message_changed","hidden":true,"channel":` + quoted(r.gap.Place) +
		`,"channel_type":` + quoted(r.kind) + `,"ts":` + quoted(when) + `,"message":` + string(m.raw) + `}`)
}

// quoted is a JSON string.
func quoted(s string) string {
	raw, _ := json.Marshal(s) // a text always encodes
	return string(raw)
}
