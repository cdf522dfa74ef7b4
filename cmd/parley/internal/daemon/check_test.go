package daemon_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/daemon"
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
	found := daemon.Check(ctx, &config.Config{Listen: "127.0.0.1:0", Store: store, Workspaces: []config.Workspace{w}})
	if len(found) != 1 || !found[0].Unasked || found[0].Fault || found[0].Workspace != "acme" || found[0].Key != "slack" {
		t.Errorf("%+v", found)
	}
}
