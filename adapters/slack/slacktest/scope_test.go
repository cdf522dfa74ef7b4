package slacktest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// calls contains one call for each scope.
var calls = map[string]func(*testing.T, *slack.Client) error{
	"chat:write": func(t *testing.T, c *slack.Client) error {
		_, _, err := c.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("x", false))
		return err
	},
	"channels:history": func(t *testing.T, c *slack.Client) error {
		_, err := c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "C1"})
		return err
	},
	"im:history": func(t *testing.T, c *slack.Client) error {
		_, err := c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "D1"})
		return err
	},
	"groups:read": func(t *testing.T, c *slack.Client) error {
		_, err := c.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: "C4"})
		return err
	},
	"mpim:read": func(t *testing.T, c *slack.Client) error {
		_, _, err := c.GetConversationsForUserContext(t.Context(), &slack.GetConversationsForUserParameters{Types: []string{"im", "mpim"}})
		return err
	},
	"files:write": func(t *testing.T, c *slack.Client) error {
		_, err := c.GetUploadURLExternalContext(t.Context(), slack.GetUploadURLExternalParameters{FileName: "x", FileSize: 1})
		return err
	},
	"team:read": func(t *testing.T, c *slack.Client) error {
		_, err := c.GetTeamInfoContext(t.Context())
		return err
	},
	"users:read": func(t *testing.T, c *slack.Client) error {
		_, err := c.GetBotInfoContext(t.Context(), slack.GetBotInfoParameters{Bot: slacktest.BotID})
		return err
	},
}

func TestScopes(t *testing.T) {
	_, full := town(t, slacktest.Options{})
	for scope, call := range calls {
		t.Run(scope, func(t *testing.T) {
			wantCode(t, "with all scopes", call(t, full), "")
			rest := slices.DeleteFunc(slacktest.AllScopes(), func(s string) bool { return s == scope })
			_, client := town(t, slacktest.Options{Scopes: rest})
			var refused slack.SlackErrorResponse
			if err := call(t, client); !errors.As(err, &refused) || refused.Err != "missing_scope" || refused.Needed != scope {
				t.Errorf("without the scope: %v, needed %q", err, refused.Needed)
			}
			for other, call := range calls {
				if other != scope {
					wantCode(t, other, call(t, client), "")
				}
			}
		})
	}
}

func TestStatusNeedsOneOfTwoScopes(t *testing.T) {
	for _, scope := range []string{"chat:write", "assistant:write"} {
		_, client := start(t, slacktest.Options{Scopes: []string{scope}})
		setStatus(t, client, "is thinking…")
	}
	server, _ := start(t, slacktest.Options{Scopes: []string{"im:write"}})
	if code := refused(t, server, "assistant.threads.setStatus", "channel_id=C1", "thread_ts=1", "status=x"); code != "missing_scope" {
		t.Errorf("without both scopes: %q", code)
	}
}

func TestScopesHeader(t *testing.T) {
	_, client := start(t, slacktest.Options{Scopes: []string{"chat:write", "im:read"}, Enterprise: "E1"})
	answer, err := client.AuthTestContext(t.Context())
	if err != nil || answer.Header.Get("X-OAuth-Scopes") != "chat:write,im:read" || answer.EnterpriseID != "E1" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestRevokedTokens(t *testing.T) {
	server, client := town(t, slacktest.Options{})
	server.Revoke()
	for scope, call := range calls {
		wantCode(t, scope, call(t, client), "token_revoked")
	}
	_, err := client.AuthTestContext(t.Context())
	wantCode(t, "auth.test", err, "token_revoked")
}

func TestTokenTypes(t *testing.T) {
	server, _ := town(t, slacktest.Options{})
	client := slack.New(slacktest.AppToken, slack.OptionAPIURL(server.URL()))
	wantCode(t, "post as the app", calls["chat:write"](t, client), "not_allowed_token_type")
	_, err := client.AuthTestContext(t.Context())
	wantCode(t, "auth.test", err, "")
}
