package slacktest

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest/internal/wire"
)

// method is a method of the Web API: its function and its requirements.
type method struct {
	run func(s *Server, form url.Values) []byte
	// scope is the required scope of the token. Alternatives are separated by |. A * means
	// the kind of the requested channel.
	scope string
	// tier is the number of calls per minute that Slack guarantees; 0 if it names none.
	// https://docs.slack.dev/apis/web-api/rate-limits
	tier int
	// posts means that a call counts against its channel's rate.
	posts bool
	// reads means that it reads messages, which Slack limits for some apps.
	reads bool
	// app means that it accepts only the app's token. both means that it accepts either
	// token.
	app, both bool
}

// methods are the methods that the server implements.
// https://docs.slack.dev/reference/methods
var methods = map[string]method{
	"apps.connections.open":                 {run: (*Server).openConnection, app: true},
	"assistant.threads.setStatus":           {run: (*Server).setStatus, scope: "chat:write|assistant:write"},
	"assistant.threads.setSuggestedPrompts": {run: (*Server).setPrompts, scope: "assistant:write", tier: 100},
	"assistant.threads.setTitle":            {run: (*Server).setTitle, scope: "assistant:write", tier: 100},
	"auth.test":                             {run: (*Server).authTest, both: true},
	"bots.info":                             {run: (*Server).botInfo, scope: "users:read", tier: 50},
	"chat.appendStream":                     {run: (*Server).appendStream, scope: "chat:write", tier: 100, posts: true},
	"chat.delete":                           {run: (*Server).remove, scope: "chat:write", tier: 50},
	"chat.postEphemeral":                    {run: (*Server).postEphemeral, scope: "chat:write", tier: 100, posts: true},
	"chat.postMessage":                      {run: (*Server).postMessage, scope: "chat:write", posts: true},
	"chat.startStream":                      {run: (*Server).startStream, scope: "chat:write", tier: 20, posts: true},
	"chat.stopStream":                       {run: (*Server).stopStream, scope: "chat:write", tier: 20, posts: true},
	"chat.update":                           {run: (*Server).update, scope: "chat:write", tier: 50, posts: true},
	"conversations.history":                 {run: (*Server).history, scope: "*:history", tier: 50, reads: true},
	"conversations.info":                    {run: (*Server).channelInfo, scope: "*:read", tier: 50},
	"conversations.list":                    {run: (*Server).listChannels, scope: "*:read", tier: 20},
	"conversations.members":                 {run: (*Server).members, scope: "*:read", tier: 100},
	"conversations.open":                    {run: (*Server).openDirect, scope: "im:write", tier: 50},
	"conversations.replies":                 {run: (*Server).replies, scope: "*:history", tier: 50, reads: true},
	"files.completeUploadExternal":          {run: (*Server).completeUpload, scope: "files:write", tier: 100},
	"files.getUploadURLExternal":            {run: (*Server).uploadURL, scope: "files:write", tier: 100},
	"files.info":                            {run: (*Server).fileInfo, scope: "files:read", tier: 100},
	"reactions.add":                         {run: (*Server).addReaction, scope: "reactions:write", tier: 50},
	"reactions.get":                         {run: (*Server).getReactions, scope: "reactions:read", tier: 50},
	"reactions.remove":                      {run: (*Server).removeReaction, scope: "reactions:write", tier: 20},
	"team.info":                             {run: (*Server).teamInfo, scope: "team:read", tier: 50},
	"usergroups.list":                       {run: (*Server).listGroups, scope: "usergroups:read", tier: 20},
	"users.conversations":                   {run: (*Server).ourChannels, scope: "*:read", tier: 50},
	"users.info":                            {run: (*Server).userInfo, scope: "users:read", tier: 100},
}

// respond runs the method and returns the response's JSON.
func (s *Server) respond(call Call) []byte {
	m, known := methods[call.Method]
	if !known {
		return wire.Refusal("unknown_method")
	}
	if code := s.refuseToken(m, call.Form.Get("token")); code != "" {
		return wire.Refusal(code)
	}
	if scope := s.lacks(m, call.Form); scope != "" {
		return wire.Encode(map[string]any{"ok": false, "error": "missing_scope", "needed": scope, "provided": s.provided})
	}
	return m.run(s, call.Form)
}

