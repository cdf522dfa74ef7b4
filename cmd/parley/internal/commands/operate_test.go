package commands

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCommandsOfAnotherMachine asks a daemon by its address and the token of an operator. A fault names the address
// or the token.
func TestCommandsOfAnotherMachine(t *testing.T) {
	const token = "canary-operator-6a2e94d7-1b58"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"code":"no-operator-token","message":"the request needs a token"}}`)
			return
		}
		fmt.Fprint(w, `{"items":[{"id":"the-run","thread":"web:a:b"}],"next":null}`)
	}))
	dir := t.TempDir()
	for name, c := range map[string]struct {
		url, token string
		status     int
		words      string
	}{
		"right":       {server.URL, token, 0, "the-run"},
		"wrong token": {server.URL, token + "x", 1, "PARLEY_TOKEN"},
		"no token":    {server.URL, "", 2, "PARLEY_TOKEN"},
		"no address":  {"parley.example", token, 2, "--url"},
		"nobody":      {"http://127.0.0.1:1", token, 4, "no daemon answers at http://127.0.0.1:1"},
	} {
		t.Setenv("PARLEY_TOKEN", c.token)
		got := parley(t, dir, "runs", "--since", "7d", "--url", c.url)
		if got.status != c.status || !strings.Contains(got.stdout+got.stderr, c.words) || strings.Contains(got.stderr, token) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	server.Close()
	t.Setenv("PARLEY_TOKEN", token)
	if got := parley(t, dir, "runs", "--since", "yesterday", "--url", server.URL); got.status != 2 || !strings.Contains(got.stderr, "7d") {
		t.Errorf("%+v", got)
	}
}
