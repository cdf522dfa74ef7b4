package slacktest

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"

	"parley/adapters/slack/slacktest/internal/wire"
)

// maxReactions bounds the different emoji of one message.
// https://docs.slack.dev/reference/methods/reactions.add#errors
const maxReactions = 50

// emojiName matches the name of an emoji, without colons.
var emojiName = regexp.MustCompile(`^[\p{L}\p{N}_+'-]{1,100}(::skin-tone-[2-6])?$`)

// Reaction is one emoji on a message, with the users who added it.
type Reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
}

// Reactions returns a message's reactions in the order of their arrival.
func (s *Server) Reactions(channel, ts string) (all []Reaction) {
	c := s.channel(channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reactions[ts] {
		all = append(all, Reaction{r.Name, slices.Clone(r.Users)})
	}
	return all
}

// React adds another user's reaction to a message. It returns the JSON of the inner event, or
// nil if Slack would refuse the reaction.
func (s *Server) React(channel, ts, user, emoji string) (event []byte) {
	return s.reactAs(channel, ts, user, emoji, "reaction_added")
}

// Unreact removes such a reaction, and returns its event.
func (s *Server) Unreact(channel, ts, user, emoji string) (event []byte) {
	return s.reactAs(channel, ts, user, emoji, "reaction_removed")
}

func (s *Server) reactAs(id, ts, user, emoji, kind string) []byte {
	c := s.channel(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	event, code := c.react(s, ts, user, emoji, kind)
	if code != "" {
		return nil
	}
	return wire.Encode(event)
}

// addReaction is reactions.add.
// https://docs.slack.dev/reference/methods/reactions.add
func (s *Server) addReaction(form url.Values) []byte { return s.ourReaction(form, "reaction_added") }

// removeReaction is reactions.remove.
// https://docs.slack.dev/reference/methods/reactions.remove
func (s *Server) removeReaction(form url.Values) []byte {
	return s.ourReaction(form, "reaction_removed")
}

func (s *Server) ourReaction(form url.Values, kind string) []byte {
	name, ts := form.Get("name"), form.Get("timestamp")
	switch {
	case !emojiName.MatchString(name):
		return wire.Refusal("invalid_name")
	case form.Get("channel") == "" || ts == "":
		return wire.Refusal("no_item_specified")
	}
	c := s.channel(form.Get("channel"))
	c.mu.Lock()
	event, code := c.react(s, ts, s.options.BotUser, name, kind)
	if code == "" && s.options.Echo {
		s.queueEvent(wire.Encode(event))
	}
	c.mu.Unlock()
	s.sendEvents()
	if code != "" {
		return wire.Refusal(code)
	}
	return wire.Encode(map[string]any{"ok": true})
}

// react changes the reactions of the message at ts and returns the event. The channel is
// locked.
func (c *channel) react(s *Server, ts, user, name, kind string) (event any, code string) {
	p := c.find(ts)
	if p == nil {
		return nil, "message_not_found"
	}
	all := c.reactions[ts]
	at := slices.IndexFunc(all, func(r Reaction) bool { return r.Name == name })
	there := at >= 0 && slices.Contains(all[at].Users, user)
	switch {
	case kind == "reaction_added" && there:
		return nil, "already_reacted"
	case kind == "reaction_removed" && !there:
		return nil, "no_reaction"
	case kind == "reaction_added" && at >= 0:
		all[at].Users = append(all[at].Users, user)
	case kind == "reaction_added" && len(all) == maxReactions:
		return nil, "too_many_emoji"
	case kind == "reaction_added":
		c.reactions[ts] = append(all, Reaction{name, []string{user}})
	case len(all[at].Users) == 1:
		c.reactions[ts] = slices.Delete(all, at, at+1)
	default:
		users := all[at].Users
		all[at].Users = slices.Delete(users, slices.Index(users, user), slices.Index(users, user)+1)
	}
	return map[string]any{"type": kind, "user": user, "reaction": name, "item_user": p.User,
		"item":     map[string]any{"type": "message", "channel": c.id, "ts": ts},
		"event_ts": Timestamp(s.options.Now())}, ""
}

// getReactions is reactions.get.
// https://docs.slack.dev/reference/methods/reactions.get
func (s *Server) getReactions(form url.Values) []byte {
	c := s.channel(form.Get("channel"))
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(form.Get("timestamp"))
	if p == nil {
		return wire.Refusal("message_not_found")
	}
	return wire.Encode(map[string]any{"ok": true, "type": "message", "channel": c.id,
		"message": json.RawMessage(c.appendMessage(nil, s, p, false))})
}

// appendReactions appends the reactions as a member of their message.
func appendReactions(b []byte, all []Reaction) []byte {
	if len(all) == 0 {
		return b
	}
	type counted struct {
		Reaction
		Count int `json:"count"`
	}
	list := make([]counted, len(all))
	for i, r := range all {
		list[i] = counted{r, len(r.Users)}
	}
	return append(append(b, `,"reactions":`...), wire.Encode(list)...)
}
