package slacktest

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"parley/adapters/slack/slacktest/internal/wire"
)

// User is a user of the workspace, or a guest from another one.
type User struct {
	ID, Name, RealName, DisplayName string
	Team                            string // ours if empty
	IsBot, Deleted                  bool
}

// AddUser adds a user for users.info.
func (s *Server) AddUser(user User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[user.ID] = user
}

// SetGroup sets the members of a user group.
func (s *Server) SetGroup(id string, users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups == nil {
		s.groups = map[string][]string{}
	}
	s.groups[id] = users
}

// listGroups is usergroups.list.
// https://docs.slack.dev/reference/methods/usergroups.list
func (s *Server) listGroups(form url.Values) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	groups := []any{}
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		group := map[string]any{"id": id, "name": id, "handle": strings.ToLower(id), "user_count": len(s.groups[id])}
		if form.Get("include_users") == "true" {
			group["users"] = s.groups[id]
		}
		groups = append(groups, group)
	}
	return wire.Encode(map[string]any{"ok": true, "usergroups": groups})
}

// userInfo is users.info. It always knows the bot's own user.
// https://docs.slack.dev/reference/methods/users.info
func (s *Server) userInfo(form url.Values) []byte {
	id := form.Get("user")
	s.mu.RLock()
	user, found := s.users[id]
	s.mu.RUnlock()
	if !found && id == s.options.BotUser {
		user, found = User{ID: id, Name: "parley", RealName: "Parley", DisplayName: "Parley", IsBot: true}, true
	}
	if !found {
		return wire.Refusal("user_not_found")
	}
	team := cmp.Or(user.Team, s.options.Team)
	return wire.Encode(map[string]any{"ok": true, "user": map[string]any{
		"id": user.ID, "team_id": team, "name": user.Name, "real_name": user.RealName, "is_bot": user.IsBot,
		"deleted": user.Deleted, "is_stranger": team != s.options.Team,
		"profile": map[string]any{"real_name": user.RealName, "display_name": user.DisplayName, "team": team},
	}})
}

// openDirect is conversations.open for one user. A channel that it makes is D and the user's id.
// https://docs.slack.dev/reference/methods/conversations.open
func (s *Server) openDirect(form url.Values) []byte {
	id := form.Get("users")
	s.mu.RLock()
	user, found := s.users[id]
	s.mu.RUnlock()
	switch {
	case id == "":
		return wire.Refusal("users_list_not_supplied")
	case id == s.options.BotUser, user.IsBot:
		return wire.Refusal("cannot_dm_bot")
	case !found:
		return wire.Refusal("user_not_found")
	case user.Deleted:
		return wire.Refusal("user_disabled")
	}
	c := s.channel("D" + id)
	for _, other := range s.allChannels() {
		if other.isDirectOf(id) {
			c = other
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	opened := c.info.User != ""
	c.info.User = id
	return wire.Encode(map[string]any{"ok": true, "no_op": opened, "already_open": opened, "channel": map[string]any{"id": c.id}})
}

// botInfo is bots.info. It knows only the bot itself.
// https://docs.slack.dev/reference/methods/bots.info
func (s *Server) botInfo(form url.Values) []byte {
	if form.Get("bot") != s.options.BotID {
		return wire.Refusal("bot_not_found")
	}
	return wire.Encode(map[string]any{"ok": true, "bot": map[string]any{"id": s.options.BotID, "app_id": App,
		"user_id": s.options.BotUser, "name": "parley", "deleted": false}})
}

// teamInfo is team.info.
// https://docs.slack.dev/reference/methods/team.info
func (s *Server) teamInfo(form url.Values) []byte {
	if id := form.Get("team"); id != "" && id != s.options.Team {
		return wire.Refusal("team_not_found")
	}
	team := map[string]any{"id": s.options.Team, "name": "Test", "domain": "test"}
	if s.options.Enterprise != "" {
		team["enterprise_id"], team["enterprise_name"] = s.options.Enterprise, "Test Grid"
	}
	return wire.Encode(map[string]any{"ok": true, "team": team})
}
