package discordtest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// The routes that Script and Call name.
const (
	Post        = "POST /channels/{channel}/messages"
	Edit        = "PATCH /channels/{channel}/messages/{message}"
	Remove      = "DELETE /channels/{channel}/messages/{message}"
	Read        = "GET /channels/{channel}/messages"
	ReadOne     = "GET /channels/{channel}/messages/{message}"
	Typing      = "POST /channels/{channel}/typing"
	React       = "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	Unreact     = "DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me"
	OpenThread  = "POST /channels/{channel}/messages/{message}/threads"
	GetChannel  = "GET /channels/{channel}"
	GetGuilds   = "GET /users/@me/guilds"
	GetGuild    = "GET /guilds/{guild}"
	GetChannels = "GET /guilds/{guild}/channels"
	GetThreads  = "GET /guilds/{guild}/threads/active"
	GetMember   = "GET /guilds/{guild}/members/{user}"
	OpenDirect  = "POST /users/@me/channels"
	GetSelf     = "GET /users/@me"
	GetUser     = "GET /users/{user}"
	GetApp      = "GET /applications/@me"
	GetGateway  = "GET /gateway/bot"
	Callback    = "POST /interactions/{interaction}/{token}/callback"
	EditAnswer  = "PATCH /webhooks/{app}/{token}/messages/{message}"
	GetAnswer   = "GET /webhooks/{app}/{token}/messages/@original"
	EndAnswer   = "DELETE /webhooks/{app}/{token}/messages/{message}"
	FollowUp    = "POST /webhooks/{app}/{token}"
	Upsert      = "POST /applications/{app}/commands"
	GetCommands = "GET /applications/{app}/commands"
	Overwrite   = "PUT /applications/{app}/commands"
)

// Connect is the opening of a gateway connection, for Script and Call.
const Connect = "gateway"

// Call is one request to the API.
type Call struct {
	Route  string
	Path   string // below the version
	Body   json.RawMessage
	Files  []Upload
	Client string // the name in the ClientURL of the caller, or empty
}

// Upload is one file of a request.
type Upload struct {
	Name    string
	Content []byte
}

// request is a call with its arguments.
type request struct {
	Call
	*http.Request
}

// decode reads the body into v. A body in another form counts as empty.
func (r request) decode(v any) { _ = json.Unmarshal(r.Call.Body, v) }

// handler serves a call and returns the value of the response, or a refusal. A nil value is
// the status 204. The handler holds the lock.
type handler func(s *Server, r request) any

func handlers() map[string]handler {
	all := map[string]handler{
		GetSelf: func(s *Server, _ request) any { return s.users[BotUser].wire() },
		GetApp: func(s *Server, _ request) any {
			return map[string]any{"id": App, "name": "parley", "flags": s.appFlags(), "bot_public": s.options.Public}
		},
		GetGateway: (*Server).gatewayBot,
		"GET /gateway": func(s *Server, _ request) any {
			return map[string]any{"url": s.gatewayURL()}
		},
	}
	for _, more := range []map[string]handler{messageHandlers(), directoryHandlers(), interactionHandlers()} {
		maps.Copy(all, more)
	}
	return all
}

// routes returns the mux of the API.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, serve := range handlers() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, pattern, serve) })
	}
	return mux
}

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 32 << 20

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, client, path string) {
	r.URL.Path, r.URL.RawPath = path, ""
	r.Header.Set("X-Client", client)
	s.api.ServeHTTP(w, r)
}

// serve serves a call with its fault.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route string, serve handler) {
	call := Call{Route: route, Path: r.URL.Path, Client: r.Header.Get("X-Client")}
	if err := call.read(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f := s.fault(call) // before OnCall, because a client that OnCall wakes may make the next call
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	var answer any
	ran := make(chan struct{})
	s.running.Go(func() {
		defer close(ran)
		if s.pass(f) && (f.Effect || !f.answers()) {
			s.change(func() { answer = s.respond(w.Header(), request{call, r}, serve) })
		}
	})
	select {
	case <-ran:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	if f.answers() {
		f.write(w)
		return
	}
	switch answer := answer.(type) {
	case refusal:
		answer.write(w)
	case tooFast:
		limited(w, answer.after, "user")
	case nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encode(answer))
	}
}

// read reads the body: JSON, or a form with files.
func (c *Call) read(r *http.Request) error {
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil || kind != "multipart/form-data" {
		c.Body = body
		return err
	}
	for parts := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if part.FormName() == "payload_json" {
			c.Body = content
		} else {
			c.Files = append(c.Files, Upload{Name: part.FileName(), Content: content})
		}
	}
}

// respond runs the handler, unless the token or the rate limit refuses the call. It sets the
// headers of the rate limit. Interactions and webhooks need no token.
func (s *Server) respond(header http.Header, r request, serve handler) any {
	open := strings.Contains(r.Route, "{token}")
	switch {
	case s.closed:
		return refusal{http.StatusServiceUnavailable, 0, "closed"}
	case !open && (s.revoked || r.Header.Get("Authorization") != "Bot "+s.options.Token):
		return unauthorized
	case r.Route == Post || r.Route == Edit:
		if after := s.limit(header, r.Route+r.PathValue("channel")); after > 0 {
			return tooFast{after}
		}
	}
	return serve(s, r)
}
