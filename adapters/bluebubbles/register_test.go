package bluebubbles_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
)

const hookURL = "https://parley.example.org/hooks/bluebubbles/home"

// TestRegistration checks that the poller makes the registration right and keeps it so: it
// removes our webhooks with an old secret or other events, and leaves all others.
func TestRegistration(t *testing.T) {
	n := newNode(t, silent, quickly)
	n.Deregister()
	n.wants.Hook = hookURL
	right := hookURL + "/" + canaryWebhook
	n.Register("https://other.example.org/hook", "*")
	n.Register("https://parley.example.org/hooks/bluebubbles/home2/x", "*")
	n.Register(hookURL+"/an-old-secret", "new-message")
	n.Register(right, "new-message")
	check := func() {
		t.Helper()
		got := map[string][]string{}
		for _, w := range n.Registered() {
			got[w.URL] = w.Events
		}
		want := map[string][]string{
			"https://other.example.org/hook": {"*"}, "https://parley.example.org/hooks/bluebubbles/home2/x": {"*"},
			right: {"new-message", "updated-message", "message-send-error"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	n.start()
	check()
	n.Deregister()
	n.Register("https://other.example.org/hook", "*")
	n.Register("https://parley.example.org/hooks/bluebubbles/home2/x", "*")
	n.stop()
	n.start()
	check()
	if text := n.log.String(); strings.Contains(text, canaryWebhook) {
		t.Errorf("the log contains the secret:\n%s", text)
	}
}

// TestAMessageDuringTheRegistration comes at the first start, before its webhook is registered.
func TestAMessageDuringTheRegistration(t *testing.T) {
	var n *node
	options := silent
	options.OnCall = func(call bluebubblestest.Call) {
		if call.Route == "POST webhook" {
			n.hears("hello")
		}
	}
	n = newNode(t, options)
	n.Deregister()
	n.wants.Hook = hookURL
	n.start()
	if diff := cmp.Diff([]string{"hello by backfill"}, n.inbox.await(t, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestEverybodyIsWarnedAbout checks the warning at the start, once.
func TestEverybodyIsWarnedAbout(t *testing.T) {
	n := newNode(t, silent)
	n.wants.Everybody = true
	n.start()
	n.stop()
	n.start()
	if got := strings.Count(n.log.String(), "allow_users"); got != 1 {
		t.Errorf("%d warnings:\n%s", got, n.log)
	}
}

// TestCheck checks the findings of parley check by their keys.
func TestCheck(t *testing.T) {
	type finding struct {
		Key   string
		Fault bool
	}
	for name, c := range map[string]struct {
		options bluebubblestest.Options
		method  string
		wants   adapters.Wants
		prepare func(n *node)
		want    []finding
	}{
		"all is well": {bluebubblestest.Options{PrivateAPI: true}, "auto", adapters.Wants{Hook: hookURL}, func(n *node) {
			n.Register(hookURL+"/"+canaryWebhook, "new-message", "updated-message", "message-send-error")
		}, nil},
		"a wrong password":      {bluebubblestest.Options{}, "auto", adapters.Wants{}, func(n *node) { n.revoked.Store(true) }, []finding{{"password", true}}},
		"no private API":        {bluebubblestest.Options{}, "auto", adapters.Wants{}, nil, []finding{{"method", false}}},
		"a missing private API": {bluebubblestest.Options{}, "private-api", adapters.Wants{}, nil, []finding{{"method", true}}},
		"an old server, signed out": {bluebubblestest.Options{PrivateAPI: true, Version: "1.8.12", SignedOut: true}, "auto", adapters.Wants{}, nil,
			[]finding{{"url", false}, {"url", false}}},
		"AppleScript, as one wants": {bluebubblestest.Options{}, "apple-script", adapters.Wants{}, nil, nil},
		"no webhook, and everybody": {bluebubblestest.Options{PrivateAPI: true}, "auto", adapters.Wants{Hook: hookURL, Everybody: true}, nil,
			[]finding{{"url", false}, {"webhook_secret", false}}},
	} {
		n := newNode(t, c.options, func(config *bluebubbles.Config) { config.Method = c.method })
		if c.prepare != nil {
			c.prepare(n)
		}
		found, err := n.adapter.Check(t.Context(), c.wants)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []finding
		for _, f := range found {
			got = append(got, finding{f.Key, f.Fault})
			if strings.Contains(f.Words, canary) || strings.Contains(f.Words, canaryWebhook) {
				t.Errorf("%s: a secret in %q", name, f.Words)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the server of another machine is not asked
	for hook, want := range map[string]int{"http://127.0.0.1:8484/hooks/bluebubbles/home": 1, "http://localhost:8484/hooks/bluebubbles/home": 1, "http://0.0.0.0:8484/h": 1, hookURL: 0, "": 0} {
		far := bluebubbles.New("home", settings("http://192.168.1.10:1234"))
		if found, _ := far.Check(ctx, adapters.Wants{Hook: hook}); len(found) != want {
			t.Errorf("a hook at %q: %v", hook, found)
		}
	}
	n := newNode(t, bluebubblestest.Options{})
	_ = n.Close()
	if _, err := n.adapter.Check(t.Context(), adapters.Wants{}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("an unreachable server: %v", err)
	}
}

// TestRedirect checks that the error of a redirect names the host and no secret of the address.
func TestRedirect(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("https://mac.example.org/x?password="+canaryQuery, http.StatusMovedPermanently))
	defer server.Close()
	_, err := bluebubbles.New("home", settings(server.URL)).LookupUser(t.Context(), nora)
	checkHidden(t, err)
	if !strings.Contains(err.Error(), "https://mac.example.org;") {
		t.Errorf("the error is %v", err)
	}
}
