package discord

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/ingest/event"
)

// payload is a gateway frame as far as it concerns us.
type payload struct {
	kind    event.Kind
	ignored string // the reason why there is nothing to record, or empty
	dedupe  string // empty for a hash of the body
	channel event.Channel
	// targets are the ids of the messages that it makes or is about: at least
	// one where channel is set.
	targets  []string
	message  *message        // of a message or an edit
	reaction *event.Reaction // of a reaction
}

// read reads a frame. An error names every field that can't be read; the
// payload's kind is then set as far as it is known.
func read(body []byte) (payload, error) {
	p := payload{kind: event.KindOther}
	frame, err := parse(body)
	if err != nil {
		return p, err
	}
	name := frame.dispatch()
	if p.kind, p.ignored = classify(name); p.ignored != "" {
		return p, nil
	}
	d, ok := frame.requiredChild("d")
	if ok {
		switch p.kind {
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
	return p, frame.err()
}

// dispatch is the name of the event that a frame dispatches, empty for a frame
// that dispatches none and for an object that is no frame at all.
// https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway
func (o object) dispatch() string {
	if string(o.members["op"]) != "0" {
		return ""
	}
	var name string
	if json.Unmarshal(o.members["t"], &name) != nil {
		return ""
	}
	return name
}

// classify says of what kind a dispatched event is, and why it is ignored if
// that is told by its name.
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
		return event.KindOther, event.ReasonInteraction
	}
	return event.KindOther, event.ReasonNotAnEvent
}

func (p *payload) readCreate(d object) {
	m := readMessage(d)
	if !m.hasAuthor {
		d.wrong("author", "is required: an object")
	}
	p.place(m.channel, m.id)
	switch {
	case m.flags&flagLoading != 0:
		p.ignored = event.ReasonSystemMessage // "is thinking…": its words follow in an update
	case !m.spoken():
		p.dedupe, p.ignored = "message:"+m.id, event.ReasonSystemMessage
	default:
		p.dedupe, p.message = "message:"+m.id, &m
	}
}

func (p *payload) readUpdate(d object) {
	m := readMessage(d)
	p.place(m.channel, m.id)
	switch {
	case m.answersLate():
		p.kind, p.dedupe, p.message = event.KindMessage, "message:"+m.id, &m
	case m.edited.IsZero() || !d.has("content"):
		p.ignored = event.ReasonNoChange
	case !m.spoken():
		p.ignored = event.ReasonSystemMessage
	default:
		p.dedupe, p.message = "edit:"+m.id+":"+d.text("edited_timestamp"), &m
	}
}

func (p *payload) readDelete(name string, d object) {
	if name == "MESSAGE_DELETE" {
		id := d.requiredSnowflake("id")
		p.place(readPlace(d), id)
		p.dedupe = "delete:" + id
		return
	}
	ids := d.snowflakes("ids")
	p.place(readPlace(d), ids...)
	p.dedupe = "delete:" + digest([]byte(strings.Join(slices.Sorted(slices.Values(ids)), ",")))
}

func (p *payload) readReaction(name string, frame, d object) {
	p.place(readPlace(d), d.requiredSnowflake("message_id"))
	p.dedupe = readPosition(frame)
	p.reaction = &event.Reaction{Removed: name != "MESSAGE_REACTION_ADD"}
	switch name {
	case "MESSAGE_REACTION_REMOVE_ALL":
		p.reaction.All = true
	case "MESSAGE_REACTION_REMOVE_EMOJI":
		p.reaction.All = true
		p.reaction.Emoji = readEmoji(d)
	default:
		by := user{id: d.requiredSnowflake("user_id")}
		p.reaction.SenderID, p.reaction.MentionToken = senderID(by.id), by.mentionToken()
		p.reaction.Emoji = readEmoji(d)
	}
}

func (p *payload) place(channel event.Channel, targets ...string) {
	p.channel, p.targets = channel, targets
}

// maxSession bounds what becomes part of a key, in bytes. Discord's are 32.
const maxSession = 128

// readPosition reads where a frame stands among all: its gateway session and the
// sequence in it. It is empty where either is missing.
func readPosition(frame object) string {
	session, sequence := frame.text("session_id"), frame.number("s")
	if len(session) > maxSession {
		frame.wrong("session_id", fmt.Sprintf("is %d bytes long, must be at most %d", len(session), maxSession))
	}
	if session == "" || !frame.has("s") {
		return ""
	}
	return "reaction:" + session + ":" + strconv.FormatInt(sequence, 10)
}

func readPlace(d object) event.Channel {
	return placeOf(d.requiredSnowflake("channel_id"), d.snowflake("guild_id"))
}

// readEmoji reads a reaction's emoji as the API names it: the emoji itself, or
// "name:id" for one of a guild's own, whose name is null once it was removed.
// https://docs.discord.com/developers/resources/emoji#emoji-object
func readEmoji(d object) string {
	emoji, _ := d.requiredChild("emoji")
	name, id := emoji.text("name"), emoji.snowflake("id")
	switch {
	case id == "" && name == "" && emoji.members != nil:
		emoji.wrong("name", "is required where there is no id")
	case name == "":
		return id
	case id != "":
		return name + ":" + id
	}
	return name
}
