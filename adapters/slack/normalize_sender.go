package slack

import (
	"context"
	"regexp"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// metadata says who spoke.
func (m *wireMessage) metadata(ctx context.Context, directory adapters.Directory) event.Metadata {
	author := m.author()
	name, bot := m.ownName(), m.isBot()
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

// slackbotUser is Slack's own bot, which speaks as a user without a bot_id.
const slackbotUser = "USLACKBOT"

// isBot says whether the payload shows a program's words.
func (m *wireMessage) isBot() bool {
	return m.BotID != "" || m.Subtype == "bot_message" || m.User == slackbotUser
}

// looksLikeID tells what can be the id of a user or a bot.
var looksLikeID = regexp.MustCompile(`^[UWB][0-9A-Z]+$`)

// author is the speaker's id. Integrations of the oldest kind have none but the
// name that they post under.
func (m *wireMessage) author() string {
	author := firstOf(m.BotID, m.User)
	if author == "" && m.isBot() {
		if author = firstOf(m.Username); looksLikeID.MatchString(author) {
			author = "name:" + author // anybody may choose a name: it must not pass for an id
		}
	}
	return author
}

// ownName is the speaker's name as the payload gives it; empty for none.
func (m *wireMessage) ownName() string {
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

// firstOf is the first of its arguments that is not blank.
func firstOf(values ...string) string {
	for _, value := range values {
		if strings.TrimSpace(value) != "" {
			return value
		}
	}
	return ""
}

func senderID(user string) string { return event.Slack.Namespace() + ":" + event.Text(user) }
