package discord

import (
	"time"

	"parley/ingest/event"
)

// Types of messages that are somebody's words; all others are the platform's.
// https://docs.discord.com/developers/resources/message#message-object-message-types
const (
	typeDefault            = 0
	typeReply              = 19
	typeChatInputCommand   = 20
	typeContextMenuCommand = 23
)

// Flags of a message.
// https://docs.discord.com/developers/resources/message#message-object-message-flags
const (
	flagCrosspost = 1 << 1 // copied here from a channel that is followed
	flagLoading   = 1 << 7 // a bot's answer that is still to come
)

// referenceDefault is the type of a reference that is not a forward's.
// https://docs.discord.com/developers/resources/message#message-reference-types
const referenceDefault = 0

// message is Discord's message object, as far as we read it.
type message struct {
	id        string
	channel   event.Channel
	threaded  bool // the channel is a thread or a forum post
	kind      int64
	flags     int64
	author    user
	hasAuthor bool // false in some updates
	content   string
	files     []event.Attachment
	sent      time.Time
	edited    time.Time
	mentioned []user
	reference reference
	quoted    *message // what a reply answers, where the payload carries it
	forwarded []message
}

// reference is how a message points at another.
type reference struct {
	kind      int64
	messageID string
}

// readMessage reads a message that the gateway tells of.
func readMessage(d object) message {
	m := readWords(d)
	m.id = d.requiredSnowflake("id")
	m.author, m.hasAuthor = readAuthor(d)
	m.author.nick = readNick(d)
	m.readPlace(d)
	for _, mention := range d.children("mentions") {
		m.mentioned = append(m.mentioned, readUser(mention))
	}
	m.readReference(d)
	return m
}

// readPlace reads where the message is. Only threads count positions, and an
// update without an author need not tell its guild.
// https://docs.discord.com/developers/resources/message#message-object-message-structure
func (m *message) readPlace(d object) {
	id, guild, channelType := d.requiredSnowflake("channel_id"), d.snowflake("guild_id"), d.number("channel_type")
	m.threaded = isThread(channelType) || d.has("position")
	m.channel = placeOf(id, guild)
	if m.hasAuthor {
		m.channel = channelOf(id, guild, channelType)
	}
}

// readWords reads what a message, a quoted and a forwarded one have in common.
func readWords(d object) message {
	return message{
		kind:    d.number("type"),
		flags:   d.number("flags"),
		content: readContent(d),
		files:   readFiles(d),
		sent:    d.time("timestamp"),
		edited:  d.time("edited_timestamp"),
	}
}

func (m *message) readReference(d object) {
	if r, ok := d.child("message_reference"); ok {
		m.reference = reference{r.number("type"), r.snowflake("message_id")}
	}
	for _, snapshot := range d.children("message_snapshots") {
		if inner, ok := snapshot.child("message"); ok {
			m.forwarded = append(m.forwarded, readWords(inner))
		}
	}
	if inner, ok := d.child("referenced_message"); ok && m.answers() != "" {
		m.quoted = readQuoted(inner, m.mentioned)
	}
}

// readQuoted reads the message that a reply answers. Its author comes without
// the name that this guild knows; the list of mentions may have it.
func readQuoted(d object, mentioned []user) *message {
	m := readWords(d)
	m.id = d.snowflake("id")
	m.author, m.hasAuthor = readAuthor(d)
	for _, u := range mentioned {
		if u.id == m.author.id {
			m.author.nick = u.nick
		}
	}
	return &m
}

// answers is the id of the message that this one replies to, empty for none. A
// copy from a followed channel, a forward and a bot's answer to a command point
// at messages too, but reply to none.
func (m *message) answers() string {
	forward := m.reference.kind != referenceDefault || len(m.forwarded) > 0
	if forward || m.flags&flagCrosspost != 0 || m.kind != typeReply && m.kind != typeDefault {
		return ""
	}
	return m.reference.messageID
}

// spoken says that the message is a person's or a bot's words.
func (m *message) spoken() bool {
	switch m.kind {
	case typeDefault, typeReply, typeChatInputCommand, typeContextMenuCommand:
		return true
	}
	return false
}

// answersLate says that an update brings the words of a bot that had answered a
// command with "is thinking…". Such an update is no edit to Discord, and looks
// like the repetition of an answer that was given at once.
func (m *message) answersLate() bool {
	command := m.kind == typeChatInputCommand || m.kind == typeContextMenuCommand
	return command && m.hasAuthor && m.edited.IsZero() && m.flags&flagLoading == 0
}

// sentAt is the message's timestamp, or when its id was made.
func (m *message) sentAt() time.Time {
	if m.sent.IsZero() {
		return snowflakeTime(m.id)
	}
	return m.sent
}

// revision is the time of the last edit in milliseconds, empty for none: the
// update that brings an edited message its preview cuts the microseconds off.
func (m *message) revision() string {
	if m.edited.IsZero() {
		return ""
	}
	return m.edited.Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00")
}
