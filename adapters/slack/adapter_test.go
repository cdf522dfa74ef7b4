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
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/send"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
)

func TestRunReportsRefusedCredentials(t *testing.T) {
	for code, hint := range map[string]string{
		"invalid_auth": "bot_token", "not_authed": "bot_token", "token_revoked": "install", "account_inactive": "install",
	} {
		server, adapter := testapp.Start(t, slacktest.Options{})
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
		server := testapp.StartMemory(t, slacktest.Options{})
		adapter := testapp.New(server.URL())
		adapter.Client.Transport.DialContext = server.Listener.Dial
		ctx, cancel := context.WithTimeout(t.Context(), testapp.WaitLimit)
		defer cancel()
		err := adapter.Run(ctx, nil, adapters.Link{Wants: testapp.NoWants, Up: func(event.Self) {
			server.Revoke()
			if _, err := adapter.Send(ctx, testapp.Post("k1")); testapp.Failure(t, err).Failure != adapters.NotSent {
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
		server, adapter := testapp.Start(t, slacktest.Options{})
		server.Script("auth.test", fault)
		err := adapter.Run(t.Context(), nil, adapters.Link{Up: func(event.Self) { t.Errorf("%s: reported as up", name) }})
		var refused *adapters.RefusedError
		if err == nil || errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLimitsComeFromTheConfig(t *testing.T) {
	c := testapp.Config("http://127.0.0.1:1/")
	c.PostRate, c.Timeout, c.FileOver, c.Preview, c.Working = 2.5, 3*time.Second, 7, adapters.PreviewEdit, send.WorkingOff
	want := adapters.Limits{
		PostRate: 2.5, Timeout: 3 * time.Second, FileOver: 7,
		Preview: adapters.PreviewEdit, PreviewEvery: 1200 * time.Millisecond,
	}
	if got := slack.New("acme", c).Limits(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
