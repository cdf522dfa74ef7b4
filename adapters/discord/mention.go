package discord

import (
	"slices"
	"strings"

	"parley/adapters/markdown"
	"parley/ingest/event"
)

// addressed reports whether and how the message addresses us. A reply that pings us is a
// mention, because Discord lists us among the mentioned users.
func (m *message) addressed(self event.Self) event.Addressed {
	switch {
	case m.asked != event.AddressedNone:
		return m.asked
	case m.mentions(self.UserID):
		return event.AddressedMention
	case m.channel.Type == event.ChannelDirect:
		return event.AddressedDirect
	case m.quoted != nil && m.quoted.author.is(self):
		return event.AddressedReply
	}
	return event.AddressedNone
}

// mentions reports whether the message mentions a user, by either form of the token or in
// Discord's list. A token in code is none, @everyone mentions no user, and normalising finds a
// mention of our role.
// https://docs.discord.com/developers/reference#message-formatting
func (m *message) mentions(userID string) bool {
	if userID == "" {
		return false
	}
	if slices.ContainsFunc(m.mentioned, func(u user) bool { return u.id == userID }) {
		return true
	}
	prose := markdown.WithoutCode(m.content)
	return strings.Contains(prose, "<@"+userID+">") || strings.Contains(prose, "<@!"+userID+">")
}

// callsSomeone reports whether the message mentions a user, a role or everybody.
func (m *message) callsSomeone() bool {
	return m.everyone || len(m.mentioned) > 0 || strings.Contains(markdown.WithoutCode(m.content), "<@")
}

// needsSelf reports whether the message may be ours, mention us or reply to us. Policy cannot
// judge such a message before our identity is known.
func (m *message) needsSelf() bool {
	return m.author.bot || len(m.mentioned) > 0 || strings.Contains(m.content, "<@") || m.repliedTo() != ""
}
