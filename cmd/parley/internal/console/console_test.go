package console_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/browsertest"
	"parley/adapters/guard"
	"parley/cmd/parley/internal/console"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/config/secret"
	"parley/ingest/journal"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// site is a console on a new store, at a loopback address.
type site struct {
	*console.Console
	journal *journal.Journal
	config  *config.Config
	service *operator.Service
	address string
	inside  string // the address of the session that enter has opened

	mu      sync.Mutex
	reasons []string
}

const viewerToken, operatorToken = "viewer-token-4c1d9a", "operator-token-72e0bb"

func newSite(t testing.TB) *site {
	t.Helper()
	c := config.Default()
	c.Operators = []config.Operator{
		{ID: "vera", Token: secret.New(viewerToken), Role: config.RoleViewer}, {ID: "olga", Token: secret.New(operatorToken), Role: config.RoleOperator},
	}
	return newSiteAt(t, c, time.Now)
}

// newSiteAt is newSite with a configuration and a clock.
func newSiteAt(t testing.TB, c *config.Config, now func() time.Time) *site {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newSiteOn(t, engine, c, now)
}

// newSiteOn is newSiteAt on a store.
func newSiteOn(t testing.TB, engine storage.Engine, c *config.Config, now func() time.Time) *site {
	t.Helper()
	s := &site{config: c, journal: journal.New(engine, journal.Options{Node: "a", Now: now})}
	t.Cleanup(func() { _ = s.journal.Close() })
	door := guard.New(func(reason string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reasons = append(s.reasons, reason)
	})
	s.service = &operator.Service{Journal: s.journal, Config: func() *config.Config { return s.config }, Now: now, Version: "0.0.0", Node: "a", Guard: door}
	s.Console = console.New(console.Options{Service: s.service, PublicURL: func() string { return "https://ops.example" }, Guard: door, Now: time.Now})
	server := httptest.NewUnstartedServer(s.Handler(true))
	door.Protect(server.Config)
	server.Start()
	s.address = server.URL
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// browser returns a client with cookies that is logged in with a token.
func (s *site) browser(t testing.TB, token string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	response, err := client.Do(s.post("/login", url.Values{"token": {token}}))
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.Contains(string(page), "Overview") {
		t.Fatalf("login: %d %s", response.StatusCode, page)
	}
	return &browser{client, strings.TrimSuffix(response.Request.URL.Path, "/")}
}

// browser is a client that is logged in. Its requests go below the path of its session.
type browser struct {
	*http.Client
	base string
}

func (b *browser) Do(r *http.Request) (*http.Response, error) {
	if path := r.URL.Path; path != "/login" && !strings.HasPrefix(path, "/static/") {
		r.URL.Path = b.base + path
	}
	return b.Client.Do(r)
}

// client sends requests.
type client interface {
	Do(r *http.Request) (*http.Response, error)
}

func (s *site) get(path string) *http.Request {
	r, _ := http.NewRequest(http.MethodGet, s.address+path, nil)
	return r
}

func (s *site) post(path string, values url.Values) *http.Request {
	r, _ := http.NewRequest(http.MethodPost, s.address+path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.address)
	return r
}

func answer(t testing.TB, client client, r *http.Request) (int, string) {
	t.Helper()
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var page strings.Builder
	if err := response.Write(&page); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, page.String()
}

// stranger follows no redirects and has no cookies.
var stranger = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func TestDoorsAreClosed(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/", "/audit", "/workspaces/x", "/events?page=/"} {
		if status, page := answer(t, stranger, s.get(path)); status != http.StatusSeeOther || strings.Contains(page, "Overview") {
			t.Errorf("%s without a session: %d", path, status)
		}
	}
	for name, values := range map[string]url.Values{"no token": {}, "a wrong token": {"token": {"guess"}}, "a wrong ticket": {"ticket": {"guess"}}} {
		if status, _ := answer(t, stranger, s.post("/login", values)); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, status)
		}
	}
	foreign := s.get("/login")
	foreign.Host = "evil.example"
	if status, _ := answer(t, stranger, foreign); status != http.StatusForbidden {
		t.Errorf("a foreign Host: %d", status)
	}
	cross := s.post("/logout", nil)
	cross.Header.Set("Origin", "https://evil.example")
	if status, _ := answer(t, s.browser(t, operatorToken), cross); status != http.StatusForbidden {
		t.Errorf("another site's form: %d", status)
	}
	if s.mu.Lock(); len(s.reasons) != 4 { // three logins and a Host
		t.Errorf("counted refusals: %q", s.reasons)
	}
	s.mu.Unlock()
}

func TestGuessesAreBounded(t *testing.T) {
	s := newSite(t)
	for range 30 {
		answer(t, stranger, s.post("/login", url.Values{"token": {"guess"}}))
	}
	if status, _ := answer(t, stranger, s.post("/login", url.Values{"token": {"guess"}})); status != http.StatusTooManyRequests {
		t.Errorf("the next guess: %d", status)
	}
	s.browser(t, operatorToken) // a right token is never refused
}

