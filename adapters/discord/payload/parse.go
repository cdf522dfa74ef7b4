package payload

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// Payload contains the fields of a gateway frame that the adapter uses.
type Payload struct {
	// err names every faulty field; nil for none. With it, only kind is certain, if the frame names one.
	err     error
	kind    event.Kind
	ignored string // the reason for recording nothing, or empty
	dedupe  string // empty if the key is a hash of the body
	guild   string // empty outside of servers
	channel event.Channel
	// targets contains the ids of the messages that the payload creates, changes or refers
	// to: at least one if channel is set.
	targets  []string
	message  *message        // of a message or an edit
	reaction *event.Reaction // of a reaction
}

// Of returns the envelope's Parsed, or reads its body.
func Of(envelope event.Envelope) *Payload {
	if p, ok := envelope.Parsed.(*Payload); ok {
		return p
	}
	p := &Payload{kind: event.KindOther}
	p.err = p.read(envelope.Body)
	return p
}

// read reads a frame. Its error names every faulty field.
func (p *Payload) read(body []byte) error {
	frame, err := jsonobject.Parse(body)
	if err != nil {
		return err
	}
	name := dispatch(frame)
	if p.kind, p.ignored = classify(name); p.ignored != "" {
		return nil
	}
	d, ok := frame.RequiredChild("d")
	if ok {
		switch p.kind {
		case event.KindOther:
			p.readInteraction(d)
		case event.KindMessage:
			p.readCreate(d)
		case event.KindEdit:
			p.readUpdate(d)
		case event.KindDelete:
			p.readDelete(name, d)
		case event.KindReaction:
			p.readReaction(name, frame, d)
		}
	}
	if frame.Err() == nil { // each fault is reported once
		p.guild = snowflake(d, "guild_id")
	}
	if parent := snowflake(frame, "parent_id"); parent != "" {
		p.SetParent(parent)
	}
	return frame.Err()
}

// SetParent notes the channel of the thread in which the event happened.
func (p *Payload) SetParent(parent string) {
	p.channel.Parent = parent
	if p.message != nil {
		p.message.channel.Parent = parent
	}
}

// dispatch returns the name of the dispatched event. It is empty if the object is not a
// dispatch frame.
// https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway
func dispatch(frame jsonobject.Fields) string {
	var name string
	if string(frame.Raw("op")) != "0" || json.Unmarshal(frame.Raw("t"), &name) != nil {
		return ""
	}
	return name
}

// classify returns the kind of a dispatched event. It also returns a reason if the name alone
// decides that the event is ignored. The kind of an interaction is in its data.
// https://docs.discord.com/developers/events/gateway-events#receive-events
func classify(name string) (event.Kind, string) {
	switch name {
	case "MESSAGE_CREATE":
		return event.KindMessage, ""
	case "MESSAGE_UPDATE":
		return event.KindEdit, ""
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		return event.KindDelete, ""
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE",
		"MESSAGE_REACTION_REMOVE_ALL", "MESSAGE_REACTION_REMOVE_EMOJI":
		return event.KindReaction, ""
	case "GUILD_MEMBER_ADD", "GUILD_MEMBER_REMOVE", "GUILD_MEMBER_UPDATE":
		return event.KindMember, event.ReasonMember
	case "INTERACTION_CREATE":
		return event.KindOther, ""
	}
	return event.KindOther, event.ReasonNotAnEvent
}

func (p *Payload) readCreate(d jsonobject.Fields) {
	m := readMessage(d)
	if !m.hasAuthor {
		d.Fault("author", "is required: an object")
	}
	p.place(m.channel, m.id)
	switch {
	case m.flags&discordgo.MessageFlagsLoading != 0:
		p.ignored = event.ReasonSystemMessage // the response is deferred; an update brings its text
	case !m.authored():
		p.dedupe, p.ignored = "message:"+m.id, event.ReasonSystemMessage
	default:
		p.dedupe, p.message = "message:"+m.id, &m
	}
}

func (p *Payload) readUpdate(d jsonobject.Fields) {
	if author, ok := d.Child("author"); ok && !author.Has("id") { // a thread was opened on the message
		p.place(readPlace(d), requiredSnowflake(d, "id"))
		p.ignored = event.ReasonNoChange
		return
	}
	m := readMessage(d)
	p.place(m.channel, m.id)
	switch {
	case m.isDeferredResponse():
		p.kind, p.dedupe, p.message = event.KindMessage, "message:"+m.id, &m
	case m.edited.IsZero() || !d.Has("content"):
		p.ignored = event.ReasonNoChange
	case !m.authored():
		p.ignored = event.ReasonSystemMessage
	default:
		m.allFiles = d.Has("attachments") && (!m.forwards() || len(m.forwarded) > 0) && (m.repliedTo() == "" || m.quoted != nil)
		p.dedupe, p.message = "edit:"+m.id+":"+d.Text("edited_timestamp"), &m
	}
}

func (p *Payload) readDelete(name string, d jsonobject.Fields) {
	if name == "MESSAGE_DELETE" {
		id := requiredSnowflake(d, "id")
		p.place(readPlace(d), id)
		p.dedupe = "delete:" + id
		return
	}
	ids := snowflakes(d, "ids")
	p.place(readPlace(d), ids...)
	p.dedupe = "delete:" + adapters.Digest([]byte(strings.Join(slices.Sorted(slices.Values(ids)), ",")))
}

func (p *Payload) readReaction(name string, frame, d jsonobject.Fields) {
	p.place(readPlace(d), requiredSnowflake(d, "message_id"))
	p.dedupe = readPosition(frame)
	p.reaction = &event.Reaction{Removed: name != "MESSAGE_REACTION_ADD"}
	switch name {
	case "MESSAGE_REACTION_REMOVE_ALL":
		p.reaction.All = true
	case "MESSAGE_REACTION_REMOVE_EMOJI":
		p.reaction.All = true
		p.reaction.Emoji = readEmoji(d)
	default:
		by := readReactor(d)
		p.reaction.SenderID, p.reaction.MentionToken = senderID(by.id), by.mentionToken()
		if by.name() != by.id {
			p.reaction.SenderName, p.reaction.SenderType = by.name(), by.senderType()
		}
		p.reaction.Emoji = readEmoji(d)
	}
}

func (p *Payload) place(channel event.Channel, targets ...string) {
	p.channel, p.targets = channel, targets
}

// maxSession bounds a session id in bytes, since it becomes part of a key. Discord's have 32.
const maxSession = 128

// readPosition returns a key of the gateway session and the frame's sequence number in it. It
// is empty if either is missing.
func readPosition(frame jsonobject.Fields) string {
	session, sequence := frame.ShortText("session_id", maxSession), frame.Number("s")
	if session == "" || !frame.Has("s") {
		return ""
	}
	return "reaction:" + session + ":" + strconv.FormatInt(sequence, 10)
}

func readPlace(d jsonobject.Fields) event.Channel {
	return targetChannel(requiredSnowflake(d, "channel_id"), snowflake(d, "guild_id"))
}

// readEmoji returns a reaction's emoji in the API's form: the emoji itself, or "name:id" for
// a guild's custom emoji. The name of a removed custom emoji is null.
// https://docs.discord.com/developers/resources/emoji#emoji-object
func readEmoji(d jsonobject.Fields) string {
	emoji, ok := d.RequiredChild("emoji")
	name, id := emoji.Text("name"), snowflake(emoji, "id")
	switch {
	case id == "" && name == "" && ok:
		emoji.Fault("name", "is required if there is no id")
	case name == "":
		return id
	case id != "":
		return name + ":" + id
	}
	return name
}
