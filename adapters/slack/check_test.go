package slack_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/send"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// scopesWithout returns all scopes except the given ones.
func scopesWithout(scopes ...string) []string {
	return slices.DeleteFunc(slacktest.AllScopes(), func(s string) bool { return slices.Contains(scopes, s) })
}

// check runs Check over Socket Mode for an app with the given scopes.
func check(t *testing.T, scopes []string, change func(*slack.Config), wants adapters.Wants) []adapters.Finding {
	t.Helper()
	server, _ := testapp.Start(t, slacktest.Options{Scopes: scopes})
	c := testapp.Config(server.URL())
	c.Mode, c.AppToken = slack.ModeSocket, secret.New(slacktest.AppToken)
	if change != nil {
		change(&c)
	}
	found, err := slack.New("acme", c).Check(t.Context(), wants)
	if err != nil {
		t.Fatal(err)
	}
	if open, most := server.Sockets(); open+most != 0 {
		t.Errorf("%d sockets were opened", most)
	}
	return found
}

func TestCheckFindsNothingWithAllScopes(t *testing.T) {
	if found := check(t, nil, nil, adapters.Wants{Reactions: true}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func TestCheckNamesMissingScopesAndTheirEffect(t *testing.T) {
	reactive := func(c *slack.Config) { c.Working = send.WorkingReaction }
	prompting := func(c *slack.Config) { c.SuggestedPrompts = []send.Prompt{{Title: "a", Message: "b"}} }
	const again = " to the app, and install it again"
	for name, c := range map[string]struct {
		missing []string
		change  func(*slack.Config)
		wants   adapters.Wants
		want    string // of the only finding; empty for none
		fault   bool
	}{
		"posts":    {missing: []string{"chat:write"}, want: "nothing can be posted: add the scope chat:write" + again, fault: true},
		"mentions": {missing: []string{"app_mentions:read"}, want: "mentions arrive only from conversations in which the app gets every message: add the scope app_mentions:read and the bot event app_mention" + again},
		"history": {missing: []string{"channels:history", "mpim:history"},
			want: "messages of some kinds of conversation do not arrive, and their history can't be read: add the scopes channels:history, mpim:history and the bot events message.channels, message.mpim" + again},
		"everything": {missing: []string{"app_mentions:read", "channels:history", "groups:history", "im:history", "mpim:history"}, fault: true,
			want: "no message can arrive: add the scopes app_mentions:read, channels:history, groups:history, im:history, mpim:history and the bot events app_mention, message.channels, message.groups, message.im, message.mpim" + again},
		"channels":         {missing: []string{"groups:read"}, want: "conversations of some kinds can't be listed, so backfill skips them: add the scope groups:read" + again},
		"names":            {missing: []string{"users:read"}, want: "people appear under their ids: add the scope users:read" + again},
		"files":            {missing: []string{"files:read"}, want: "shared files can't be read: add the scope files:read" + again},
		"uploads":          {missing: []string{"files:write"}, want: "files and very long replies can't be uploaded: add the scope files:write" + again},
		"commands":         {missing: []string{"commands"}, want: "slash commands and shortcuts do not arrive: add the scope commands" + again},
		"reactions":        {missing: []string{"reactions:read"}, wants: adapters.Wants{Reactions: true}, want: "reactions do not arrive: add the scope reactions:read and the bot events reaction_added, reaction_removed" + again},
		"unused reactions": {missing: []string{"reactions:read"}},
		"signs":            {missing: []string{"reactions:write"}, change: reactive, want: "no reaction shows that the agent is working: add the scope reactions:write" + again},
		"reacts":           {missing: []string{"reactions:write"}, wants: adapters.Wants{Reacts: true}, want: "agents and programs can't add reactions: add the scope reactions:write" + again},
		"unused signs":     {missing: []string{"reactions:write"}},
		"prompts":          {missing: []string{"assistant:write"}, change: prompting, want: "new threads show no suggested prompts: add the scope assistant:write" + again},
		"unused prompts":   {missing: []string{"assistant:write"}},
		"persons":          {missing: []string{"im:write"}, want: "nobody can post to people who have not written to the bot, and such approvers are not asked about strangers: add the scope im:write" + again},
		"unused scopes":    {missing: []string{"team:read"}},
	} {
		var want []adapters.Finding
		if c.want != "" {
			want = []adapters.Finding{{Key: "bot_token", Words: c.want, Fault: c.fault}}
		}
		if diff := cmp.Diff(want, check(t, scopesWithout(c.missing...), c.change, c.wants)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestFakeKnowsAllScopes checks that the fake has every scope of the table. The fake
// has one more, for a method that the adapter does not call: team.info.
func TestFakeKnowsAllScopes(t *testing.T) {
	needed, _ := slack.Needed()
	for _, scope := range needed {
		if !slices.Contains(slacktest.AllScopes(), scope) {
			t.Errorf("the fake has no scope %s", scope)
		}
	}
	var unused []string
	for _, scope := range slacktest.AllScopes() {
		if !slices.Contains(needed, scope) {
			unused = append(unused, scope)
		}
	}
	if diff := cmp.Diff([]string{"team:read"}, unused); diff != "" {
		t.Error(diff)
	}
}

func TestCheckFindsRefusedCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		method, code string
		mode         string
		want         []string // keys
	}{
		"bot":  {"auth.test", "invalid_auth", slack.ModeHTTP, []string{"bot_token"}},
		"app":  {"apps.connections.open", "missing_scope", slack.ModeSocket, []string{"app_token"}},
		"http": {"apps.connections.open", "missing_scope", slack.ModeHTTP, nil},
		"both": {"", "", slack.ModeSocket, []string{"bot_token", "app_token"}},
	} {
		server, _ := testapp.Start(t, slacktest.Options{})
		if c.method == "" {
			server.Revoke()
		} else {
			server.Script(c.method, slacktest.Fault{Error: c.code})
		}
		conf := testapp.Config(server.URL())
		conf.Mode, conf.AppToken = c.mode, secret.New(slacktest.AppToken)
		found, err := slack.New("acme", conf).Check(t.Context(), adapters.Wants{})
		var keys []string
		for _, f := range found {
			keys = append(keys, f.Key)
			if !f.Fault || !strings.Contains(f.Words, f.Key) || strings.Contains(f.Words, "slacktest") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if diff := cmp.Diff(c.want, keys); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// TestCheckReturnsErrorsOfItsCalls checks that a failed call is an error and not a
// finding.
func TestCheckReturnsErrorsOfItsCalls(t *testing.T) {
	for _, method := range []string{"auth.test", "apps.connections.open"} {
		for name, fault := range map[string]slacktest.Fault{"cut": {Cut: true}, "500": {Status: 500}, "an internal error": {Error: "internal_error"}} {
			server, _ := testapp.Start(t, slacktest.Options{})
			server.Script(method, fault)
			conf := testapp.Config(server.URL())
			conf.Mode, conf.AppToken = slack.ModeSocket, secret.New(slacktest.AppToken)
			if found, err := slack.New("acme", conf).Check(t.Context(), adapters.Wants{}); err == nil || len(found) > 0 {
				t.Errorf("%s %s: %+v, %v", method, name, found, err)
			}
		}
	}
}

// TestMissingScopesAreLoggedOnce checks that one log line names all missing scopes, and
// that a second run logs nothing.
func TestMissingScopesAreLoggedOnce(t *testing.T) {
	_, adapter := testapp.Start(t, slacktest.Options{Scopes: scopesWithout("channels:history", "users:read", "reactions:read")})
	recorded := &testapp.Recorder{}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		link := recorded.Link()
		link.Up = func(event.Self) { cancel() }
		link.Wants = func() adapters.Wants { return adapters.Wants{Reactions: true} }
		if err := adapter.Run(ctx, nil, link); err != nil {
			t.Fatal(err)
		}
	}
	log := recorded.Log()
	if strings.Count(log, "WARN") != 1 || strings.Count(log, "\n") != 1 {
		t.Errorf("want one warning:\n%s", log)
	}
	for _, words := range []string{"channels:history", "message.channels", "users:read", "reaction_added", "install it again"} {
		if !strings.Contains(log, words) {
			t.Errorf("the log lacks %s:\n%s", words, log)
		}
	}
}

// TestNoScopeHeaderNoFinding answers without the scopes header, which a proxy may
// remove.
func TestNoScopeHeaderNoFinding(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ok":true,"team_id":"T0TEAM","user_id":"U0BOT"}`)
	}))
	t.Cleanup(silent.Close)
	adapter := slack.New("acme", testapp.Config(silent.URL+"/"))
	if found, err := adapter.Check(t.Context(), adapters.Wants{Reactions: true}); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	recorded := &testapp.Recorder{}
	ctx, cancel := context.WithCancel(t.Context())
	link := recorded.Link()
	link.Up = func(event.Self) { cancel() }
	if err := adapter.Run(ctx, nil, link); err != nil || recorded.Log() != "" {
		t.Errorf("%v\n%s", err, recorded.Log())
	}
}

func TestGrantedScopesReadsAllHeaderValues(t *testing.T) {
	for header, want := range map[string][]string{"chat:write, users:read|im:read,": {"chat:write", "users:read", "im:read"}, "": {}} {
		found, known := slack.GrantedScopes(strings.Split(header, "|"))
		if diff := cmp.Diff(want, found); !known || diff != "" {
			t.Errorf("%q: %v %s", header, known, diff)
		}
	}
}
