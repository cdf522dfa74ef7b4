package access

import (
	"net/http"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// Call is a request of an authenticated caller on a route that names no workspace.
type Call struct {
	// Workspace is the id of the workspace that the token is of, and Agents are the ids of its agents,
	// its own one first.
	Workspace string
	Agents    []string
	Tokens    []Token // of the workspace
	Token     Token
	Actor     payload.Actor

	local bool // the workspace is the built-in one
	// mark names the token with its rights.
	mark string
	// admitted reports whether the token is still configured with the same rights.
	admitted func() bool
}

// Owner returns the caller's token, to which the answers and the streams of the caller count.
func (c Call) Owner() exchange.Owner {
	return exchange.Owner{Workspace: c.Workspace, Token: c.Token.ID}
}

// IsAdmitted reports whether the caller's token is still configured with the same rights.
func (c Call) IsAdmitted() bool { return c.admitted() }

// AsCaller returns the caller as one that writes its own messages of a kind in its workspace.
func (c Call) AsCaller(kind event.SenderType) Caller {
	return Caller{Workspace: c.Workspace, Token: c.Token, Sender: string(c.Actor), kind: kind, bare: true}
}

// AsReader returns the caller as one that reads.
func (c Call) AsReader() Caller { return Caller{Workspace: c.Workspace, Token: c.Token, any: c.local} }

// Route is a route that names no workspace: the caller's token does.
type Route struct {
	Pattern string // of http.ServeMux
	Right   Right
	// MaxBody bounds a body of the route, in bytes; 0 is 256 KiB.
	MaxBody int64
	// TooLarge is the message of the error for a longer body; empty for the usual one.
	TooLarge string
	// NotFound is the message of the error for an unknown thread or run; empty for the usual one.
	NotFound string
	// Serve responds to a request, or Take to one whose body must be JSON.
	Serve func(Call, http.ResponseWriter, *http.Request) error
	Take  func(c Call, w http.ResponseWriter, r *http.Request, body []byte) error
	// Own takes the body of a request with the secret of agents that answer later; nil if they may not
	// use the route.
	Own func(w http.ResponseWriter, r *http.Request, body []byte, agents map[string]bool) error
	// OfRun takes the body of a request with the token of a run; nil if such a token may not use the route.
	OfRun func(w http.ResponseWriter, r *http.Request, body []byte, run string) error
}

// Right is the kind of callers that may use a route.
type Right int

// The rights.
const (
	ForAll    Right = iota // a route that changes nothing, or decides about its callers
	ForUsers               // it acts for the caller, and agents may not use it
	ForAgents              // it acts for the caller, and users may not use it
)

// AgentsMay is the message of the error for an agent's token.
const AgentsMay = "the token of an agent may only read, send agent-messages and add updates to runs"

// OnlyAgents is the message of the error for a user's token.
const OnlyAgents = "only the token of an agent may do this: its actor begins with agent:"

// Serve returns the Serve of a route whose handler is a method of a room's own call.
func Serve[C any](of func(Call) C, serve func(C, http.ResponseWriter, *http.Request) error) func(Call, http.ResponseWriter, *http.Request) error {
	return func(c Call, w http.ResponseWriter, r *http.Request) error { return serve(of(c), w, r) }
}

// Take returns the Take of a route whose handler is a method of a room's own call.
func Take[C any](of func(Call) C, take func(C, http.ResponseWriter, *http.Request, []byte) error) func(Call, http.ResponseWriter, *http.Request, []byte) error {
	return func(c Call, w http.ResponseWriter, r *http.Request, body []byte) error {
		return take(of(c), w, r, body)
	}
}
