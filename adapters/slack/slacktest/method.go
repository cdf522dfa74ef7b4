package slacktest

import "net/url"

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
	"conversations.replies":                 {run: (*Server).replies, scope: "*:history", tier: 50, reads: true},
	"files.completeUploadExternal":          {run: (*Server).completeUpload, scope: "files:write", tier: 100},
	"files.getUploadURLExternal":            {run: (*Server).uploadURL, scope: "files:write", tier: 100},
	"files.info":                            {run: (*Server).fileInfo, scope: "files:read", tier: 100},
	"reactions.add":                         {run: (*Server).addReaction, scope: "reactions:write", tier: 50},
	"reactions.get":                         {run: (*Server).getReactions, scope: "reactions:read", tier: 50},
	"reactions.remove":                      {run: (*Server).removeReaction, scope: "reactions:write", tier: 20},
	"team.info":                             {run: (*Server).teamInfo, scope: "team:read", tier: 50},
	"users.conversations":                   {run: (*Server).ourChannels, scope: "*:read", tier: 50},
	"users.info":                            {run: (*Server).userInfo, scope: "users:read", tier: 100},
}

// respond runs the method and returns the response's JSON.
func (s *Server) respond(call Call) []byte {
	m, known := methods[call.Method]
	if !known {
		return refusal("unknown_method")
	}
	if code := s.refuseToken(m, call.Form.Get("token")); code != "" {
		return refusal(code)
	}
	if scope := s.lacks(m, call.Form); scope != "" {
		return encode(map[string]any{"ok": false, "error": "missing_scope", "needed": scope, "provided": s.provided})
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
		return encode(map[string]any{"ok": true, "app_id": App, "app_name": "parley"})
	}
	answer := map[string]any{"ok": true, "url": s.url + "/", "team": "Test", "team_id": s.options.Team,
		"user": "parley", "user_id": s.options.BotUser, "bot_id": s.options.BotID, "is_enterprise_install": false}
	if s.options.Enterprise != "" {
		answer["enterprise_id"] = s.options.Enterprise
	}
	return encode(answer)
}

// missing returns the response of a method that lacks a required argument.
func missing(argument string) []byte {
	text := "[ERROR] missing required field: " + argument
	return encode(map[string]any{"ok": false, "error": "invalid_arguments",
		"response_metadata": map[string]any{"messages": []string{text}}})
}
