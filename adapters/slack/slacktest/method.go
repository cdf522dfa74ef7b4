package slacktest

import "net/url"

// method is one of the Web API's: what it does with its arguments.
type method struct {
	run func(s *Server, form url.Values) []byte
	// app says that it takes the app's token and no other.
	app bool
}

// methods are all that the server knows.
// https://docs.slack.dev/reference/methods
var methods = map[string]method{
	"apps.connections.open": {run: (*Server).openConnection, app: true},
	"auth.test":             {run: (*Server).authTest},
	"chat.postMessage":      {run: (*Server).postMessage},
	"conversations.history": {run: (*Server).history},
	"conversations.info":    {run: (*Server).channelInfo},
	"conversations.replies": {run: (*Server).replies},
	"files.info":            {run: (*Server).fileInfo},
	"users.info":            {run: (*Server).userInfo},
}

// respond runs the method and returns the answer's JSON.
func (s *Server) respond(call Call) []byte {
	m, known := methods[call.Method]
	if !known {
		return refusal("unknown_method")
	}
	if code := s.refuseToken(m, call.Form.Get("token")); code != "" {
		return refusal(code)
	}
	return m.run(s, call.Form)
}

// refuseToken returns the code by which the method refuses the token; empty
// where it takes it.
func (s *Server) refuseToken(m method, token string) string {
	wanted, other := s.options.Token, s.options.AppToken
	if m.app {
		wanted, other = other, wanted
	}
	switch token {
	case "":
		return "not_authed"
	case wanted:
		return ""
	case other:
		return "not_allowed_token_type"
	default:
		return "invalid_auth"
	}
}

func (s *Server) authTest(url.Values) []byte {
	return encode(map[string]any{"ok": true, "url": s.url + "/", "team": "Test", "team_id": s.options.Team,
		"user": "parley", "user_id": s.options.BotUser, "bot_id": s.options.BotID})
}
