package slacktest

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"parley/adapters/slack/slacktest/internal/wire"
)

// Kind is the type of a conversation, as in the argument types.
type Kind string

// The kinds of conversation.
const (
	PublicChannel  Kind = "public_channel"
	PrivateChannel Kind = "private_channel"
	GroupMessage   Kind = "mpim"
	DirectMessage  Kind = "im"
)

// family returns the kind's name in scopes.
func (k Kind) family() string {
	switch k {
	case PrivateChannel:
		return "groups"
	case GroupMessage, DirectMessage:
		return string(k)
	default:
		return "channels"
	}
}

// Channel is a conversation.
type Channel struct {
	ID string
	// Kind is optional. If it is empty, an id with D is a direct message, an id with G a
	// group message, and any other id a public channel.
	Kind        Kind
	Name, Topic string
	User        string   // the other user in a direct message
	Members     []string // without the bot
	Archived    bool
	// NotMember means that the bot is not a member.
	NotMember bool
	// ExtShared means that another organization shares the channel.
	ExtShared bool
}

func (c Channel) kind() Kind {
	switch {
	case c.Kind != "":
		return c.Kind
	case strings.HasPrefix(c.ID, "D"):
		return DirectMessage
	case strings.HasPrefix(c.ID, "G"):
		return GroupMessage
	default:
		return PublicChannel
	}
}

// isDirectOf reports whether the channel is the direct messages with a user.
func (c *channel) isDirectOf(user string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info.kind() == DirectMessage && c.info.User == user
}

// kindOf returns the kind of a channel, whether it exists or not.
func (s *Server) kindOf(id string) Kind {
	s.mu.RLock()
	c := s.channels[id]
	s.mu.RUnlock()
	if c == nil {
		return Channel{ID: id}.kind()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info.kind()
}

// SetChannel sets a channel's properties. Its messages stay.
func (s *Server) SetChannel(info Channel) {
	c := s.channel(info.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info = info
}

// AddChannel sets a public channel, or a direct message if name is empty.
func (s *Server) AddChannel(id, name string) {
	info := Channel{ID: id, Name: name}
	if name == "" {
		info.Kind = DirectMessage
	}
	s.SetChannel(info)
}

// refusesPosts returns the code with which the channel refuses a post of ours, or an empty
// string.
func (c *channel) refusesPosts() string {
	switch {
	case c.info.Archived:
		return "is_archived"
	case c.info.NotMember:
		return "not_in_channel"
	}
	return ""
}

func (c *channel) isArchived() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info.Archived
}

// describe returns the channel as a Slack object.
// https://docs.slack.dev/reference/objects/conversation-object
func (c *channel) describe() map[string]any {
	kind := c.info.kind()
	info := map[string]any{
		"id": c.info.ID, "is_im": kind == DirectMessage, "is_mpim": kind == GroupMessage,
		"is_channel": kind == PublicChannel || kind == PrivateChannel, "is_group": false,
		"is_private": kind != PublicChannel, "is_member": !c.info.NotMember, "is_archived": c.info.Archived,
		"is_ext_shared": c.info.ExtShared, "is_shared": c.info.ExtShared,
		"topic": map[string]any{"value": c.info.Topic}, "num_members": len(c.info.Members) + 1,
	}
	if c.info.Name != "" {
		info["name"] = c.info.Name
	}
	if kind == DirectMessage {
		info["user"] = c.info.User
	}
	return info
}

// channelInfo is conversations.info.
// https://docs.slack.dev/reference/methods/conversations.info
func (s *Server) channelInfo(form url.Values) []byte {
	s.mu.RLock()
	c := s.channels[form.Get("channel")]
	s.mu.RUnlock()
	if c == nil {
		return wire.Refusal("channel_not_found")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return wire.Encode(map[string]any{"ok": true, "channel": c.describe()})
}

// ourChannels is users.conversations: the channels with the bot, or with the bot and another
// user.
// https://docs.slack.dev/reference/methods/users.conversations
func (s *Server) ourChannels(form url.Values) []byte {
	user := cmp.Or(form.Get("user"), s.options.BotUser)
	return s.pageOfChannels(form, func(c Channel) bool {
		return !c.NotMember && (user == s.options.BotUser || c.User == user || slices.Contains(c.Members, user))
	})
}

// listChannels is conversations.list: the public channels and the bot's private channels.
// https://docs.slack.dev/reference/methods/conversations.list
func (s *Server) listChannels(form url.Values) []byte {
	return s.pageOfChannels(form, func(c Channel) bool { return !c.NotMember || c.kind() == PublicChannel })
}

func (s *Server) pageOfChannels(form url.Values, keep func(Channel) bool) []byte {
	kinds, ok := readTypes(form)
	if !ok {
		return wire.Refusal("invalid_types")
	}
	limit, after, code := wire.ReadPage(form)
	if code != "" {
		return wire.Refusal(code)
	}
	found, next := []map[string]any{}, ""
	for _, c := range s.allChannels() {
		if c.id < after {
			continue
		}
		c.mu.Lock()
		if keep(c.info) && slices.Contains(kinds, c.info.kind()) && !(c.info.Archived && wire.IsTrue(form, "exclude_archived")) {
			if len(found) == limit {
				next = wire.CursorAt(c.id)
			} else {
				found = append(found, c.describe())
			}
		}
		c.mu.Unlock()
		if next != "" {
			break
		}
	}
	return wire.Encode(map[string]any{"ok": true, "channels": found, "response_metadata": map[string]any{"next_cursor": next}})
}

// readTypes parses the kinds in the argument types, and returns false if one is invalid.
func readTypes(form url.Values) ([]Kind, bool) {
	all := []Kind{PublicChannel, PrivateChannel, GroupMessage, DirectMessage}
	var kinds []Kind
	for _, word := range strings.Split(cmp.Or(form.Get("types"), string(PublicChannel)), ",") {
		kind := Kind(strings.TrimSpace(word))
		if !slices.Contains(all, kind) {
			return nil, false
		}
		kinds = append(kinds, kind)
	}
	return kinds, true
}

// members is conversations.members.
// https://docs.slack.dev/reference/methods/conversations.members
func (s *Server) members(form url.Values) []byte {
	limit, after, code := wire.ReadPage(form)
	s.mu.RLock()
	c := s.channels[form.Get("channel")]
	s.mu.RUnlock()
	if c == nil {
		code = "channel_not_found"
	}
	if code != "" {
		return wire.Refusal(code)
	}
	c.mu.Lock()
	all := slices.Clone(c.info.Members)
	if c.info.User != "" {
		all = append(all, c.info.User)
	}
	if !c.info.NotMember {
		all = append(all, s.options.BotUser)
	}
	c.mu.Unlock()
	slices.Sort(all)
	all = slices.Compact(all)
	from, _ := slices.BinarySearch(all, after)
	all, next := all[from:], ""
	if len(all) > limit {
		all, next = all[:limit], wire.CursorAt(all[limit])
	}
	return wire.Encode(map[string]any{"ok": true, "members": all, "response_metadata": map[string]any{"next_cursor": next}})
}
