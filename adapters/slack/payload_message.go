package slack

import "parley/ingest/event"

func (p *payload) readMessage(raw []byte, path, subtype string) *payload {
	switch subtype {
	case "message_changed":
		return p.readEdit(raw, path)
	case "message_deleted":
		return p.readDelete(raw, path)
	case "message_replied": // tells of a reply that comes as a message, too
		return p.ignore(event.ReasonNotAnEvent)
	case "channel_join", "channel_leave", "group_join", "group_leave":
		p.kind = event.KindMember
		return p.ignore(event.ReasonMember)
	default:
		return p.readWords(raw, path)
	}
}

// readWords reads a message that somebody said.
func (p *payload) readWords(raw []byte, path string) *payload {
	p.kind = event.KindMessage
	m := new(wireMessage)
	f := fields{path: path, faults: unmarshal(raw, m, path)}
	if !p.mention && !isWords(m) {
		return p.ignore(event.ReasonSystemMessage)
	}
	p.message, p.channel, p.channelType, p.ts = m, m.Channel, m.ChannelType, m.TS
	f.channel("channel", m.Channel)
	f.message(m)
	return p.settle(&f)
}

// message asks for what every message has, wherever it stands.
func (f *fields) message(m *wireMessage) {
	f.timestamp("ts", m.TS)
	if m.ThreadTS != "" {
		f.timestamp("thread_ts", m.ThreadTS)
	}
	if m.author() == "" {
		f.present("user", "")
	}
}

// isWords says whether a message carries somebody's words. Other subtypes are
// sentences that Slack makes of what people do ("set the channel topic"), and
// must not stand in their name. A client_msg_id tells what was typed in a
// client, whatever subtype it has.
// https://docs.slack.dev/reference/events/message#subtypes
func isWords(m *wireMessage) bool {
	switch m.Subtype {
	case "", "bot_message", "file_share", "me_message", "thread_broadcast", "slackbot_response":
		return true
	default:
		return m.ClientMsgID != ""
	}
}
