package payload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// wireAssistant is an assistant_thread_started or assistant_thread_context_changed
// event. A user has opened a thread with the app beside a channel, or has switched to
// another channel.
// https://docs.slack.dev/reference/events/assistant_thread_context_changed
type wireAssistant struct {
	EventTS string `json:"event_ts"`
	Thread  struct {
		UserID    string `json:"user_id"`
		ChannelID string `json:"channel_id"`
		ThreadTS  string `json:"thread_ts"`
		Context   struct {
			ChannelID string `json:"channel_id"`
		} `json:"context"`
	} `json:"assistant_thread"`
}

// assistantThread is the state of a thread with the app.
type assistantThread struct {
	started bool   // the user has just opened the thread
	viewed  string // the channel that the user views; empty for none
}

// readAssistant reads the channel that the user is viewing.
func (p *Payload) readAssistant(raw []byte, path string, started bool) *Payload {
	a := new(wireAssistant)
	f := fields{path: path, odd: unmarshal(raw, a, path)}
	p.channel, p.channelType, p.ts = a.Thread.ChannelID, "im", a.Thread.ThreadTS
	p.revision = a.EventTS
	f.channel("assistant_thread.channel_id", p.channel)
	f.timestamp("assistant_thread.thread_ts", p.ts)
	f.required("assistant_thread.user_id", a.Thread.UserID)
	f.timestamp("event_ts", a.EventTS)
	p.assistant = &assistantThread{started: started}
	if viewed := a.Thread.Context.ChannelID; IsID(viewed) {
		p.assistant.viewed = viewed
	}
	return p.checkFields(&f)
}

// maxViews bounds the views that are remembered for one conversation with the app, so
// that they always fit into one value of adapters.State.
const maxViews = 100

// view is a change of the channel that a user views beside an assistant thread.
type view struct {
	Thread  string `json:"thread"`            // the thread's thread_ts
	At      string `json:"at"`                // the event's ts
	Channel string `json:"channel,omitempty"` // empty if the user views no channel
}

// views are the views of one conversation with the app, oldest first.
type views []view

// viewsName is the name of a conversation's views in adapters.State.
func viewsName(channel string) string { return "viewed/" + channel }

// at returns the channel that the user viewed beside a thread at a time; empty for none.
// The zero time is now.
func (v views) at(thread string, when time.Time) string {
	for _, one := range slices.Backward(v) {
		if one.Thread == thread && (when.IsZero() || !SentAt(one.At).After(when)) {
			return one.Channel
		}
	}
	return ""
}

// add returns the views with one more. Changed reports whether it changes the channel
// that the user views now. Adding the same view again has the same result.
func (v views) add(n view) (all views, changed bool) {
	all = slices.DeleteFunc(slices.Clone(v), func(o view) bool { return o.Thread == n.Thread && o.At == n.At })
	isLater := func(o view) bool { return o.Thread == n.Thread && SentAt(o.At).After(SentAt(n.At)) }
	changed = !slices.ContainsFunc(all, isLater) && all.at(n.Thread, time.Time{}) != n.Channel
	all = append(all, n)
	slices.SortStableFunc(all, func(a, b view) int { return SentAt(a.At).Compare(SentAt(b.At)) })
	return all, changed
}

// rememberView stores the channel that the user views beside an assistant thread.
func (p *Payload) rememberView(ctx context.Context, state adapters.State) (event.Event, error) {
	changed := false
	err := adapters.UpdateList(ctx, state, viewsName(p.channel), func(list []view) []view {
		list, changed = views(list).add(view{Thread: p.ts, At: p.revision, Channel: p.assistant.viewed})
		return list[max(0, len(list)-maxViews):]
	})
	switch {
	case err != nil:
		return event.Event{}, fmt.Errorf("store the viewed channel: %w", err)
	case !changed:
		return event.Event{Kind: p.kind, Ignored: event.ReasonNoChange}, nil
	}
	return event.Event{Kind: p.kind}, nil
}

// addView adds to a message of an assistant thread the channel that the user viewed at
// its time, as the metadata key slack_context_channel_id. So an edited message keeps the
// channel of its first state.
func addView(ctx context.Context, m *event.Message, state adapters.State) error {
	channel, root, err := ParseThreadKey(m.Thread)
	if err != nil || root == "" || !IsDirect(channel) {
		return nil
	}
	list, err := adapters.GetList[view](ctx, state, viewsName(channel))
	if err != nil {
		return fmt.Errorf("read the viewed channel: %w", err)
	}
	viewed := views(list).at(root, m.SentAt)
	m.Metadata.Extra = slices.Concat(m.Metadata.Extra, extra("slack_context_channel_id", viewed))
	return nil
}
