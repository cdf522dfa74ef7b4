package payload

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
