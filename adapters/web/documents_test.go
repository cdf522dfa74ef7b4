package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/adapters/guard"
	"parley/adapters/web"
	"parley/adapters/web/payload"
	"parley/config/secret"
)

const agentActor = payload.Actor("agent:6ba7b811-9dad-41d1-80b4-00c04fd430c8")

// documents starts a server with a route for each right. They answer with the caller's actor
// and workspace.
func documents(t *testing.T, local bool) *httptest.Server {
	t.Helper()
	adapters := []*web.Adapter{
		web.New("ours", web.Config{Local: local, Tokens: []web.Token{
			{ID: "olivia", Token: secret.New(ownToken)},
			{ID: "helper", Token: secret.New(anyToken), Actor: agentActor},
		}}),
		web.New("theirs", web.Config{Tokens: []web.Token{{ID: "olivia", Token: secret.New(readerToken)}}}),
	}
	guards := guard.New(func(string) {})
	d := web.Documents{
		Adapters: func() []*web.Adapter { return adapters }, Guard: guards,
		API: func(workspace string) web.API { return web.API{Workspace: workspace, Guard: guards} },
	}
	mux := http.NewServeMux()
	for name, right := range map[string]web.Right{"GET /all": web.ForAll, "POST /users": web.ForUsers, "POST /agents": web.ForAgents} {
		mux.HandleFunc(name, d.Handler(web.Route{Right: right, MaxBody: 8, TooLarge: "too many words", Serve: func(c web.Call, w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte(string(c.Actor) + " of " + c.Workspace))
			return err
		}}))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// ask sends a request and returns its status and body.
func ask(t *testing.T, server *httptest.Server, route, body string, header ...string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	request := httptest.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	request.RemoteAddr = "127.0.0.1:1"
	request.Host = "localhost"
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response := httptest.NewRecorder()
	server.Config.Handler.ServeHTTP(response, request)
	return response.Code, response.Body.String()
}

// TestTokenNamesWorkspaceAndActor checks who calls a route that names no workspace, and that
// agents have their own routes.
func TestTokenNamesWorkspaceAndActor(t *testing.T) {
	const (
		oliviaOfOurs   = "user:cab9ee32-ba26-59ea-b824-a6ce8b75dc93 of ours"
		oliviaOfTheirs = "user:ac930381-b213-52b0-a4e6-a8619a619f9d of theirs"
		helper         = string(agentActor) + " of ours"
	)
	for name, c := range map[string]struct {
		route, token string
		status       int
		body         string
	}{
		"a user reads":                {"GET /all", ownToken, 200, oliviaOfOurs},
		"the same id elsewhere":       {"GET /all", readerToken, 200, oliviaOfTheirs},
		"an agent reads":              {"GET /all", anyToken, 200, helper},
		"a user acts":                 {"POST /users", ownToken, 200, oliviaOfOurs},
		"an agent acts":               {"POST /agents", anyToken, 200, helper},
		"an agent acts like a user":   {"POST /users", anyToken, 403, "forbidden"},
		"a user acts like an agent":   {"POST /agents", ownToken, 403, "forbidden"},
		"nobody":                      {"GET /all", "", 401, "unauthorized"},
		"a wrong token":               {"GET /all", "wrong", 401, "unauthorized"},
		"a body that is too long":     {"POST /users", ownToken, 413, "too many words"},
		"a long body without a token": {"POST /users", "", 413, "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			body := ""
			if c.status == http.StatusRequestEntityTooLarge {
				body = "123456789"
			}
			status, got := ask(t, documents(t, false), c.route, body, "Authorization", "Bearer "+c.token)
			if status != c.status || !strings.Contains(got, c.body) {
				t.Errorf("%d %s; want %d and %q", status, got, c.status, c.body)
			}
		})
	}
}

// TestGuessesOfTokensAreThrottled checks that a wrong token counts for its address, and that a
// right one is never refused.
func TestGuessesOfTokensAreThrottled(t *testing.T) {
	server := documents(t, false)
	for range 20 {
		ask(t, server, "GET /all", "", "Authorization", "Bearer wrong")
	}
	if status, body := ask(t, server, "GET /all", "", "Authorization", "Bearer wrong"); status != http.StatusTooManyRequests {
		t.Errorf("the next guess: %d %s", status, body)
	}
	if status, body := ask(t, server, "GET /all", "", "Authorization", "Bearer "+ownToken); status != http.StatusOK {
		t.Errorf("the right token: %d %s", status, body)
	}
}

// TestLocalCallerNeedsAToken checks that the local workspace has one user: the holder of its token.
func TestLocalCallerNeedsAToken(t *testing.T) {
	server := documents(t, true)
	if status, body := ask(t, server, "GET /all", "", "Authorization", "Bearer "+ownToken); status != http.StatusOK || !strings.HasPrefix(body, "user:") || !strings.HasSuffix(body, " of ours") {
		t.Errorf("with the token: %d %s", status, body)
	}
	if status, body := ask(t, server, "GET /all", ""); status != http.StatusUnauthorized {
		t.Errorf("a program on this machine: %d %s", status, body)
	}
}