// refuseToken returns the code with which the method refuses the token, or an empty string.
func (s *Server) refuseToken(m method, token string) string {
	isBot, isApp := token == s.options.Token, token == s.options.AppToken
	switch {
	case token == "":
		return "not_authed"
	case !isBot && !isApp:
		return "invalid_auth"
	case s.revoked.Load():
		return "token_revoked"
	case !m.both && isApp != m.app:
		return "not_allowed_token_type"
	}
	return ""
}

// Revoke revokes both tokens: the server refuses every later call.
func (s *Server) Revoke() { s.revoked.Store(true) }

// authTest is auth.test. For the app's token it reports only the app.
// https://docs.slack.dev/reference/methods/auth.test
func (s *Server) authTest(form url.Values) []byte {
	if form.Get("token") == s.options.AppToken {
		return wire.Encode(map[string]any{"ok": true, "app_id": App, "app_name": "parley"})
	}
	answer := map[string]any{"ok": true, "url": s.url + "/", "team": "Test", "team_id": s.options.Team,
		"user": "parley", "user_id": s.options.BotUser, "bot_id": s.options.BotID, "is_enterprise_install": false}
	if s.options.Enterprise != "" {
		answer["enterprise_id"] = s.options.Enterprise
	}
	return wire.Encode(answer)
}

// AllScopes returns the bot's scopes that Parley needs. They are the default of
// Options.Scopes.
// https://docs.slack.dev/reference/scopes
func AllScopes() []string {
	return []string{"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history",
		"mpim:read", "reactions:read", "reactions:write", "team:read", "usergroups:read", "users:read"}
}

// granted reports whether the bot has the scope.
func (s *Server) granted(scope string) bool { return slices.Contains(s.options.Scopes, scope) }

// lacks returns a scope that the call needs and the bot lacks, or an empty string.
func (s *Server) lacks(m method, form url.Values) string {
	if rest, byKind := strings.CutPrefix(m.scope, "*"); byKind {
		for _, kind := range s.kindsAskedFor(form) {
			if scope := kind.family() + rest; !s.granted(scope) {
				return scope
			}
		}
		return ""
	}
	first, more, _ := strings.Cut(m.scope, "|")
	if first == "" || s.granted(first) || more != "" && s.granted(more) {
		return ""
	}
	return first
}

// kindsAskedFor returns the kind of the channel in the call, or else the kinds in types.
func (s *Server) kindsAskedFor(form url.Values) []Kind {
	if id := form.Get("channel"); id != "" {
		return []Kind{s.kindOf(id)}
	}
	kinds, _ := readTypes(form)
	return kinds
}

// throttle returns the time that a call must wait because it comes too early. It returns 0 if
// the call may proceed, and counts the call.
func (s *Server) throttle(call Call) time.Duration {
	m := methods[call.Method]
	now := s.options.Now()
	tier := 0
	switch {
	case s.options.Distributed && m.reads:
		tier = 1
	case s.options.Tiers:
		tier = m.tier
	}
	if tier > 0 {
		if wait := s.tiers.take(call.Method, tier, now); wait > 0 {
			return wait
		}
	}
	if id := call.Form.Get("channel"); m.posts && s.options.PostRate > 0 && id != "" {
		return s.channel(id).take(now, time.Duration(float64(time.Second)/s.options.PostRate))
	}
	return 0
}

// unevenness is the fraction of the time between two posts by which a post may come early,
// because the network is uneven. Over many posts, the rate holds.
const unevenness = 5

// take counts a post against the channel's rate, or returns the time to wait.
func (c *channel) take(now time.Time, every time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait := c.next.Sub(now); wait > every/unevenness {
		return wait
	}
	if now.After(c.next) {
		c.next = now
	}
	c.next = c.next.Add(every)
	return 0
}

// tiers counts the calls of the last minute.
type tiers struct {
	mu    sync.Mutex
	calls map[string][]time.Time // by method, at most its tier
}

// take counts a call of the method, which accepts n per minute, or returns the time to wait.
func (t *tiers) take(name string, n int, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string][]time.Time{}
	}
	recent := t.calls[name]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	if len(recent) < n {
		t.calls[name] = append(recent, now)
		return 0
	}
	t.calls[name] = recent
	return time.Minute - now.Sub(recent[0])
}

// wholeSeconds rounds up, as Retry-After requires.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
