package discordtest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// User is a user of Discord.
type User struct {
	ID, Username, GlobalName string
	Bot                      bool
	NoDirect                 bool // refuses direct messages
}

func (u User) wire() map[string]any {
	wire := map[string]any{"id": u.ID, "username": u.Username, "discriminator": "0", "avatar": nil, "global_name": nil}
	if u.GlobalName != "" {
		wire["global_name"] = u.GlobalName
	}
	if u.Bot {
		wire["bot"] = true
	}
	return wire
}

// Guild is a server with the bot as a member. The bot has every permission, unless Denied
// names some.
type Guild struct {
	ID, Name string
	Nicks    map[string]string   // by user id
	Roles    map[string]string   // the names of further roles, by id
	Has      map[string][]string // the roles of a user, by the user's id
	Denied   int64               // permissions that the bot lacks
	Everyone int64               // permissions of everybody
	// Unavailable means that a session announces the guild and does not send it.
	Unavailable bool
}

// The types of channels.
// https://docs.discord.com/developers/resources/channel#channel-object-channel-types
const (
	Text         = 0
	Direct       = 1
	Voice        = 2
	PublicThread = 11
	Forum        = 15
)

// Channel is a channel, a thread, a forum post, or the direct messages of a user.
type Channel struct {
	ID, Guild, Name, Topic string
	Type                   int
	Parent                 string // of a thread
	User                   string // of direct messages
	// Hidden channels refuse every call, NoHistory refuses references and reading, and ReadOnly
	// refuses posts.
	Hidden, NoHistory, ReadOnly bool
	// Only are the users who see the channel, besides the bot; empty for everybody.
	Only []string
}

// channel is a channel with its messages, oldest first.
type channel struct {
	Channel
	messages []*Message
	byID     map[string]*Message
	nonces   map[string]*Message // of the bot's posts
}

func (c Channel) wire(count int) map[string]any {
	wire := map[string]any{"id": c.ID, "type": c.Type, "name": c.Name}
	if c.Topic != "" {
		wire["topic"] = c.Topic
	}
	if c.Guild != "" {
		wire["guild_id"] = c.Guild
	}
	if c.Parent != "" {
		wire["parent_id"] = c.Parent
	}
	if c.isThread() {
		wire["message_count"] = count
	}
	var overwrites []any
	switch {
	case c.Hidden:
		overwrites = append(overwrites, map[string]any{"id": BotUser, "type": 1, "allow": "0", "deny": "1024"})
	case c.NoHistory:
		overwrites = append(overwrites, map[string]any{"id": BotUser, "type": 1, "allow": "0", "deny": "65536"})
	}
	if len(c.Only) > 0 {
		overwrites = append(overwrites, map[string]any{"id": c.Guild, "type": 0, "allow": "0", "deny": "1024"})
		for _, user := range append([]string{BotUser}, c.Only...) {
			overwrites = append(overwrites, map[string]any{"id": user, "type": 1, "allow": "1024", "deny": "0"})
		}
	}
	if c.User != "" {
		wire["recipients"] = []any{map[string]any{"id": c.User}}
	}
	wire["permission_overwrites"] = overwrites
	return wire
}

func (c Channel) isThread() bool { return c.Type >= 10 && c.Type <= 12 }

// AddUser adds a user.
func (s *Server) AddUser(u User) { s.change(func() { s.users[u.ID] = u }) }

// AddGuild adds a guild. It sends GUILD_CREATE if the bot is connected.
func (s *Server) AddGuild(g Guild) {
	s.change(func() {
		s.guilds[g.ID] = &g
		if !g.Unavailable {
			s.dispatch(g.ID, "GUILD_CREATE", s.guildWire(&g))
		}
	})
}

// RemoveGuild removes the bot from a guild, and sends GUILD_DELETE.
func (s *Server) RemoveGuild(id string) {
	s.change(func() {
		delete(s.guilds, id)
		maps.DeleteFunc(s.channels, func(_ string, c *channel) bool { return c.Guild == id })
		s.dispatch(id, "GUILD_DELETE", map[string]any{"id": id})
	})
}

// SetChannel adds or changes a channel, and sends its event.
func (s *Server) SetChannel(c Channel) {
	s.change(func() { s.setChannel(c) })
}

func (s *Server) setChannel(c Channel) {
	known := s.channels[c.ID]
	hidden := known != nil && known.Hidden
	name := "CHANNEL_"
	if c.isThread() {
		name = "THREAD_"
	}
	if known == nil {
		s.channels[c.ID] = &channel{Channel: c, byID: map[string]*Message{}, nonces: map[string]*Message{}}
		name += "CREATE"
	} else {
		known.Channel = c
		name += "UPDATE"
	}
	if c.Guild == "" {
		return
	}
	s.dispatch(c.Guild, name, c.wire(0))
	if hidden && !c.Hidden {
		_, threads := s.channelWires(c.Guild)
		s.dispatch(c.Guild, "THREAD_LIST_SYNC", map[string]any{"guild_id": c.Guild, "channel_ids": []string{c.ID}, "threads": threads})
	}
}

// RemoveChannel deletes a channel or a thread, and sends its event.
func (s *Server) RemoveChannel(id string) {
	s.change(func() {
		if c := s.channels[id]; c != nil {
			delete(s.channels, id)
			name := "CHANNEL_DELETE"
			if c.isThread() {
				name = "THREAD_DELETE"
			}
			s.dispatch(c.Guild, name, c.wire(len(c.messages)))
		}
	})
}

