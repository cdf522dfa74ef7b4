package payload

import (
	"regexp"
	"slices"
	"strings"

	"parley/adapters/jsonobject"
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
// Discord's list, which also has the author of the message that a reply pings. A token in code is
// none, even if the list has its user. @everyone mentions no user, and normalising finds a mention
// of our role.
// https://docs.discord.com/developers/reference#message-formatting
func (m *message) mentions(userID string) bool {
	if userID == "" {
		return false
	}
	has := func(text string) bool {
		return strings.Contains(text, "<@"+userID+">") || strings.Contains(text, "<@!"+userID+">")
	}
	if has(m.content) {
		return has(markdown.WithoutCode(m.content))
	}
	return slices.ContainsFunc(m.mentioned, func(u user) bool { return u.id == userID })
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

// readNames reads the names of the users and channels that a message mentions.
// https://docs.discord.com/developers/resources/message#message-object-message-structure
func readNames(d jsonobject.Fields) event.Names {
	names := event.Names{}
	for _, mention := range d.Children("mentions") {
		addName(names, readUser(mention))
	}
	for _, channel := range d.Children("mention_channels") {
		names["<#"+channel.Text("id")+">"] = channel.Text("name")
	}
	return names
}

// addName adds the name of a user under both forms of the token.
func addName(names event.Names, u user) {
	if name := u.name(); name != u.id {
		names["<@"+u.id+">"], names["<@!"+u.id+">"] = name, name
	}
}

// mentionTokens matches the tokens of users, roles and channels.
var mentionTokens = regexp.MustCompile(`<(@!?|@&|#)([0-9]{1,20})>`)

// readResolved reads the names of the users, roles and channels that a text of an interaction mentions.
// https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-object-resolved-data-structure
func readResolved(resolved jsonobject.Fields, text string) event.Names {
	users, _ := resolved.Child("users")
	members, _ := resolved.Child("members")
	names := event.Names{}
	for _, match := range mentionTokens.FindAllStringSubmatch(text, -1) {
		kind, id := match[1], match[2]
		of := map[string]string{"@&": "roles", "#": "channels"}[kind]
		if of != "" {
			list, _ := resolved.Child(of)
			found, _ := list.Child(id)
			names[match[0]] = found.Text("name")
			continue
		}
		if found, ok := users.Child(id); ok {
			u, member := readUser(found), jsonobject.Fields{}
			if member, ok = members.Child(id); ok {
				u.nick = member.Text("nick")
			}
			addName(names, u)
		}
	}
	return names.In(text)
}

// PlaceMention reads the token of a role, for which kind is "@&", or of a channel, for which kind is "#".
// Both results are empty for any other token than a mention.
func PlaceMention(token string) (kind, id string) {
	match := mentionTokens.FindStringSubmatch(token)
	if match == nil {
		return "", ""
	}
	return match[1], match[2]
}

// IsMention reports whether s is a token that mentions a user, such as "<@80351110224678912>".
func IsMention(s string) bool { return userMention.MatchString(s) }

var userMention = regexp.MustCompile(`^<@[0-9]+>$`)
