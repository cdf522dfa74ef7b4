package payload

import "parley/ingest/event"

func (p *Payload) readMessage(raw []byte, path, subtype string) *Payload {
	switch subtype {
	case "message_changed":
		return p.readEdit(raw, path)
	case "message_deleted":
		return p.readDelete(raw, path)
	case "message_replied": // reports a reply that also arrives as a message
		return p.ignore(event.ReasonNotAnEvent)
	case "channel_join", "channel_leave", "group_join", "group_leave":
		p.kind = event.KindMember
		return p.ignore(event.ReasonMember)
	default:
		return p.readUserMessage(raw, path)
	}
}

// readUserMessage reads a message that a user or an app wrote.
func (p *Payload) readUserMessage(raw []byte, path string) *Payload {
	p.kind = event.KindMessage
	m := new(Message)
	f := fields{path: path, odd: unmarshal(raw, m, path)}
	if !p.mention && !isUserMessage(m) {
		return p.ignore(event.ReasonSystemMessage)
	}
	p.message, p.channel, p.channelType, p.ts = m, m.Channel, m.ChannelType, m.TS
	f.channel("channel", m.Channel)
	f.message(m)
	return p.checkFields(&f)
}

// message checks the fields that every message has, in a message event or inside a
// message_changed.
func (f *fields) message(m *Message) {
	f.formed("subtype", "text", "thread_ts")
	f.timestamp("ts", m.TS)
	if m.ThreadTS != "" {
		f.timestamp("thread_ts", m.ThreadTS)
	}
	if m.author() == "" {
		f.formed("bot_id")
		f.required("user", "")
	}
}

// isUserMessage reports whether a user or an app wrote the message. For other subtypes
// Slack writes a sentence about a user's action ("set the channel topic"), which must
// not appear as that user's words. A client_msg_id marks a message typed in a client,
// whatever its subtype.
// https://docs.slack.dev/reference/events/message#subtypes
func isUserMessage(m *Message) bool {
	switch m.Subtype {
	case "", "bot_message", "file_share", "me_message", "thread_broadcast", "slackbot_response":
		return true
	default:
		return m.ClientMsgID != ""
	}
}
