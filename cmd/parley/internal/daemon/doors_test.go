package daemon_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/daemon"
	"parley/config"
)

// builtIn returns what config.Load returns without any file, for a test.
func builtIn(dir, listen string) *config.Config {
	c := config.Default()
	c.Listen, c.Store.Path, c.Attachments.Dir = listen, filepath.Join(dir, "data/parley.db"), filepath.Join(dir, "data/attachments")
	return c
}

// TestRemovedFileOpensNoLocalWorkspace reloads when the configuration's file is gone.
func TestRemovedFileOpensNoLocalWorkspace(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.dir, "parley.yaml")
	load := func() (*config.Config, error) { // as without --config
		if _, err := os.Stat(file); err != nil {
			return builtIn(h.dir, "127.0.0.1:0"), nil
		}
		return config.Load(file)
	}
	restart := func() {
		c, err := load()
		if err == nil {
			err = h.run(daemon.Options{Config: c, Load: load, Now: h.clock.now})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	local := func(want int) {
		t.Helper()
		if got := h.web(http.MethodPost, "local/messages", h.local(), `{"content":"hello","passive":true}`); got.status != want {
			t.Errorf("the local workspace answers %d %s, want %d", got.status, got.body, want)
		}
	}
	restart()
	content := h.remove("parley.yaml")
	local(http.StatusUnauthorized)
	h.postWeb("are you still there?", `"passive":true`)
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}

	restart() // without a file
	local(http.StatusAccepted)
	h.change("parley.yaml", content)
	local(http.StatusUnauthorized)
	h.remove("parley.yaml")
	local(http.StatusUnauthorized)
}

