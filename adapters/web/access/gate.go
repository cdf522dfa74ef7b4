package access

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/config/secret"
	"parley/ingest/journal/threads"
)

// Gate authenticates the requests of the HTTP API.
type Gate struct {
	// Workspaces returns the workspaces of the HTTP API.
	Workspaces func() []Workspace
	// Secrets are the secrets of the agents that may answer later, by agent; nil for none.
	Secrets func() map[string]secret.Value
	// Tickets has the tickets of callers that cannot set a header, such as a browser's EventSource.
	Tickets *threads.Threads
	Keys    *KeySets
	// RunTokens are the tokens of runs.
	RunTokens *RunTokens
	Guard     *guard.Guard
}

// Workspace is a workspace of the HTTP API.
type Workspace struct {
	ID string
	Config
	Agents []string // the ids of its agents, its own one first
}

// Routes returns the route of tickets.
func (g Gate) Routes() []Route {
	return []Route{{Pattern: "POST /api/v1/tickets", Take: g.postTicket}}
}

// Handler returns the handler of a route. It refuses bodies that declare too many bytes,
// callers without a token, and callers without the route's right.
func (g Gate) Handler(route Route) http.HandlerFunc {
	if route.MaxBody == 0 {
		route.MaxBody = exchange.MaxBody
	}
	if route.TooLarge == "" {
		route.TooLarge = "the body is too long"
	}
	return exchange.Handler(g.Guard, route.NotFound, func(w http.ResponseWriter, r *http.Request) error {
		if r.ContentLength > route.MaxBody {
			return exchange.Fail(http.StatusRequestEntityTooLarge, "too-large", route.TooLarge)
		}
		if route.OfRun != nil && strings.HasPrefix(guard.Bearer(r), runTokenPrefix) {
			return g.ofRun(route, w, r)
		}
		if route.Own != nil {
			if agents := g.AgentsWith(guard.Bearer(r)); len(agents) > 0 {
				return g.own(route, w, r, agents)
			}
		}
		call, err := g.identify(w, r)
		if err == nil {
			g.Guard.Admit(r)
		}
		switch {
		case err != nil:
			return err
		case route.Right == ForUsers && call.Actor.IsAgent():
			return exchange.Fail(http.StatusForbidden, "forbidden", AgentsMay)
		case route.Right == ForAgents && !call.Actor.IsAgent():
			return exchange.Fail(http.StatusForbidden, "forbidden", OnlyAgents)
		}
		if route.Serve != nil {
			return route.Serve(call, w, r)
		}
		body, err := exchange.ReadJSON(g.Guard, w, r, route.TooLarge)
		if err != nil {
			return err
		}
		return route.Take(call, w, r, body)
	})
}

// own serves a route to agents that answer later.
func (g Gate) own(route Route, w http.ResponseWriter, r *http.Request, agents map[string]bool) error {
	if route.Serve != nil {
		return route.Own(w, r, nil, agents)
	}
	body, err := exchange.ReadJSON(g.Guard, w, r, route.TooLarge)
	if err != nil {
		return err
	}
	return route.Own(w, r, body, agents)
}

// identify authenticates a request of a route that names no workspace.
func (g Gate) identify(w http.ResponseWriter, r *http.Request) (Call, error) {
	workspaces := g.Workspaces()
	if of, token := find(workspaces, guard.Bearer(r)); token != nil {
		return g.call(of, *token), nil
	}
	if call := g.redeem(workspaces, r); call != nil {
		return *call, nil
	}
	of, u, err := g.Keys.signed(r.Context(), workspaces, guard.Bearer(r))
	switch {
	case err != nil:
		return Call{}, g.refuseSigned(w, r, err)
	case u != nil:
		return g.callOf(of, u), nil
	}
	return Call{}, g.RefuseToken(w, r, "the request needs a token of a web workspace: Authorization: Bearer …")
}

// call returns the call of a token.
func (g Gate) call(of Workspace, token Token) Call {
	return Call{
		Workspace: of.ID, Agents: of.Agents, Tokens: of.Tokens, Token: token, Actor: token.ActorIn(of.ID), local: of.Local, mark: token.mark(),
		admitted: func() bool { return g.has(of.ID, token) },
	}
}

// callOf is call for the user of a signed token.
func (g Gate) callOf(of Workspace, u *jwtUser) Call {
	return Call{
		Workspace: of.ID, Agents: of.Agents, Tokens: of.Tokens, Token: u.token(), Actor: u.Actor, mark: u.mark(),
		admitted: func() bool {
			return slices.ContainsFunc(g.Workspaces(), func(now Workspace) bool { return now.ID == of.ID && g.Keys.isAdmitted(u, now.JWT) })
		},
	}
}

// has reports whether a workspace has a token. A token with another secret or other rights is
// another one.
func (g Gate) has(workspace string, token Token) bool {
	return slices.ContainsFunc(g.Workspaces(), func(w Workspace) bool {
		isSame := func(t Token) bool { return reflect.DeepEqual(t, token) }
		return w.ID == workspace && slices.ContainsFunc(w.Tokens, isSame)
	})
}

// find returns the workspace's token with a value. It compares with every token, so that the
// duration does not reveal which one matched.
func (w *Workspace) find(given string) (found *Token) {
	for i := range w.Tokens {
		if w.Tokens[i].Token.Equal(given) {
			found = &w.Tokens[i]
		}
	}
	return found
}

// find returns the token with a value and its workspace. It compares with every
// token of every workspace, so that the duration does not reveal which one matched.
func find(workspaces []Workspace, given string) (of Workspace, found *Token) {
	for _, w := range workspaces {
		if token := w.find(given); token != nil {
			of, found = w, token
		}
	}
	return of, found
}

// AgentsWith returns the agents with a secret. It compares with every secret, so that the duration
// does not reveal which one matched.
func (g Gate) AgentsWith(given string) map[string]bool {
	found := map[string]bool{}
	if g.Secrets == nil {
		return found
	}
	for agent, secret := range g.Secrets() {
		if secret.Equal(given) {
			found[agent] = true
		}
	}
	return found
}
