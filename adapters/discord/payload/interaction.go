package payload

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// readInteraction reads a command or the use of a component. A command is a message of its user:
// the text of the slash command, its name if it has none, or a quotation of the message on which a
// message command was used. A used component is a message with the shown labels.
func (p *Payload) readInteraction(d jsonobject.Fields) {
	kind := discordgo.InteractionType(d.Number("type"))
	data, _ := d.Child("data")
	command := discordgo.ApplicationCommandType(data.Number("type"))
	isCommand := kind == discordgo.InteractionApplicationCommand && isOurs(command, data.Text("name"))
	on, hasMessage := d.Child("message")
	if !isCommand && (kind != discordgo.InteractionMessageComponent || !hasMessage || on.Number("flags")&int64(discordgo.MessageFlagsEphemeral) != 0) {
		p.ignored = event.ReasonInteraction
		return
	}
	id := requiredSnowflake(d, "id")
	m := message{hasAuthor: true, author: readInteractionUser(d), sent: TimeOf(id)}
	place, _ := d.Child("channel")
	m.guild = snowflake(d, "guild_id")
	m.setPlace(requiredSnowflake(d, "channel_id"), discordgo.ChannelType(place.Number("type")))
	if m.threaded {
		m.channel.Parent = snowflake(place, "parent_id")
	}
	switch {
	case !isCommand:
		p.kind, m.id, m.asked = event.KindAction, actionPrefix+id, event.AddressedAction
		m.holder = requiredSnowflake(on, "id")
		m.readComponent(data, on)
	case command == discordgo.MessageApplicationCommand:
		p.kind, m.id, m.asked = event.KindCommand, CommandPrefix+id, event.AddressedCommand
		m.readTarget(data)
	default:
		p.kind, m.id, m.asked = event.KindCommand, CommandPrefix+id, event.AddressedCommand
		m.content = readOptions(data)
		resolved, _ := data.Optional().Child("resolved")
		m.names = readResolved(resolved, m.content)
		if name := data.Text("name"); name != askCommand {
			m.command = strings.TrimSpace(name + " " + m.content)
			m.content = "/" + m.command
		}
	}
	p.place(m.channel, m.id)
	p.dedupe, p.message = m.id, &m
}

// readInteractionUser reads the user of an interaction: a member in a server, and a user
// elsewhere.
func readInteractionUser(d jsonobject.Fields) user {
	member, inGuild := d.Child("member")
	switch {
	case inGuild:
		d = member
	case d.Has("member"):
		return user{} // the fault is noted
	}
	who, ok := d.RequiredChild("user")
	if !ok {
		return user{}
	}
	u := readUser(who)
	u.nick, u.hasMember = readNick(d), inGuild
	if inGuild {
		u.roles = readRoles(d)
	}
	return u
}

// readOptions returns the typed values of a slash command, one line each. All options of our
// commands are texts.
func readOptions(data jsonobject.Fields) string {
	var lines []string
	for _, option := range data.Children("options") {
		lines = append(lines, option.Text("value"))
	}
	return strings.Join(lines, "\n")
}

// readTarget reads the message on which a message command was used.
func (m *message) readTarget(data jsonobject.Fields) {
	resolved, _ := data.Child("resolved")
	messages, _ := resolved.Child("messages")
	if target, ok := messages.Child(snowflake(data, "target_id")); ok {
		m.quoted = readQuoted(target, nil)
	}
}

// maxValues bounds the values of a used component.
const maxValues = 25

// readComponent reads the label of a pressed button, or the labels of the chosen values. The
// metadata key discord_action has the component's id and values.
func (m *message) readComponent(data, on jsonobject.Fields) {
	id := data.ShortText("custom_id", 100)
	if strings.HasPrefix(id, adapters.ButtonPrefix) {
		m.pressed = id
	}
	var values []string
	data.Decode("values", "a list of texts", &values)
	values = values[:min(len(values), maxValues)]
	labels := componentLabels(on.Children("components"), id, values)
	if len(labels) == 0 {
		labels = values
	}
	for i := range labels {
		labels[i] = event.Text(labels[i])
	}
	m.content = strings.Join(labels, ", ")
	if m.content == "" {
		m.content = id
	}
	action, _ := json.Marshal(map[string]any{"custom_id": id, "values": values}) // strings always encode
	m.extra = []event.Extra{{Key: "discord_action", Value: json.RawMessage(event.Text(string(action)))}}
}

// componentLabels returns the shown texts of a component: its label, or those of its chosen
// options. Rows contain components.
func componentLabels(components []jsonobject.Fields, id string, values []string) (labels []string) {
	for _, c := range components {
		if inner := c.Children("components"); len(inner) > 0 {
			labels = append(labels, componentLabels(inner, id, values)...)
			continue
		}
		if c.Text("custom_id") != id {
			continue
		}
		if label := c.Text("label"); label != "" {
			labels = append(labels, label)
		}
		for _, option := range c.Children("options") {
			if slices.Contains(values, option.Text("value")) {
				labels = append(labels, option.Text("label"))
			}
		}
	}
	return labels
}
