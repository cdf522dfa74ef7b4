package access_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/internal/testapi"
	"parley/config/secret"
)

// documents starts a server with a route for each right. They answer with the caller's actor
// and workspace.
func documents(t *testing.T, local bool) *httptest.Server {
	t.Helper()
	workspaces := []access.Workspace{
		{ID: "ours", Config: access.Config{Local: local, Tokens: []access.Token{
			{ID: "olivia", Token: secret.New(testapi.OwnToken)},
			{ID: "helper", Token: secret.New(testapi.AgentToken), Actor: testapi.AgentActor},
		}}},
		{ID: "theirs", Config: access.Config{Tokens: []access.Token{{ID: "olivia", Token: secret.New(testapi.ReaderToken)}}}},
	}
	gate := access.Gate{Workspaces: func() []access.Workspace { return workspaces }, Guard: guard.New(func(string) {})}
	mux := http.NewServeMux()
	for name, right := range map[string]access.Right{"GET /all": access.ForAll, "POST /users": access.ForUsers, "POST /agents": access.ForAgents} {
		mux.HandleFunc(name, gate.Handler(access.Route{Right: right, MaxBody: 8, TooLarge: "too many words", Serve: func(c access.Call, w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte(string(c.Actor) + " of " + c.Workspace))
			return err
		}}))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// TestTokenNamesWorkspaceAndActor checks who calls a route that names no workspace, and that
// agents have their own routes.
func TestTokenNamesWorkspaceAndActor(t *testing.T) {
	const (
		oliviaOfOurs   = "user:cab9ee32-ba26-59ea-b824-a6ce8b75dc93 of ours"
		oliviaOfTheirs = "user:ac930381-b213-52b0-a4e6-a8619a619f9d of theirs"
		helper         = string(testapi.AgentActor) + " of ours"
	)
	for name, c := range map[string]struct {
		route, token string
		status       int
		body         string
	}{
		"a user reads":                {"GET /all", testapi.OwnToken, 200, oliviaOfOurs},
		"the same id elsewhere":       {"GET /all", testapi.ReaderToken, 200, oliviaOfTheirs},
		"an agent reads":              {"GET /all", testapi.AgentToken, 200, helper},
		"a user acts":                 {"POST /users", testapi.OwnToken, 200, oliviaOfOurs},
		"an agent acts":               {"POST /agents", testapi.AgentToken, 200, helper},
		"an agent acts like a user":   {"POST /users", testapi.AgentToken, 403, "forbidden"},
		"a user acts like an agent":   {"POST /agents", testapi.OwnToken, 403, "forbidden"},
		"nobody":                      {"GET /all", "", 401, "unauthorized"},
		"a wrong token":               {"GET /all", "wrong", 401, "unauthorized"},
		"a body that is too long":     {"POST /users", testapi.OwnToken, 413, "too many words"},
		"a long body without a token": {"POST /users", "", 413, "too-large"},
	} {
		t.Run(name, func(t *testing.T) {
			body := ""
			if c.status == http.StatusRequestEntityTooLarge {
				body = "123456789"
			}
			status, got := testapi.Ask(t, documents(t, false), c.route, body, "Authorization", "Bearer "+c.token)
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
		testapi.Ask(t, server, "GET /all", "", "Authorization", "Bearer wrong")
	}
	if status, body := testapi.Ask(t, server, "GET /all", "", "Authorization", "Bearer wrong"); status != http.StatusTooManyRequests {
		t.Errorf("the next guess: %d %s", status, body)
	}
	if status, body := testapi.Ask(t, server, "GET /all", "", "Authorization", "Bearer "+testapi.OwnToken); status != http.StatusOK {
		t.Errorf("the right token: %d %s", status, body)
	}
}

// TestLocalCallerNeedsAToken checks that the local workspace has one user: the holder of its token.
func TestLocalCallerNeedsAToken(t *testing.T) {
	server := documents(t, true)
	if status, body := testapi.Ask(t, server, "GET /all", "", "Authorization", "Bearer "+testapi.OwnToken); status != http.StatusOK || !strings.HasPrefix(body, "user:") || !strings.HasSuffix(body, " of ours") {
		t.Errorf("with the token: %d %s", status, body)
	}
	if status, body := testapi.Ask(t, server, "GET /all", ""); status != http.StatusUnauthorized {
		t.Errorf("a program on this machine: %d %s", status, body)
	}
}
