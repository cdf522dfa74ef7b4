package live_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

func TestOpeningIsRetried(t *testing.T) {
	const open = "apps.connections.open"
	for name, script := range map[string]func(*testapp.Memory){
		"a server error":    func(s *testapp.Memory) { s.Script(open, slacktest.Fault{Status: 502}, slacktest.Fault{Status: 500}) },
		"an internal error": func(s *testapp.Memory) { s.Script(open, slacktest.Fault{Error: "internal_error"}) },
		"a cut call":        func(s *testapp.Memory) { s.Script(open, slacktest.Fault{Cut: true}) },
		"no address": func(s *testapp.Memory) {
			s.Script(open, slacktest.Fault{Body: `{"ok":true,"url":"https://example.com/"}`})
		},
		"too many":        func(s *testapp.Memory) { s.Script(open, slacktest.Fault{Error: "too_many_websockets"}) },
		"no websocket":    func(s *testapp.Memory) { s.Script(slacktest.LinkStep, slacktest.Fault{Status: 408}) },
		"a cut handshake": func(s *testapp.Memory) { s.Script(slacktest.LinkStep, slacktest.Fault{Cut: true}) },
		"a cut socket":    func(s *testapp.Memory) { s.Script(slacktest.HelloStep, slacktest.Fault{Cut: true}) },
		"no hello":        func(s *testapp.Memory) { s.Script(slacktest.HelloStep, slacktest.Fault{Hold: make(chan struct{})}) },
		"a disconnect": func(s *testapp.Memory) {
			s.Script(slacktest.HelloStep, slacktest.Fault{Body: `{"type":"disconnect","reason":"warning"}`})
		},
		"a disconnect, too many": func(s *testapp.Memory) {
			s.Script(slacktest.HelloStep, slacktest.Fault{Body: `{"type":"disconnect","reason":"too_many_websockets"}`})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := testapp.StartMemory(t, slacktest.Options{})
				script(server)
				times := testapp.FastTimes
				times.Hello = 50 * time.Millisecond
				p := runAdapterOn(t, server, 1, times, &memoryInbox{})
				p.up()
				p.resultOf(p.say("hi"))
				for _, words := range []string{"ticket=", "xapp-"} {
					if strings.Contains(p.Log(), words) {
						t.Errorf("the log contains %s: %s", words, p.Log())
					}
				}
				if !strings.Contains(p.Log(), "level=WARN") {
					t.Errorf("no warning: %s", p.Log())
				}
			})
		})
	}
}

func TestOpeningWaitsAfterARateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []time.Time
		options := slacktest.Options{OnCall: func(c slacktest.Call) {
			if c.Method == "apps.connections.open" {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, time.Now())
			}
		}}
		server := testapp.StartMemory(t, options)
		server.Script("apps.connections.open", slacktest.RateLimited(time.Second))
		p := runAdapterOn(t, server, 1, testapp.FastTimes, &memoryInbox{})
		p.up()
		if len(asked) != 2 || asked[1].Sub(asked[0]) < time.Second {
			t.Errorf("called at %v", asked)
		}
	})
}

func TestSocketModeReportsRefusedCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, hint := range map[string]string{
			"invalid_auth": "app_token", "not_authed": "app_token", "not_allowed_token_type": "app_token", "token_revoked": "generate",
			"account_inactive": "generate", "missing_scope": "connections:write",
		} {
			server := testapp.StartMemory(t, slacktest.Options{})
			server.Script("apps.connections.open", slacktest.Fault{Error: code})
			p := runAdapterOn(t, server, 2, testapp.FastTimes, &memoryInbox{})
			var refused *adapters.RefusedError
			if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) || !strings.Contains(err.Error(), code) {
				t.Errorf("%s: %v", code, err)
			}
			p.sockets(0, 0) // also of the keeper that was not refused
		}
	})
}

func TestBotTokenIsCheckedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testapp.StartMemory(t, slacktest.Options{})
		server.Script("auth.test", slacktest.Fault{Error: "invalid_auth"})
		p := runAdapterOn(t, server, 1, testapp.FastTimes, &memoryInbox{})
		var refused *adapters.RefusedError
		if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "bot_token") {
			t.Errorf("%v", err)
		}
		p.sockets(0, 0)
	})
}

// TestRevokedBotTokenStopsSockets revokes the bot token while the sockets, which need only
// the app token, stay open.
func TestRevokedBotTokenStopsSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runAdapter(t, slacktest.Options{}, 2, testapp.FastTimes, &memoryInbox{})
		p.sockets(2, 2)
		p.server.Script("chat.postMessage", slacktest.Fault{Error: "token_revoked"})
		p.server.Script("auth.test", slacktest.Fault{Error: "token_revoked"})
		if _, err := p.adapter.Send(t.Context(), testapp.Post("k1")); testapp.Failure(t, err).Failure != adapters.NotSent {
			t.Errorf("%v", err)
		}
		var refused *adapters.RefusedError
		if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "bot_token") {
			t.Errorf("%v", err)
		}
		p.sockets(0, 2)
	})
}

// TestValidBotTokenIsCheckedAgain lets Slack refuse one call for the token by mistake.
func TestValidBotTokenIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runAdapter(t, slacktest.Options{}, 1, testapp.FastTimes, &memoryInbox{})
		p.sockets(1, 1)
		p.server.Script("chat.postMessage", slacktest.Fault{Error: "invalid_auth"})
		if _, err := p.adapter.Send(t.Context(), testapp.Post("k1")); err == nil {
			t.Error("the call was not refused")
		}
		synctest.Wait()
		p.sockets(1, 1)
		if _, err := p.adapter.Send(t.Context(), testapp.Post("k2")); err != nil {
			t.Error(err)
		}
	})
}

func TestLinkDisabledIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runAdapter(t, slacktest.Options{}, 2, testapp.FastTimes, &memoryInbox{})
		p.sockets(2, 2)
		p.server.Disconnect("link_disabled", 1)
		var refused *adapters.RefusedError
		if err := p.end(); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "Socket Mode") {
			t.Errorf("%v", err)
		}
		p.sockets(0, 2)
	})
}
