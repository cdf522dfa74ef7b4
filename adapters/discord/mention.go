package discord

import (
	"slices"
	"strings"

	"parley/ingest/event"
)

// addressed says how the message turns to us. A reply that pings us is a
// mention: Discord lists us among the mentioned.
func (m *message) addressed(self event.Self) event.Addressed {
	switch {
	case m.mentions(self.UserID):
		return event.AddressedMention
	case m.channel.Type == event.ChannelDirect:
		return event.AddressedDirect
	case m.quoted != nil && m.quoted.author.is(self):
		return event.AddressedReply
	}
	return event.AddressedNone
}

// mentions says whether the message names a user, in either form of the token or
// in Discord's list. Roles and @everyone name nobody.
// https://docs.discord.com/developers/reference#message-formatting
func (m *message) mentions(userID string) bool {
	if userID == "" {
		return false
	}
	return slices.ContainsFunc(m.mentioned, func(u user) bool { return u.id == userID }) ||
		strings.Contains(m.content, "<@"+userID+">") || strings.Contains(m.content, "<@!"+userID+">")
}

// concerns says that the message may be ours, name us or answer us, so that it
// can't be judged before we know who we are.
func (m *message) concerns() bool {
	return m.author.bot || len(m.mentioned) > 0 || strings.Contains(m.content, "<@") || m.answers() != ""
}
