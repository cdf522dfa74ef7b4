package daemon_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/doctor"
	"parley/config"
	"parley/config/secret"
	"parley/ingest/event"
)

// scopesWithoutReactions returns the scopes of an app that gets no reactions.
func scopesWithoutReactions() []string {
	return slices.DeleteFunc(slacktest.AllScopes(), func(s string) bool { return s == "reactions:read" })
}

// TestMissingScopeIsLogged if the configuration of the workspace or of a channel needs it.
func TestMissingScopeIsLogged(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"": 0, "policy: {reactions: true}": 1, "channels: [{id: C0GARDEN, policy: {reactions: true}}]": 1} {
		h := open(t, plan{fake: slacktest.Options{Scopes: scopesWithoutReactions()}, acme: policy})
		h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
		if log := h.log.String(); strings.Count(log, "reactions:read") != want {
			t.Errorf("%s:\n%s", policy, log)
		}
	}
}

// TestMissingScopeOfTools is logged if an agent or a program may react in the workspace.
func TestMissingScopeOfTools(t *testing.T) {
	t.Parallel()
	scopes := slices.DeleteFunc(slacktest.AllScopes(), func(s string) bool { return s == "reactions:write" })
	program := func(posts string) map[string]string {
		return map[string]string{"workspaces/programs.yaml": "id: programs\nplatform: web\nagent: echo\nweb: {tokens: [{id: ci, token: ci-7f3a9c51d2e84b60a1c35e97, name: CI, posts: [" + posts + "]}]}\n"}
	}
	for name, c := range map[string]struct {
		plan
		want bool
	}{
		"nobody":               {plan{helper: "tools: {read: workspace}"}, false},
		"an agent elsewhere":   {plan{helper: "tools: {post: [ours]}"}, false},
		"a program elsewhere":  {plan{files: program("ours")}, false},
		"an agent":             {plan{helper: "tools: {post: [acme]}"}, true},
		"an agent in one room": {plan{helper: `tools: {post: ["acme:C0GARDEN"]}`}, true},
		"a program":            {plan{files: program("acme")}, true},
	} {
		c.fake = slacktest.Options{Scopes: scopes}
		h := open(t, c.plan)
		h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
		if log := h.log.String(); strings.Contains(log, "reactions:write") != c.want {
			t.Errorf("%s:\n%s", name, log)
		}
	}
}

// TestCheckWithoutAnswer: a missing answer is not a fault.
func TestCheckWithoutAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("late")
	server, err := slacktest.Start(slacktest.Options{OnCall: func(slacktest.Call) { cancel(late) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	server.Script("auth.test", slacktest.Fault{Hold: make(chan struct{})})
	account := slack.DefaultConfig()
	account.BotToken, account.AppToken, account.APIURL = secret.New(slacktest.Token), secret.New(slacktest.AppToken), server.URL()
	w := config.NewWorkspace("acme", event.Slack, "echo")
	w.Config = &account
	store := config.Store{Engine: config.SQLite, Path: filepath.Join(t.TempDir(), "parley.db")}
	found := doctor.Ask(ctx, &config.Config{Listen: "127.0.0.1:0", Store: store, Workspaces: []config.Workspace{w}})
	if len(found) != 1 || !found[0].Unasked || found[0].Fault || found[0].Workspace != "acme" || found[0].Key != "slack" {
		t.Errorf("%+v", found)
	}
}

// TestCheckKnowsTheRegisteredHook proves that a daemon that listens on every address, and check,
// have the same address of the hook.
func TestCheckKnowsTheRegisteredHook(t *testing.T) {
	t.Parallel()
	mac, err := bluebubblestest.Start(bluebubblestest.Options{Password: macPassword, PrivateAPI: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mac.Close() })
	file := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, file, "listen: 0.0.0.0:0\nworkspaces: home.yaml\n")
	write(t, filepath.Join(filepath.Dir(file), "home.yaml"), "id: home\nplatform: bluebubbles\nagent: echo\npolicy: {allow_users: []}\nbluebubbles: {url: \""+mac.URL()+
		"\", password: \""+macPassword+"\", webhook_secret: "+hookCanary+"}\n")
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	mac.Register("http://localhost:0/hooks/bluebubbles/home/"+hookCanary, "new-message", "updated-message", "message-send-error")
	if found := doctor.Ask(t.Context(), c); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestCheckNotesAnAddressInUse: the program that uses it may be the daemon itself.
func TestCheckNotesAnAddressInUse(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	store := config.Store{Engine: config.SQLite, Path: filepath.Join(t.TempDir(), "parley.db")}
	found := doctor.Ask(t.Context(), &config.Config{Listen: other.Addr().String(), Store: store})
	if len(found) != 1 || !found[0].Note || found[0].Fault || found[0].Key != "listen" {
		t.Errorf("%+v", found)
	}
}
