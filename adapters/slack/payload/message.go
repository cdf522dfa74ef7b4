package payload

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/ingest/event"
)

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
	if m.User == platformUser {
		return false
	}
	switch m.Subtype {
	case "", "bot_message", "file_share", "me_message", "thread_broadcast", "slackbot_response":
		return true
	default:
		return m.ClientMsgID != ""
	}
}

// readEdit reads a message_changed. Slack also sends it without an edit by a user: for
// an unfurled link, for a new reply count, and for the echo of a broadcast reply.
func (p *Payload) readEdit(raw []byte, path string) *Payload {
	p.kind = event.KindEdit
	var change wireChange
	f := fields{path: path, odd: unmarshal(raw, &change, path)}
	f.channel("channel", change.Channel)
	now := new(Message)
	f.path += "message."
	f.odd = append(f.odd, unmarshal(change.Message, now, f.path)...)
	p.message, p.channel, p.channelType, p.ts = now, change.Channel, change.ChannelType, now.TS
	switch {
	case now.Subtype == "tombstone": // the root of a thread is deleted and its replies stay
		p.kind, p.message = event.KindDelete, nil
		f.timestamp("ts", now.TS)
		return p.checkFields(&f)
	case IsObject(change.Message) && !isUserMessage(now):
		return p.ignore(event.ReasonSystemMessage)
	}
	f.message(now)
	before := change.before()
	if len(f.faults) == 0 && !changed(before, now) {
		return p.ignore(event.ReasonNoChange)
	}
	if p.revision = revision(before, now); p.revision == "" {
		f.path = path
		f.timestamp("ts", change.TS)
		p.revision = change.TS
	}
	return p.checkFields(&f)
}

// before returns the earlier state of the message, as far as it can be decoded; its
// only use is a comparison. It returns nil if the payload does not contain the earlier
// state.
func (c *wireChange) before() *Message {
	if !IsObject(c.PreviousMessage) {
		return nil
	}
	before := new(Message)
	_ = json.Unmarshal(c.PreviousMessage, before)
	return before
}

// changed reports whether the text, the files or the messages in a message differ from before. The
// transcription of a clip, and the message behind a permalink, come after their message. A typed "<@U1>" that becomes a mention is a change of the encoded text alone. If the payload does
// not contain the earlier state, changed reports whether the message has an edit time.
func changed(before, now *Message) bool {
	if before == nil {
		return now.editedAt() != ""
	}
	return before.content() != now.content() || !slices.Equal(before.shared(), now.shared()) || strings.Count(before.encoded(), "<@") != strings.Count(now.encoded(), "<@") || !slices.EqualFunc(before.Files, now.Files, func(a, b File) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Mode == b.Mode && a.isBeingProcessed() == b.isBeingProcessed() && a.words() == b.words()
	})
}

// shared returns the messages that a message shows: their channels, times and texts.
func (m *Message) shared() (list []string) {
	for _, a := range attachments(m.Attachments) {
		if a.showsMessage() {
			list = append(list, a.ChannelID+"/"+a.TS+" "+a.Text)
		}
	}
	return list
}

// revision returns the time of the edit, which distinguishes the states of a message.
// It is empty if no user edited the message: Slack changes a message without an edit if
// a bot streams text into it or if a file is removed.
func revision(before, now *Message) string {
	if before != nil && before.editedAt() == now.editedAt() {
		return ""
	}
	return now.editedAt()
}

// editedAt returns the time of the last edit; empty if there is none.
func (m *Message) editedAt() string {
	if m.Edited == nil {
		return ""
	}
	return m.Edited.TS
}

func (p *Payload) readDelete(raw []byte, path string) *Payload {
	p.kind = event.KindDelete
	var change wireChange
	f := fields{path: path, odd: unmarshal(raw, &change, path)}
	p.channel, p.channelType, p.ts = change.Channel, change.ChannelType, change.DeletedTS
	f.channel("channel", p.channel)
	f.timestamp("deleted_ts", p.ts)
	return p.checkFields(&f)
}
