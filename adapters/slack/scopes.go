package slack

import (
	"net/http"
	"slices"
	"strings"

	"parley/adapters"
)

// scope is a permission that a Slack app asks for, and what it is asked for.
// https://docs.slack.dev/reference/scopes
type scope struct {
	name string
	// lost is what goes without it, as the beginning of a sentence; scopes that
	// are lost alike are told of together.
	lost string
	// events are the subscriptions that Slack grants with it alone. A bot token
	// can't ask which of them there are.
	// https://docs.slack.dev/reference/events
	events []string
	// wanted says whether it is needed as a workspace is configured; nil is always.
	wanted func(Config, adapters.Wants) bool
}

// What goes without a scope.
const (
	lostPosts     = "nothing can be posted"
	lostAll       = "no message can arrive"
	lostMentions  = "mentions arrive only where every message does"
	lostMessages  = "messages of some kinds of conversation do not arrive, and their history can't be read"
	lostPlaces    = "conversations of some kinds can't be listed, so that what was missed there is not read"
	lostNames     = "people appear by their ids"
	lostFiles     = "files that people share can't be read"
	lostUploads   = "files and very long replies can't be uploaded"
	lostReactions = "reactions do not arrive"
	lostCommands  = "slash commands and shortcuts do not arrive"
	lostWorking   = "no reaction shows that the agent is at work"
	lostPrompts   = "a new thread suggests nothing"
)

// scopes are all that the adapter's calls and events need. The status of work
// and streams go with chat:write.
// https://docs.slack.dev/reference/methods
var scopes = []scope{
	{name: "chat:write", lost: lostPosts},
	{name: "app_mentions:read", lost: lostMentions, events: []string{"app_mention"}},
	{name: "channels:history", lost: lostMessages, events: []string{"message.channels"}},
	{name: "groups:history", lost: lostMessages, events: []string{"message.groups"}},
	{name: "im:history", lost: lostMessages, events: []string{"message.im"}},
	{name: "mpim:history", lost: lostMessages, events: []string{"message.mpim"}},
	{name: "channels:read", lost: lostPlaces},
	{name: "groups:read", lost: lostPlaces},
	{name: "im:read", lost: lostPlaces},
	{name: "mpim:read", lost: lostPlaces},
	{name: "users:read", lost: lostNames},
	{name: "files:read", lost: lostFiles},
	{name: "files:write", lost: lostUploads},
	{name: "reactions:read", lost: lostReactions, events: []string{"reaction_added", "reaction_removed"},
		wanted: func(_ Config, wants adapters.Wants) bool { return wants.Reactions }},
	{name: "commands", lost: lostCommands},
	{name: "reactions:write", lost: lostWorking,
		wanted: func(c Config, _ adapters.Wants) bool { return c.Working == WorkingReaction }},
	{name: "assistant:write", lost: lostPrompts,
		wanted: func(c Config, _ adapters.Wants) bool { return len(c.SuggestedPrompts) > 0 }},
}

// grantedScopes reads what the token of an answer's call was granted; false where
// whatever stands between has taken that out of the answer.
// https://docs.slack.dev/authentication/installing-with-oauth#checking
func grantedScopes(header http.Header) ([]string, bool) {
	lists, told := header["X-Oauth-Scopes"]
	var granted []string
	for _, name := range strings.Split(strings.Join(lists, ","), ",") {
		if name = strings.TrimSpace(name); name != "" {
			granted = append(granted, name)
		}
	}
	return granted, told
}

// lack is what a workspace's app lacks for one purpose.
type lack struct {
	lost           string
	scopes, events []string
}

// lacking compares what was granted with what the configuration needs.
func lacking(granted []string, config Config, wants adapters.Wants) []lack {
	var all []lack
	for _, s := range scopes {
		if slices.Contains(granted, s.name) || s.wanted != nil && !s.wanted(config, wants) {
			continue
		}
		at := slices.IndexFunc(all, func(l lack) bool { return l.lost == s.lost })
		if at < 0 {
			at = len(all)
			all = append(all, lack{lost: s.lost})
		}
		all[at].scopes = append(all[at].scopes, s.name)
		all[at].events = append(all[at].events, s.events...)
	}
	return deaf(granted, all)
}

// deaf makes one lack of all those for which no message can arrive at all.
func deaf(granted []string, all []lack) []lack {
	hears := func(s scope) bool { return s.lost == lostMentions || s.lost == lostMessages }
	if slices.ContainsFunc(scopes, func(s scope) bool { return hears(s) && slices.Contains(granted, s.name) }) {
		return all
	}
	one := lack{lost: lostAll}
	all = slices.DeleteFunc(all, func(l lack) bool {
		if l.lost != lostMentions && l.lost != lostMessages {
			return false
		}
		one.scopes, one.events = append(one.scopes, l.scopes...), append(one.events, l.events...)
		return true
	})
	return append([]lack{one}, all...)
}

// isFault says that the workspace can't work so.
func (l lack) isFault() bool { return l.lost == lostPosts || l.lost == lostAll }

// String says what goes without, and what the operator should do.
func (l lack) String() string {
	words := l.lost + ": add the " + listed("scope", l.scopes)
	if len(l.events) > 0 {
		words += " and the " + listed("bot event", l.events)
	}
	return words + " to the app, and install it again"
}

// listed puts a noun in front of its names.
func listed(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}
