package slack_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

const (
	room   = "C0ROOM"
	signed = "the signing secret"
)

// noon is the time of the tests' fake Slack.
var noon = time.Unix(1700000000, 0)

// startFake starts a fake Slack and an adapter for it.
func startFake(t *testing.T, options slacktest.Options) (*slacktest.Server, *slack.Adapter) {
	t.Helper()
	if options.Now == nil {
		options.Now = func() time.Time { return noon }
	}
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, slack.New("acme", config(server.URL()))
}

func config(apiURL string) slack.Config {
	c := slack.DefaultConfig()
	c.Mode, c.APIURL = slack.ModeHTTP, apiURL
	c.BotToken, c.SigningSecret = secret.New(slacktest.Token), secret.New(signed)
	return c
}

func TestRunReportsRefusedCredentials(t *testing.T) {
	for code, hint := range map[string]string{
		"invalid_auth": "bot_token", "not_authed": "bot_token", "token_revoked": "install", "account_inactive": "install",
	} {
		server, adapter := startFake(t, slacktest.Options{})
		server.Script("auth.test", slacktest.Fault{Error: code})
		err := adapter.Run(t.Context(), nil, adapters.Link{Up: func(event.Self) { t.Error("reported as up") }})
		var refused *adapters.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestRunReportsRevokedToken revokes the token of a hook's workspace. The adapter learns it
// from the next call.
func TestRunReportsRevokedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := startMemoryFake(t, slacktest.Options{})
		adapter := newAdapter(server.URL())
		adapter.SetDial(server.listener.dial)
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		err := adapter.Run(ctx, nil, adapters.Link{Wants: noWants, Up: func(event.Self) {
			server.Revoke()
			if _, err := adapter.Send(ctx, testPost("k1")); failure(t, err).Failure != adapters.NotSent {
				t.Errorf("%v", err)
			}
		}})
		var refused *adapters.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Hint, "install") {
			t.Errorf("%v", err)
		}
	})
}

func TestRunReportsPassingErrors(t *testing.T) {
	for name, fault := range map[string]slacktest.Fault{
		"rate limit": slacktest.RateLimited(time.Second), "server error": {Status: 500}, "cut": {Cut: true},
		"an internal error": {Error: "internal_error"}, "an answer without a user": {Body: `{"ok":true}`}, "no JSON": {Body: `<html>`},
	} {
		server, adapter := startFake(t, slacktest.Options{})
		server.Script("auth.test", fault)
		err := adapter.Run(t.Context(), nil, adapters.Link{Up: func(event.Self) { t.Errorf("%s: reported as up", name) }})
		var refused *adapters.RefusedError
		if err == nil || errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func newAdapter(apiURL string) *slack.Adapter { return slack.New("acme", config(apiURL)) }

func TestLimitsComeFromTheConfig(t *testing.T) {
	c := config("http://127.0.0.1:1/")
	c.PostRate, c.Timeout, c.FileOver, c.Preview, c.Working = 2.5, 3*time.Second, 7, adapters.PreviewEdit, slack.WorkingOff
	want := adapters.Limits{
		PostRate: 2.5, Timeout: 3 * time.Second, FileOver: 7,
		Preview: adapters.PreviewEdit, PreviewEvery: 1200 * time.Millisecond,
	}
	if got := slack.New("acme", c).Limits(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func withoutSecret() *slack.Adapter {
	c := config("http://127.0.0.1:1/")
	c.Mode, c.SigningSecret = slack.ModeSocket, secret.New("")
	adapter := slack.New("acme", c)
	adapter.SetClock(func() time.Time { return noon })
	return adapter
}
