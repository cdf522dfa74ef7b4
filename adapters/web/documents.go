package web

import (
	"math"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"parley/adapters/guard"
	"parley/adapters/web/payload"
)

// Documents serves the routes of the documents on threads, runs, attachments and updates.
// These routes name no workspace: the caller's token does.
type Documents struct {
	// Adapters returns the adapters of all workspaces of our API.
	Adapters func() []*Adapter
	// API returns the API of a workspace.
	API   func(workspace string) API
	Keys  *KeySets
	Guard *guard.Guard
	// Replies takes the requests of agents that answer later.
	Replies Replies
}

// Routes returns the routes of the documents.
func Routes() []Route {
	return slices.Concat(chatRoutes(), runRoutes(), agentRoutes(), []Route{
		{Pattern: "POST /api/v1/agent/attachments", Right: ForUsers, MaxBody: math.MaxInt64, Serve: Call.PostAttachment},
	})
}

// Route is one of the documents' routes.
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
	Own func(p Replies, w http.ResponseWriter, r *http.Request, body []byte, agents map[string]bool) error
}

// Right is the kind of callers that may use a route.
type Right int

// The rights.
const (
	ForAll    Right = iota // a route that changes nothing, or decides about its callers
	ForUsers               // it acts for the caller, and agents may not use it
	ForAgents              // it acts for the caller, and users may not use it
)

// agentsMay is the message of the error for an agent's token.
const agentsMay = "the token of an agent may only read, send agent-messages and add updates to runs"

// onlyAgents is the message of the error for a user's token.
const onlyAgents = "only the token of an agent may do this: its actor begins with agent:"

// Call is a request of an authenticated caller.
type Call struct {
	// API is the API of the workspace that the token is of.
	API
	Token Token
	Actor payload.Actor

	// mark names the token with its rights.
	mark string
	// admitted reports whether the token is still configured with the same rights.
	admitted func() bool
}

// Handler returns the handler of a route. It refuses bodies that declare too many bytes,
// callers without a token, and callers without the route's right.
func (d Documents) Handler(route Route) http.HandlerFunc {
	if route.MaxBody == 0 {
		route.MaxBody = maxBody
	}
	if route.TooLarge == "" {
		route.TooLarge = "the body is too long"
	}
	return func(w http.ResponseWriter, r *http.Request) {
		API{Guard: d.Guard, notFound: route.NotFound}.Serve(w, r, func(API, http.ResponseWriter, *http.Request) error {
			if r.ContentLength > route.MaxBody {
				return fail(http.StatusRequestEntityTooLarge, "too-large", route.TooLarge)
			}
			if agents := d.Replies.agents(guard.Bearer(r)); route.Own != nil && len(agents) > 0 {
				return d.own(route, w, r, agents)
			}
			call, err := d.admit(w, r)
			if err == nil {
				d.Guard.Admit(r)
			}
			switch {
			case err != nil:
				return err
			case route.Right == ForUsers && call.Actor.IsAgent():
				return fail(http.StatusForbidden, "forbidden", agentsMay)
			case route.Right == ForAgents && !call.Actor.IsAgent():
				return fail(http.StatusForbidden, "forbidden", onlyAgents)
			}
			if route.Serve != nil {
				return route.Serve(call, w, r)
			}
			body, err := call.json(w, r, route.TooLarge)
			if err != nil {
				return err
			}
			return route.Take(call, w, r, body)
		})
	}
}

// own serves a route to agents that answer later.
func (d Documents) own(route Route, w http.ResponseWriter, r *http.Request, agents map[string]bool) error {
	body, err := API{Guard: d.Guard}.json(w, r, route.TooLarge)
	if err != nil {
		return err
	}
	return route.Own(d.Replies, w, r, body, agents)
}

// json reads a body that must be JSON.
func (a API) json(w http.ResponseWriter, r *http.Request, tooLarge string) ([]byte, error) {
	if !isJSON(r) {
		return nil, fail(http.StatusUnsupportedMediaType, "content-type", "the body must have Content-Type: application/json")
	}
	return a.body(w, r, tooLarge)
}

// admit authenticates a request.
func (d Documents) admit(w http.ResponseWriter, r *http.Request) (Call, error) {
	adapters := d.Adapters()
	if a, token := find(adapters, guard.Bearer(r)); token != nil {
		return d.call(a, *token), nil
	}
	if call := d.redeem(adapters, r); call != nil {
		return *call, nil
	}
	a, u, err := d.Keys.signed(r.Context(), adapters, guard.Bearer(r))
	switch {
	case err != nil:
		return Call{}, API{Guard: d.Guard}.refuseSigned(w, r, err)
	case u != nil:
		return d.callOf(a, u), nil
	}
	return Call{}, refuseToken(d.Guard, w, r, "the request needs a token of a web workspace: Authorization: Bearer …")
}

func (d Documents) call(a *Adapter, token Token) Call {
	return Call{API: d.API(a.workspace), Token: token, Actor: token.actor(a.workspace), mark: token.mark(), admitted: func() bool { return d.has(a.workspace, token) }}
}

// callOf is call for the user of a signed token.
func (d Documents) callOf(a *Adapter, u *jwtUser) Call {
	return Call{API: d.API(a.workspace), Token: u.token(), Actor: u.Actor, mark: u.mark(), admitted: func() bool {
		return slices.ContainsFunc(d.Adapters(), func(now *Adapter) bool { return now.workspace == a.workspace && d.Keys.isAdmitted(u, now.config.JWT) })
	}}
}

// begin waits until an answer with a page of the store may begin.
func (c Call) begin(r *http.Request) (end func(), err error) {
	return c.Streams.pages.begin(r.Context(), streamOwner{c.Workspace, c.Token.ID})
}

// has reports whether a workspace has a token. A token with another secret or other rights is
// another one.
func (d Documents) has(workspace string, token Token) bool {
	return slices.ContainsFunc(d.Adapters(), func(a *Adapter) bool {
		isSame := func(t Token) bool { return reflect.DeepEqual(t, token) }
		return a.workspace == workspace && slices.ContainsFunc(a.config.Tokens, isSame)
	})
}

// find returns the token with a value and its workspace's adapter. It compares with every
// token of every workspace, so that the duration does not reveal which one matched.
func find(adapters []*Adapter, given string) (of *Adapter, found *Token) {
	for _, a := range adapters {
		if token := a.find(given); token != nil {
			of, found = a, token
		}
	}
	return of, found
}

// isJSON reports whether a request says that its body is JSON.
func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && strings.EqualFold(mediaType, "application/json")
}
