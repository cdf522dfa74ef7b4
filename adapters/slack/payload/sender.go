package payload

import (
	"context"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// metadata returns the metadata that describes the author.
func (m *Message) metadata(ctx context.Context, directory adapters.Directory) event.Metadata {
	author := m.author()
	name, bot := m.payloadName(), m.isBot()
	if name == "" {
		user, known := directory.User(ctx, FirstOf(m.User, author))
		if known {
			name, bot = user.DisplayName, bot || user.IsBot
		}
	}
	metadata := event.Metadata{
		Source:            string(event.Slack),
		SenderID:          senderID(author),
		SenderDisplayName: event.Text(FirstOf(name, author)),
		SenderType:        event.Bot,
	}
	if !bot {
		metadata.SenderType = event.Human
		metadata.MentionToken = event.Text(mentionToken(author))
	}
	return metadata
}

// Slackbot is Slack's own bot. Its messages have a user and no bot_id, and
// users.info does not mark it as a bot.
const Slackbot = "USLACKBOT"

// platformUser is the user under which Slack itself writes notices into a direct conversation, such as that a
// channel was archived. Such a message has no subtype.
const platformUser = "USLACK"

// isBot reports whether the payload shows that an app or bot wrote the message.
func (m *Message) isBot() bool {
	return m.BotID != "" || m.Subtype == "bot_message" || m.User == Slackbot
}

// isBotID reports whether an author's id is that of an app or bot.
func isBotID(id string) bool { return strings.HasPrefix(id, "B") || id == Slackbot }

// author returns the author's id. The oldest integrations have no id, so author returns
// the name under which they post.
func (m *Message) author() string {
	author := FirstOf(m.BotID, m.User)
	if author == "" && m.isBot() {
		if author = FirstOf(m.Username); IsUser(author) {
			author = "name:" + author // anyone can choose a username, so it must not pass for an id
		}
	}
	return author
}

// botUser returns the user of a bot whose id is the author; empty if the payload does not name it.
func (m *Message) botUser() string {
	if m.BotID == "" {
		return ""
	}
	return event.Text(m.User)
}

// through returns the app that has written the message with a user's token, which may be that of its own bot; nil for none.
func (m *Message) through() *event.Through {
	user, app := m.botUser(), m.AppID
	if app == "" && m.BotProfile != nil {
		app = m.BotProfile.AppID
	}
	if user == "" || !IsApp(app) {
		return nil
	}
	return &event.Through{App: app, User: user, Mention: event.Text(mentionToken(user))}
}

// senderTeam returns the team of the sender. In a channel that several teams share, a message names the
// team of its author. A reaction names none, so its sender counts as one of the event's team.
func (p *Payload) senderTeam(facts adapters.Facts) string {
	team := FirstOf(p.outer.TeamID, facts.Self().TeamID)
	if p.message != nil {
		return FirstOf(p.message.UserTeam, p.message.SourceTeam, p.message.Team, team)
	}
	if p.interaction != nil {
		return FirstOf(p.interaction.team, team)
	}
	return team
}

// rootUser returns the user who wrote the root of the message's thread; empty if the message
// does not show it.
func (m *Message) rootUser() string { return FirstOf(m.ParentUserID, m.Root.User) }

// payloadName returns the author's name in the payload; empty if there is none.
func (m *Message) payloadName() string {
	switch {
	case m.User == Slackbot && m.BotID == "":
		return FirstOf(m.Username, "Slackbot")
	case m.isBot() && m.BotProfile != nil:
		return FirstOf(m.Username, m.BotProfile.Name)
	case m.isBot():
		return FirstOf(m.Username)
	case m.UserProfile != nil:
		return FirstOf(m.UserProfile.DisplayName, m.UserProfile.RealName)
	default:
		return ""
	}
}

// FirstOf returns its first argument that is not blank.
func FirstOf(values ...string) string {
	for _, value := range values {
		if strings.TrimSpace(value) != "" {
			return value
		}
	}
	return ""
}

func senderID(user string) string { return "slack:" + event.Text(user) }