// guildWire is the guild in GUILD_CREATE, with its channels and the bot's membership.
func (s *Server) guildWire(g *Guild) map[string]any {
	channels, threads := s.channelWires(g.ID)
	return map[string]any{
		"id": g.ID, "name": g.Name, "owner_id": "1", "unavailable": false, "member_count": len(s.users), "roles": g.roles(),
		"channels": channels, "threads": threads, "members": []any{s.member(g, BotUser)},
	}
}

func (s *Server) channelWires(guild string) (channels, threads []any) {
	for _, id := range slices.Sorted(maps.Keys(s.channels)) {
		switch c := s.channels[id]; {
		case c.Guild != guild:
		case c.isThread() && s.channels[c.Parent] != nil && s.channels[c.Parent].Hidden:
		case c.isThread():
			threads = append(threads, c.wire(len(c.messages)))
		default:
			channels = append(channels, c.wire(len(c.messages)))
		}
	}
	return channels, threads
}

// allPermissions are the permissions of the bot's role; none of them is ADMINISTRATOR.
const allPermissions = int64(1)<<50 - 1 - 8

// permissions are those of the bot.
func (g *Guild) permissions() string { return strconv.FormatInt(allPermissions&^g.Denied, 10) }

func (g *Guild) roles() []any {
	roles := []any{
		map[string]any{"id": g.ID, "name": "@everyone", "permissions": strconv.FormatInt(g.Everyone, 10)},
		map[string]any{"id": BotRole, "name": "parley", "permissions": g.permissions(),
			"managed": true, "tags": map[string]any{"bot_id": BotUser}},
	}
	for _, id := range slices.Sorted(maps.Keys(g.Roles)) {
		roles = append(roles, map[string]any{"id": id, "name": g.Roles[id], "permissions": "0"})
	}
	return roles
}

func (s *Server) member(g *Guild, user string) map[string]any {
	wire := map[string]any{"nick": nil, "roles": []string{}, "joined_at": "2026-01-01T00:00:00.000000+00:00", "user": s.users[user].wire()}
	if roles := g.Has[user]; roles != nil {
		wire["roles"] = roles
	}
	if user == BotUser {
		wire["roles"] = []string{BotRole}
	}
	if nick := g.Nicks[user]; nick != "" {
		wire["nick"] = nick
	}
	return wire
}

func directoryHandlers() map[string]handler {
	return map[string]handler{
		GetChannel: func(s *Server, r request) any {
			c, refused := s.visible(r)
			if refused != nil {
				return *refused
			}
			return c.wire(len(c.messages))
		},
		GetGuilds: func(s *Server, r request) any {
			list, after := []any{}, r.URL.Query().Get("after")
			for _, id := range slices.Sorted(maps.Keys(s.guilds)) {
				if id > after {
					list = append(list, map[string]any{"id": id, "name": s.guilds[id].Name, "owner": false, "permissions": s.guilds[id].permissions()})
				}
			}
			return list
		},
		GetGuild: func(s *Server, r request) any {
			g := s.guilds[r.PathValue("guild")]
			if g == nil {
				return unknownGuild
			}
			return map[string]any{"id": g.ID, "name": g.Name, "owner_id": "1", "roles": g.roles()}
		},
		GetChannels: func(s *Server, r request) any {
			channels, _ := s.channelWires(r.PathValue("guild"))
			return channels
		},
		GetThreads: func(s *Server, r request) any {
			_, threads := s.channelWires(r.PathValue("guild"))
			return map[string]any{"threads": threads, "members": []any{}}
		},
		GetMember: func(s *Server, r request) any {
			g, user := s.guilds[r.PathValue("guild")], s.users[r.PathValue("user")]
			switch {
			case g == nil:
				return unknownGuild
			case user.ID == "":
				return unknownMember
			}
			return s.member(g, user.ID)
		},
		OpenDirect: (*Server).openDirect,
		GetUser: func(s *Server, r request) any {
			u := s.users[r.PathValue("user")]
			if u.ID == "" {
				return unknownUser
			}
			return u.wire()
		},
	}
}

// openDirect opens the direct messages with a user, once.
// https://docs.discord.com/developers/resources/user#create-dm
func (s *Server) openDirect(r request) any {
	var b struct {
		Recipient string `json:"recipient_id"`
	}
	r.decode(&b)
	user := s.users[b.Recipient]
	switch {
	case user.ID == "":
		return unknownUser
	case user.Bot:
		return refusesDirect
	}
	for _, c := range s.channels {
		if c.Type == Direct && c.User == user.ID {
			return c.wire(0)
		}
	}
	opened := Channel{ID: s.newID(), Type: Direct, User: user.ID}
	s.setChannel(opened)
	return opened.wire(0)
}

// visible returns the channel of a call, or the refusal of the call.
func (s *Server) visible(r request) (*channel, *refusal) {
	c := s.channels[r.PathValue("channel")]
	switch {
	case c == nil:
		return nil, &unknownChannel
	case c.Hidden:
		return nil, &missingAccess
	}
	return c, nil
}

// appFlags are the flags of the application: with the limited message-content intent, unless
// NoContent.
// https://docs.discord.com/developers/resources/application#application-object-application-flags
func (s *Server) appFlags() int {
	if s.options.NoContent {
		return 0
	}
	return 1 << 19
}

// shardOf returns the shard of a guild; direct messages have the first.
// https://docs.discord.com/developers/events/gateway#sharding
func shardOf(guild string, shards int) int {
	id, _ := strconv.ParseUint(strings.TrimSpace(guild), 10, 64)
	return int((id >> 22) % uint64(max(shards, 1)))
}
