package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"parley/adapters/web/exchange"
	"parley/config/secret"
)

// TestStreamEndsWithItsToken checks that a stream sends nothing after a reload has removed its
// token, or changed the secret or the rights.
func TestStreamEndsWithItsToken(t *testing.T) {
	token := func(secretText string, read ...string) Token {
		return Token{ID: "olivia", Token: secret.New(secretText), Read: read}
	}
	for name, c := range map[string]struct {
		next []Workspace
		want string
	}{
		"same":      {[]Workspace{{ID: "ours", Config: Config{Tokens: []Token{token("one", "acme")}}}}, ":\n\nid: 1\ndata: 1\n\n"},
		"removed":   {[]Workspace{{ID: "ours", Config: Config{Tokens: []Token{{ID: "mara", Token: secret.New("two")}}}}}, ":\n\n"},
		"rotated":   {[]Workspace{{ID: "ours", Config: Config{Tokens: []Token{token("two", "acme")}}}}, ":\n\n"},
		"fewer":     {[]Workspace{{ID: "ours", Config: Config{Tokens: []Token{token("one")}}}}, ":\n\n"},
		"moved":     {[]Workspace{{ID: "theirs", Config: Config{Tokens: []Token{token("one", "acme")}}}}, ":\n\n"},
		"workspace": {nil, ":\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := []Workspace{{ID: "ours", Config: Config{Tokens: []Token{token("one", "acme")}}}}
				g := Gate{Workspaces: func() []Workspace { return now }}
				changed, waiting := make(chan struct{}), []exchange.Event(nil)
				from := exchange.Source{Changed: changed, Next: func(context.Context) ([]exchange.Event, bool, error) {
					events := waiting
					waiting = nil
					return events, false, nil
				}}
				ctx, stop := context.WithCancel(t.Context())
				out, ended := httptest.NewRecorder(), make(chan struct{})
				go func() {
					defer close(ended)
					_ = exchange.NewStreams().Follow(out, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), g.call(now[0], token("one", "acme")), from)
				}()
				synctest.Wait()
				now = c.next
				waiting = []exchange.Event{{ID: "1", Data: 1}}
				changed <- struct{}{}
				synctest.Wait()
				if got := out.Body.String(); got != c.want {
					t.Errorf("the stream sent %q, want %q", got, c.want)
				}
				if name == "same" {
					stop()
				}
				<-ended
				stop()
			})
		})
	}
}