func TestCookies(t *testing.T) {
	s := newSite(t)
	login := func(host string) *http.Cookie {
		r := s.post("/login", url.Values{"token": {viewerToken}})
		if host != "" {
			r.Host = host
			r.Header.Set("Origin", "https://"+host)
		}
		response, err := stranger.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if len(response.Cookies()) != 1 {
			t.Fatalf("%s: %d, %d cookies", host, response.StatusCode, len(response.Cookies()))
		}
		return response.Cookies()[0]
	}
	for host, name := range map[string]string{"": "parley", "ops.example": "__Host-parley"} {
		c := login(host)
		if c.Name != name || c.Secure != (host != "") || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || (c.Path == "/") != (host != "") || c.Domain != "" {
			t.Errorf("%q: %v", host, c)
		}
	}
}

// TestTheCookieAloneIsNothing takes the cookie of a session, as a listener on another port of the host gets
// it, and tries to read and to act with it.
func TestTheCookieAloneIsNothing(t *testing.T) {
	s := filled(t, time.Now())
	victim := s.browser(t, operatorToken+"-long-enough")
	at, err := url.Parse(s.address + victim.base + "/")
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := url.Parse(s.address); len(victim.Jar.Cookies(other)) > 0 {
		t.Error("a page that is not of the session gets the cookie")
	}
	stolen := victim.Jar.Cookies(at)
	if len(stolen) != 1 {
		t.Fatalf("%d cookies", len(stolen))
	}
	thief := s.browser(t, viewerToken+"-long-enough") // the thief knows a place, but not the victim's
	for _, path := range []string{"/", "/threads", "/at/guess/threads", thief.base + "/threads", "/events?page=/"} {
		r := s.get(path)
		r.AddCookie(stolen[0])
		if status, page := answer(t, stranger, r); status != http.StatusSeeOther || strings.Contains(page, victim.base) {
			t.Errorf("%s with the cookie alone: %d %s", path, status, page)
		}
	}
	for _, base := range []string{"", "/at/guess", thief.base} {
		r := s.post(base+"/runs/"+failedRun+"/retry", nil)
		r.AddCookie(stolen[0])
		answer(t, stranger, r)
	}
	if page, err := s.service.Audit(t.Context(), operator.Page{Limit: 10}); err != nil || slices.ContainsFunc(page.Items, func(a operator.Action) bool {
		return a.Who == "olga" && a.What == "run.retry" && time.Since(a.At) < time.Minute
	}) {
		t.Errorf("the cookie alone acts: %v %v", page.Items, err)
	}
	if status, _ := answer(t, stranger, s.get(victim.base+"/threads")); status != http.StatusSeeOther {
		t.Errorf("the place alone: %d", status)
	}
	if status, page := answer(t, victim, s.get("/threads")); status != http.StatusOK || !strings.Contains(page, "data-test") && !strings.Contains(page, "<h1>Threads") {
		t.Errorf("the operator: %d", status)
	}
}

// TestASessionEndsWithItsOperator changes each part of an operator: the role, the token, and all of it.
func TestASessionEndsWithItsOperator(t *testing.T) {
	for name, change := range map[string]func(c *config.Config){
		"role":     func(c *config.Config) { c.Operators[0].Role = config.RoleReader },
		"token":    func(c *config.Config) { c.Operators[0].Token = secret.New("another-token-0c7e41") },
		"operator": func(c *config.Config) { c.Operators = c.Operators[1:] },
	} {
		s := newSite(t)
		client, socket := s.browser(t, viewerToken), s.Ticket(operator.OnSocket("mara"))
		change(s.config)
		if _, page := answer(t, client, s.get("/")); strings.Contains(page, "Overview") {
			t.Errorf("a session goes on with another %s", name)
		}
		if status, _ := answer(t, stranger, s.post("/login", url.Values{"ticket": {socket}})); status != http.StatusSeeOther {
			t.Errorf("%s: a ticket of the socket gets %d", name, status)
		}
	}
}

// TestAPageFollowsForItsOperator checks that an approver keeps the buttons of a question when its page follows the store.
func TestAPageFollowsForItsOperator(t *testing.T) {
	s := filled(t, time.Now())
	response, err := s.browser(t, operatorToken+"-long-enough").Do(s.get("/events?page=/approvals"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	for events.Scan() && !strings.HasPrefix(events.Text(), "data: ") {
	}
	if told := events.Text(); !strings.Contains(told, "./approvals/"+askingRun+"/answer") {
		t.Errorf("the question has no buttons: %s", told)
	}
}

func TestPagesHaveTheirPolicy(t *testing.T) {
	s := newSite(t)
	client := s.browser(t, viewerToken)
	for _, path := range []string{"/", "/login", "/audit", "/no-such-page", "/static/console.js", "/workspaces/none"} {
		response, err := client.Do(s.get(path))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		for header, want := range map[string]string{
			"Content-Security-Policy": "require-trusted-types-for 'script'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if got := response.Header.Get(header); !strings.Contains(got, want) {
				t.Errorf("%s: %s is %q", path, header, got)
			}
		}
		if got := response.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s: other sites may read it", path)
		}
	}
}
