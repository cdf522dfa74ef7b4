package slack

import "parley/ingest/event"

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

// readAssistant reads the channel that the user is viewing. The user's later messages
// in the thread carry it as the metadata key slack_context_channel_id.
func (p *payload) readAssistant(raw []byte, path string, opened bool) *payload {
	a := new(wireAssistant)
	f := fields{path: path, faults: unmarshal(raw, a, path)}
	p.channel, p.channelType, p.ts = a.Thread.ChannelID, "im", a.Thread.ThreadTS
	p.revision = a.EventTS
	f.channel("assistant_thread.channel_id", p.channel)
	f.timestamp("assistant_thread.thread_ts", p.ts)
	f.required("assistant_thread.user_id", a.Thread.UserID)
	f.timestamp("event_ts", a.EventTS)
	p.viewing = &event.Viewing{SenderID: senderID(a.Thread.UserID), At: sentAt(a.EventTS), Opened: opened}
	if viewed := a.Thread.Context.ChannelID; isID(viewed) {
		p.viewing.Extra = extra("slack_context_channel_id", viewed)
	}
	return p.checkFields(&f)
}
