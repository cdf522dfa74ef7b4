package payload

import (
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// message contains the fields of Discord's message object that the adapter uses.
type message struct {
	id        string
	guild     string // empty for direct messages, and in some updates
	channel   event.Channel
	threaded  bool // the channel is a thread or a forum post
	kind      discordgo.MessageType
	flags     discordgo.MessageFlags
	author    user
	hasAuthor bool   // false in some updates
	nonce     string // of a post of ours
	content   string
	files     []event.Attachment
	allFiles  bool // of an edit: the message has no other files now
	sent      time.Time
	edited    time.Time
	names     event.Names // of the tokens in the content
	mentioned []user
	roles     []string // mentioned
	everyone  bool     // the message mentions everybody, or everybody who is online
	reference reference
	quoted    *message // the message that this one replies to, if the payload contains it
	forwarded []message

	// Of an interaction: how it addresses us, the name of a command that asks the agent
	// nothing, the post with the used component, and metadata.
	asked   event.Addressed
	command string
	pressed string // the id of a pressed button of ours; empty for none
	holder  string
	extra   []event.Extra
}

// reference is a message's reference to another message.
type reference struct {
	kind      discordgo.MessageReferenceType
	guild     string // empty for a message of a direct chat
	channelID string
	messageID string
}

// readMessage reads the message of a gateway event.
func readMessage(d jsonobject.Fields) message {
	m := readBody(d)
	m.id = requiredSnowflake(d, "id")
	m.author.nick, m.author.hasMember = readNick(d), d.Has("member")
	if member, ok := d.Child("member"); ok {
		m.author.roles = readRoles(member)
	}
	m.readPlace(d)
	if d.Has("mention_roles") {
		d.Decode("mention_roles", "a list of ids", &m.roles)
	}
	for _, mention := range d.Children("mentions") {
		m.mentioned = append(m.mentioned, readUser(mention))
	}
	m.everyone = d.Flag("mention_everyone")
	m.nonce = strings.Trim(string(d.Raw("nonce")), `"`) // other programs send numbers
	m.readReference(d)
	return m
}

// readPlace reads the message's channel. Only messages of threads have a position. An update
// without an author need not contain the guild.
// https://docs.discord.com/developers/resources/message#message-object-message-structure
func (m *message) readPlace(d jsonobject.Fields) {
	m.guild = snowflake(d, "guild_id")
	m.setPlace(requiredSnowflake(d, "channel_id"), discordgo.ChannelType(d.Number("channel_type")))
	m.threaded = m.threaded || d.Has("position")
}

// setPlace sets the channel of a message in m.guild.
func (m *message) setPlace(id string, channelType discordgo.ChannelType) {
	m.threaded = (&discordgo.Channel{Type: channelType}).IsThread()
	m.channel = targetChannel(id, m.guild)
	if m.hasAuthor {
		m.channel = messageChannel(id, m.guild, channelType)
	}
}

// readBody reads the fields that a message has in common with a quoted one.
func readBody(d jsonobject.Fields) message {
	author, ok := readAuthor(d)
	m := readContents(d, author.bot)
	m.author, m.hasAuthor = author, ok
	m.kind, m.flags = discordgo.MessageType(d.Number("type")), discordgo.MessageFlags(d.Number("flags"))
	m.edited = timestamp(d, "edited_timestamp")
	return m
}

// readContents reads the fields that a message has in common with a forwarded one. See readWords
// for follow.
func readContents(d jsonobject.Fields, follow bool) message {
	content := readWords(d, follow)
	return message{
		content: content,
		names:   readNames(d.Optional()).In(content),
		files:   readFiles(d),
		sent:    timestamp(d.Optional(), "timestamp"),
	}
}

func (m *message) readReference(d jsonobject.Fields) {
	if r, ok := d.Child("message_reference"); ok {
		m.reference = reference{discordgo.MessageReferenceType(r.Number("type")), snowflake(r, "guild_id"), snowflake(r, "channel_id"), snowflake(r, "message_id")}
	}
	for _, snapshot := range d.Children("message_snapshots") {
		if inner, ok := snapshot.Child("message"); ok {
			m.forwarded = append(m.forwarded, readContents(inner, true))
		}
	}
	if inner, ok := d.Optional().Child("referenced_message"); ok && m.repliedTo() != "" {
		m.quoted = readQuoted(inner, m.mentioned)
	}
}

// readQuoted reads the message that a reply refers to. Its author has no nickname of this
// guild; the list of mentions may contain it.
func readQuoted(d jsonobject.Fields, mentioned []user) *message {
	m := readBody(d)
	m.id = snowflake(d, "id")
	for _, u := range mentioned {
		if u.id == m.author.id {
			m.author.nick = u.nick
		}
	}
	return &m
}

// repliedTo returns the id of the message that this one replies to, or an empty string. A
// copy from a followed channel, a forward and a bot's response to a command refer to messages
// too, but they are not replies.
func (m *message) repliedTo() string {
	if m.forwards() || m.flags&discordgo.MessageFlagsIsCrossPosted != 0 || m.kind != discordgo.MessageTypeReply && m.kind != discordgo.MessageTypeDefault {
		return ""
	}
	return m.reference.messageID
}

// attached returns the files of the message and of the messages that it forwards.
func (m *message) attached() []event.Attachment {
	all := slices.Clone(m.files)
	if m.quoted != nil {
		all = append(all, m.quoted.files...)
	}
	for i := range m.forwarded {
		all = append(all, m.forwarded[i].files...)
	}
	return all
}

// forwards reports whether the message forwards another one.
func (m *message) forwards() bool {
	return m.reference.kind != discordgo.MessageReferenceTypeDefault || len(m.forwarded) > 0
}

// authored reports whether a person or a bot wrote the message. Discord writes those of all other
// types.
func (m *message) authored() bool {
	switch m.kind {
	case discordgo.MessageTypeDefault, discordgo.MessageTypeReply, discordgo.MessageTypeChatInputCommand, discordgo.MessageTypeContextMenuCommand:
		return true
	}
	return false
}

// isDeferredResponse reports whether an update contains the text of a bot that had deferred
// its response to a command ("is thinking…"). Discord does not mark such an update as an
// edit. It looks like a repetition of an immediate response.
func (m *message) isDeferredResponse() bool {
	command := m.kind == discordgo.MessageTypeChatInputCommand || m.kind == discordgo.MessageTypeContextMenuCommand
	return command && m.hasAuthor && m.edited.IsZero() && m.flags&discordgo.MessageFlagsLoading == 0
}

// sentAt returns the message's timestamp, or the time in its id if it has none.
func (m *message) sentAt() time.Time {
	if m.sent.IsZero() {
		return TimeOf(m.id)
	}
	return m.sent
}

// revision returns the time of the last edit in milliseconds, or an empty string. The update
// with the preview of an edited message omits the microseconds.
func (m *message) revision() string {
	if m.edited.IsZero() {
		return ""
	}
	return m.edited.Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z07:00")
}

// maxTime bounds a timestamp in bytes, since it becomes part of a key. Discord's have 32.
const maxTime = 40

// timestamp reads a time. It is the zero time if the member is missing or empty.
func timestamp(d jsonobject.Fields, key string) time.Time {
	s := d.Text(key)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || len(s) > maxTime {
		d.Fault(key, "must be a time such as 2026-01-31T12:00:00.000000+00:00")
		return time.Time{}
	}
	return t.UTC()
}
