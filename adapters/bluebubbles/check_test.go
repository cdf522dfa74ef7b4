package bluebubbles_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
)

const hookURL = "https://parley.example.org/hooks/bluebubbles/home"

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
		prepare func(n *testapp.Node)
		want    []finding
	}{
		"all is well": {bluebubblestest.Options{PrivateAPI: true}, "auto", adapters.Wants{Hook: hookURL}, func(n *testapp.Node) {
			n.Register(hookURL+"/"+testapp.CanaryWebhook, "new-message", "updated-message", "message-send-error")
		}, nil},
		"a wrong password":      {bluebubblestest.Options{}, "auto", adapters.Wants{}, func(n *testapp.Node) { n.Revoked.Store(true) }, []finding{{"password", true}}},
		"no private API":        {bluebubblestest.Options{}, "auto", adapters.Wants{}, nil, []finding{{"method", false}}},
		"a missing private API": {bluebubblestest.Options{}, "private-api", adapters.Wants{}, nil, []finding{{"method", true}}},
		"an old server, signed out": {bluebubblestest.Options{PrivateAPI: true, Version: "1.8.12", SignedOut: true}, "auto", adapters.Wants{}, nil,
			[]finding{{"url", false}, {"url", false}}},
		"AppleScript, as one wants": {bluebubblestest.Options{}, "apple-script", adapters.Wants{}, nil, nil},
		"no webhook, and everybody": {bluebubblestest.Options{PrivateAPI: true}, "auto", adapters.Wants{Hook: hookURL, Everybody: true}, nil,
			[]finding{{"url", false}, {"webhook_secret", false}}},
	} {
		n := testapp.NewNode(t, c.options, func(config *bluebubbles.Config) { config.Method = c.method })
		if c.prepare != nil {
			c.prepare(n)
		}
		found, err := n.Adapter.Check(t.Context(), c.wants)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []finding
		for _, f := range found {
			got = append(got, finding{f.Key, f.Fault})
			if strings.Contains(f.Words, testapp.Canary) || strings.Contains(f.Words, testapp.CanaryWebhook) {
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
		far := bluebubbles.New("home", testapp.Config("http://192.168.1.10:1234"))
		if found, _ := far.Check(ctx, adapters.Wants{Hook: hook}); len(found) != want {
			t.Errorf("a hook at %q: %v", hook, found)
		}
	}
	n := testapp.NewNode(t, bluebubblestest.Options{})
	_ = n.Close()
	if _, err := n.Adapter.Check(t.Context(), adapters.Wants{}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("an unreachable server: %v", err)
	}
}
