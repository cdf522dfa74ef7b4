package live_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
)

const hookURL = "https://parley.example.org/hooks/bluebubbles/home"

// TestRegistration checks that the poller makes the registration right and keeps it so: it
// removes our webhooks with an old secret or other events, and leaves all others.
func TestRegistration(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent, testapp.Quickly)
	n.Deregister()
	n.Wants.Hook = hookURL
	right := hookURL + "/" + testapp.CanaryWebhook
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
	n.Start()
	check()
	n.Deregister()
	n.Register("https://other.example.org/hook", "*")
	n.Register("https://parley.example.org/hooks/bluebubbles/home2/x", "*")
	n.Stop()
	n.Start()
	check()
	if text := n.Log.String(); strings.Contains(text, testapp.CanaryWebhook) {
		t.Errorf("the log contains the secret:\n%s", text)
	}
}

// TestAMessageDuringTheRegistration comes at the first start, before its webhook is registered.
func TestAMessageDuringTheRegistration(t *testing.T) {
	var n *testapp.Node
	options := testapp.Silent
	options.OnCall = func(call bluebubblestest.Call) {
		if call.Route == "POST webhook" {
			n.Hears("hello")
		}
	}
	n = testapp.NewNode(t, options)
	n.Deregister()
	n.Wants.Hook = hookURL
	n.Start()
	if diff := cmp.Diff([]string{"hello by backfill"}, n.Inbox.Await(t, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestEverybodyIsWarnedAbout checks the warning at the start, once.
func TestEverybodyIsWarnedAbout(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent)
	n.Wants.Everybody = true
	n.Start()
	n.Stop()
	n.Start()
	if got := strings.Count(n.Log.String(), "allow_users"); got != 1 {
		t.Errorf("%d warnings:\n%s", got, n.Log)
	}
}
