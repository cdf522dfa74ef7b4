package slack

import (
	"context"
	"regexp"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// metadata returns the metadata that describes the author.
func (m *wireMessage) metadata(ctx context.Context, directory adapters.Directory) event.Metadata {
	author := m.author()
	name, bot := m.payloadName(), m.isBot()
	if name == "" {
		user, known := directory.User(ctx, firstOf(m.User, author))
		if known {
			name, bot = user.DisplayName, bot || user.IsBot
		}
	}
	metadata := event.Metadata{
		Source:            string(event.Slack),
		SenderID:          senderID(author),
		SenderDisplayName: event.Text(firstOf(name, author)),
		SenderType:        event.Bot,
	}
	if !bot {
		metadata.SenderType = event.Human
		metadata.MentionToken = event.Text(mentionToken(author))
	}
	return metadata
}

// slackbotUser is Slack's own bot. Its messages have a user and no bot_id, and
// users.info does not mark it as a bot.
const slackbotUser = "USLACKBOT"

// isBot reports whether the payload shows that an app or bot wrote the message.
func (m *wireMessage) isBot() bool {
	return m.BotID != "" || m.Subtype == "bot_message" || m.User == slackbotUser
}

// isBotID reports whether an author's id is that of an app or bot.
func isBotID(id string) bool { return strings.HasPrefix(id, "B") || id == slackbotUser }

// looksLikeID matches possible ids of a user or a bot.
var looksLikeID = regexp.MustCompile(`^[UWB][0-9A-Z]+$`)

// author returns the author's id. The oldest integrations have no id, so author returns
// the name under which they post.
func (m *wireMessage) author() string {
	author := firstOf(m.BotID, m.User)
	if author == "" && m.isBot() {
		if author = firstOf(m.Username); looksLikeID.MatchString(author) {
			author = "name:" + author // anyone can choose a username, so it must not pass for an id
		}
	}
	return author
}

// botUser returns the user of a bot whose id is the author; empty if the payload does not name it.
func (m *wireMessage) botUser() string {
	if m.BotID == "" {
		return ""
	}
	return event.Text(m.User)
}

// senderTeam returns the team of the sender. In a channel that several teams share, a message names the
// team of its author. A reaction names none, so its sender counts as one of the event's team.
func (p *payload) senderTeam(facts adapters.Facts) string {
	team := firstOf(p.outer.TeamID, facts.Self().TeamID)
	if p.message != nil {
		return firstOf(p.message.UserTeam, p.message.SourceTeam, p.message.Team, team)
	}
	if p.interaction != nil {
		return firstOf(p.interaction.team, team)
	}
	return team
}

// rootUser returns the user who wrote the root of the message's thread; empty if the message
// does not show it.
func (m *wireMessage) rootUser() string { return firstOf(m.ParentUserID, m.Root.User) }

// payloadName returns the author's name in the payload; empty if there is none.
func (m *wireMessage) payloadName() string {
	switch {
	case m.isBot() && m.BotProfile != nil:
		return firstOf(m.Username, m.BotProfile.Name)
	case m.isBot():
		return firstOf(m.Username)
	case m.UserProfile != nil:
		return firstOf(m.UserProfile.DisplayName, m.UserProfile.RealName)
	default:
		return ""
	}
}

// firstOf returns its first argument that is not blank.
func firstOf(values ...string) string {
	for _, value := range values {
		if strings.TrimSpace(value) != "" {
			return value
		}
	}
	return ""
}

func senderID(user string) string { return "slack:" + event.Text(user) }