// TestThePlatformLeavesTheLocalConversation: a platform that comes and goes by a reload leaves the built-in
// workspace and its threads, and only the key ends it.
func TestThePlatformLeavesTheLocalConversation(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.remove("workspaces/ours.yaml")
	if got := h.web(http.MethodPost, "local/messages", h.local(), `{"thread_id":"`+thread+`","content":"hello"}`); got.status != http.StatusAccepted {
		t.Fatalf("beside Slack: %d %s\n%s", got.status, got.body, h.log)
	}
	h.answerNext(replyWith("Hello."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	read := func(want int) {
		t.Helper()
		if got := h.web(http.MethodGet, "local/threads/"+thread+"/messages", h.local(), ""); got.status != want || want == http.StatusOK && !strings.Contains(got.body, "Hello.") {
			t.Errorf("its thread: %d %s, want %d", got.status, got.body, want)
		}
	}
	h.change("workspaces/branch.yaml", branch)
	read(http.StatusOK)
	h.remove("workspaces/branch.yaml")
	read(http.StatusOK)
	h.remove("workspaces/acme.yaml") // the last one: files that are gone change nothing
	read(http.StatusOK)
	h.change("workspaces/acme.yaml", branch)
	h.change("parley.yaml", "local: false\n"+h.remove("parley.yaml"))
	read(http.StatusUnauthorized)
}

// TestNoLocalConversationOnAPublicListener: the listener of the start counts, not the one of the files.
func TestNoLocalConversationOnAPublicListener(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	ours := h.remove("workspaces/ours.yaml")
	token := h.local()
	h.change("workspaces/ours.yaml", ours)
	main := h.remove("parley.yaml")
	write(t, filepath.Join(h.dir, "parley.yaml"), strings.Replace(main, "127.0.0.1:0", "0.0.0.0:0", 1))
	h.restart(func() {
		if err := os.Remove(filepath.Join(h.dir, "workspaces/ours.yaml")); err != nil {
			t.Error(err)
		}
	})
	h.url = strings.Replace(h.url, "[::]", "127.0.0.1", 1)
	for _, content := range []string{"", main} {
		if content != "" {
			h.change("parley.yaml", content)
		}
		if got := h.web(http.MethodPost, "local/messages", token, `{"content":"hello"}`); got.status != http.StatusUnauthorized {
			t.Errorf("on a public listener: %d %s", got.status, got.body)
		}
	}
}

// TestLocalWorkspaceNeedsLoopback opens listeners on several addresses.
func TestLocalWorkspaceNeedsLoopback(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false, ":0": false} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // Run stops at once
		d, err := daemon.New(t.Context(), daemon.Options{Config: builtIn(t.TempDir(), listen), Log: slog.New(slog.NewJSONHandler(io.Discard, nil))})
		if (err == nil) != want {
			t.Errorf("%s: %v", listen, err)
		}
		if err == nil {
			if err := d.Run(ctx); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFailuresAreThrottled guesses secrets at each door. After 20 failures the guesses get
// 429, and the right secrets still open the doors.
func TestFailuresAreThrottled(t *testing.T) {
	t.Parallel()
	doors := map[string]struct {
		wrong, right func(h *harness) answer
		want         int
	}{
		"a web token": {
			func(h *harness) answer { return h.post("wrong", `{}`) },
			func(h *harness) answer { return h.post(ownToken, `{"content":"hello","passive":true}`) }, http.StatusAccepted,
		},
		"a signature": {
			func(h *harness) answer {
				return h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", "wrong", time.Now(), []byte(`{}`)))
			},
			func(h *harness) answer { return h.hook(h.newMessage("hello").Event()) }, http.StatusOK,
		},
		"the token of metrics": {
			func(h *harness) answer { return h.forwarded("/metrics", "wrong") },
			func(h *harness) answer { return h.forwarded("/metrics", metricsToken) }, http.StatusOK,
		},
	}
	for name, door := range doors {
		h := open(t, plan{metrics: metricsToken})
		for n := range 25 {
			want := http.StatusUnauthorized
			if n >= 20 {
				want = http.StatusTooManyRequests
			}
			if got := door.wrong(h); got.status != want || (got.header.Get("Retry-After") != "") != (n >= 20) {
				t.Errorf("%s: guess %d gets %d %v", name, n+1, got.status, got.header)
			}
		}
		if got := door.right(h); got.status != door.want {
			t.Errorf("%s: the right secret gets %d %s", name, got.status, got.body)
		}
		for other, door := range doors {
			if got := door.wrong(h); got.status != http.StatusTooManyRequests {
				t.Errorf("%s: a wrong secret at another door, %s, gets %d", name, other, got.status)
			}
		}
	}
}

const metricsToken = "canary-metrics-19c3e7-5b80d2"

// forwarded reads a route through a proxy on this machine.
func (h *harness) forwarded(path, token string) answer {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+path, nil)
	if err == nil {
		request.Header.Set("X-Forwarded-For", "192.0.2.7")
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	return h.send(request, err)
}

// TestOperatorsSeeDetails reads the routes for operators as different callers.
func TestOperatorsSeeDetails(t *testing.T) {
	t.Parallel()
	h := open(t, plan{metrics: metricsToken, fake: slacktest.Options{Token: "another"}})
	for !strings.Contains(h.forwarded("/readyz", metricsToken).body, "invalid_auth") {
		if !h.poll() {
			t.Fatalf("the token shows no details: %s", h.forwarded("/readyz", metricsToken).body)
		}
	}
	for name, c := range map[string]struct {
		got     answer
		status  int
		details bool
	}{
		"figures, from this machine":       {h.get("/metrics"), http.StatusUnauthorized, false},
		"states, from this machine":        {h.get("/readyz"), http.StatusOK, false},
		"figures, forwarded":               {h.forwarded("/metrics", ""), http.StatusUnauthorized, false},
		"figures, with the token":          {h.forwarded("/metrics", metricsToken), http.StatusOK, true},
		"figures, with another token":      {h.forwarded("/metrics", ownToken), http.StatusUnauthorized, false},
		"states, forwarded":                {h.forwarded("/readyz", ""), http.StatusOK, false},
		"states, with the token":           {h.forwarded("/readyz", metricsToken), http.StatusOK, true},
		"states, with another token":       {h.forwarded("/readyz", ownToken), http.StatusUnauthorized, false},
		"the process works, for everybody": {h.forwarded("/healthz", ""), http.StatusOK, false},
	} {
		details := strings.Contains(c.got.body, "invalid_auth") || strings.Contains(c.got.body, "parley_workspace_up{")
		if c.got.status != c.status || details != c.details {
			t.Errorf("%s: %d %s", name, c.got.status, c.got.body)
		}
	}
	if got := h.get("/readyz"); strings.Contains(got.body, "acme") || !strings.Contains(got.body, `"ready":true`) {
		t.Errorf("without a token: %s", got.body)
	}
}

// TestFiguresNeedNoTokenByDefault: without a token for them everybody who reaches the listener reads
// them.
func TestFiguresNeedNoTokenByDefault(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, token := range []string{"", "any"} {
		if got := h.forwarded("/metrics", token); got.status != http.StatusOK {
			t.Errorf("token %q: %d", token, got.status)
		}
	}
}

// TestForeignHost reads the routes for operators under several names of the server.
func TestForeignHost(t *testing.T) {
	t.Parallel()
	for listen, foreign := range map[string]int{"127.0.0.1:0": http.StatusForbidden, "0.0.0.0:0": http.StatusOK} {
		h := open(t, plan{files: map[string]string{"parley.yaml": "listen: " + listen + "\npublic_url: https://parley.example\nagents: [{id: helper, kind: echo}]\n"}})
		_, port, _ := strings.Cut(h.daemon.Addr().String(), "]:")
		if port != "" {
			h.url = "http://127.0.0.1:" + port
		}
		for host, want := range map[string]int{"rebound.example": foreign, "parley.example": http.StatusOK, "localhost:8484": http.StatusOK} {
			for _, path := range []string{"/metrics", "/readyz"} {
				request, err := http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+path, nil)
				if err == nil {
					request.Host = host
				}
				if got := h.send(request, err); got.status != want {
					t.Errorf("%s of %s on %s: %d %s", path, host, listen, got.status, got.body)
				}
			}
		}
	}
}

// TestReadinessAsksStoreOnceASecond reads the readiness many times.
func TestReadinessAsksStoreOnceASecond(t *testing.T) {
	t.Parallel()
	h, engine := openCounting(t)
	begun := time.Now()
	for range 50 {
		if got := h.get("/readyz"); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if n, most := engine.probes.Load(), int64(time.Since(begun)/time.Second)+1; n < 1 || n > most {
		t.Errorf("%d questions to the store, want at most %d", n, most)
	}
}

// TestUnsafeConfigurationIsLogged starts with an address that is not safe, and reloads it.
func TestUnsafeConfigurationIsLogged(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	if n := h.warnings("warning"); n != 0 {
		t.Errorf("%d warnings: %s", n, h.log)
	}
	file := filepath.Join(h.dir, "parley.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.change("parley.yaml", strings.Replace(string(content), "base_url: "+h.model.URL, "base_url: http://203.0.113.7", 1))
	if n := h.warnings("warning"); n != 1 {
		t.Errorf("after a reload: %d warnings: %s", n, h.log)
	}
	h.restart()
	if n := h.warnings("warning"); n != 2 {
		t.Errorf("after a start: %d warnings: %s", n, h.log)
	}
}
