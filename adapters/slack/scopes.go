package slack

import (
	"net/http"
	"slices"
	"strings"

	"parley/adapters"
	"parley/adapters/slack/send"
)

// scope is a permission of a Slack app, with Parley's use of it.
// https://docs.slack.dev/reference/scopes
type scope struct {
	name string
	// effect describes the effect of a missing scope, as the beginning of a sentence.
	// Scopes with the same effect are reported together.
	effect string
	// events are the event subscriptions that need this scope. A bot token can't list the
	// app's subscriptions.
	// https://docs.slack.dev/reference/events
	events []string
	// needed reports whether the workspace's configuration needs the scope; nil means
	// always.
	needed func(Config, adapters.Wants) bool
}

// The effects of missing scopes.
const (
	effectPosts     = "nothing can be posted"
	effectAll       = "no message can arrive"
	effectMentions  = "mentions arrive only from conversations in which the app gets every message"
	effectMessages  = "messages of some kinds of conversation do not arrive, and their history can't be read"
	effectChannels  = "conversations of some kinds can't be listed, so backfill skips them"
	effectNames     = "people appear under their ids"
	effectFiles     = "shared files can't be read"
	effectUploads   = "files and very long replies can't be uploaded"
	effectReactions = "reactions do not arrive"
	effectCommands  = "slash commands and shortcuts do not arrive"
	effectWorking   = "no reaction shows that the agent is working"
	effectReacts    = "agents and programs can't add reactions"
	effectPersons   = "nobody can post to people who have not written to the bot, and such approvers are not asked about strangers"
	effectGroups    = "user groups admit nobody, and none of their members approves"
	effectPrompts   = "new threads show no suggested prompts"
)

// scopes are all scopes that the adapter's calls and events need. The scope chat:write
// includes streams and the working status.
// https://docs.slack.dev/reference/methods
var scopes = []scope{
	{name: "chat:write", effect: effectPosts},
	{name: "app_mentions:read", effect: effectMentions, events: []string{"app_mention"}},
	{name: "channels:history", effect: effectMessages, events: []string{"message.channels"}},
	{name: "groups:history", effect: effectMessages, events: []string{"message.groups"}},
	{name: "im:history", effect: effectMessages, events: []string{"message.im"}},
	{name: "mpim:history", effect: effectMessages, events: []string{"message.mpim"}},
	{name: "channels:read", effect: effectChannels},
	{name: "groups:read", effect: effectChannels},
	{name: "im:read", effect: effectChannels},
	{name: "mpim:read", effect: effectChannels},
	{name: "im:write", effect: effectPersons},
	{name: "users:read", effect: effectNames},
	{name: "files:read", effect: effectFiles},
	{name: "files:write", effect: effectUploads},
	{name: "reactions:read", effect: effectReactions, events: []string{"reaction_added", "reaction_removed"},
		needed: func(_ Config, wants adapters.Wants) bool { return wants.Reactions }},
	{name: "commands", effect: effectCommands},
	{name: "reactions:write", effect: effectWorking,
		needed: func(c Config, _ adapters.Wants) bool { return c.Working == send.WorkingReaction }},
	{name: "reactions:write", effect: effectReacts,
		needed: func(_ Config, wants adapters.Wants) bool { return wants.Reacts }},
	{name: "usergroups:read", effect: effectGroups, events: []string{"subteam_members_changed", "subteam_updated"},
		needed: func(_ Config, wants adapters.Wants) bool { return wants.Groups }},
	{name: "assistant:write", effect: effectPrompts,
		needed: func(c Config, _ adapters.Wants) bool { return len(c.SuggestedPrompts) > 0 }},
}

// grantedScopes returns the scopes of the token, from the header of an answer. It
// returns false if the header is missing, for example because a proxy removed it.
// https://docs.slack.dev/authentication/installing-with-oauth#checking
func grantedScopes(header http.Header) ([]string, bool) {
	lists, known := header["X-Oauth-Scopes"]
	isSeparator := func(r rune) bool { return r == ',' || r == ' ' }
	return strings.FieldsFunc(strings.Join(lists, ","), isSeparator), known
}

// missingScope lists the missing scopes and events that have the same effect.
type missingScope struct {
	effect         string
	scopes, events []string
}

// delivers reports whether messages arrive by the scope.
func (s scope) delivers() bool { return s.effect == effectMentions || s.effect == effectMessages }

// missingScopes compares the granted scopes with those that the configuration needs. If the
// app lacks every scope by which messages arrive, these have one effect.
func missingScopes(granted []string, config Config, wants adapters.Wants) []missingScope {
	var all []missingScope
	arrive := slices.ContainsFunc(scopes, func(s scope) bool { return s.delivers() && slices.Contains(granted, s.name) })
	for _, s := range scopes {
		if slices.Contains(granted, s.name) || s.needed != nil && !s.needed(config, wants) {
			continue
		}
		effect := s.effect
		if s.delivers() && !arrive {
			effect = effectAll
		}
		at := slices.IndexFunc(all, func(l missingScope) bool { return l.effect == effect })
		if at < 0 {
			at = len(all)
			all = append(all, missingScope{effect: effect})
		}
		all[at].scopes = append(all[at].scopes, s.name)
		all[at].events = append(all[at].events, s.events...)
	}
	return all
}

// isFault reports whether the workspace can't work without the scopes.
func (l missingScope) isFault() bool { return l.effect == effectPosts || l.effect == effectAll }

// String describes the effect, and the operator's remedy.
func (l missingScope) String() string {
	words := l.effect + ": add the " + withNoun("scope", l.scopes)
	if len(l.events) > 0 {
		words += " and the " + withNoun("bot event", l.events)
	}
	return words + " to the app, and install it again"
}

// withNoun returns the names after a noun, which is plural if there are several names.
func withNoun(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}
