package slacktest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// waits returns the wait that the server requested; 0 if the call succeeded.
func waits(t *testing.T, err error) time.Duration {
	t.Helper()
	var limited *slack.RateLimitedError
	if err != nil && !errors.As(err, &limited) {
		t.Fatal(err)
	}
	if limited == nil {
		return 0
	}
	return limited.RetryAfter
}

func TestPostRate(t *testing.T) {
	moving := &clock{}
	options := moving.options()
	options.PostRate, options.Tiers = 0.5, true
	server, client := start(t, options)
	say := func(channel string) error {
		_, _, err := client.PostMessageContext(t.Context(), channel, slack.MsgOptionText("x", false))
		return err
	}
	edit := func() error {
		_, _, _, err := client.UpdateMessageContext(t.Context(), channel, server.Posts()[0].TS, slack.MsgOptionText("y", false))
		return err
	}
	ephemeral := func() error {
		_, err := client.PostEphemeralContext(t.Context(), channel, "U1", slack.MsgOptionText("x", false))
		return err
	}
	stream := func() error {
		_, _, err := client.StartStreamContext(t.Context(), channel, under(root), slack.MsgOptionRecipientTeamID("T"), slack.MsgOptionRecipientUserID("U"))
		return err
	}
	for name, call := range map[string]func() error{
		"post": func() error { return say(channel) }, "edit": edit, "ephemeral": ephemeral, "stream": stream,
	} {
		t.Run(name, func(t *testing.T) {
			moving.pass(time.Minute)
			if wait := waits(t, say(channel)); wait != 0 {
				t.Fatalf("the first post must wait %v", wait)
			}
			if wait := waits(t, call()); wait != 2*time.Second {
				t.Errorf("at once: the wait is %v", wait)
			}
			if err := client.AddReactionContext(t.Context(), name, slack.NewRefToMessage(channel, server.Posts()[0].TS)); err != nil {
				t.Errorf("the reaction: %v", err)
			}
			if wait := waits(t, say("C0OTHER"+name)); wait != 0 {
				t.Errorf("the post in another channel must wait %v", wait)
			}
			moving.pass(1900 * time.Millisecond) // a little early, as the network can make it
			if wait := waits(t, call()); wait != 0 {
				t.Errorf("in time: the wait is %v", wait)
			}
			moving.pass(1900 * time.Millisecond)
			if wait := waits(t, call()); wait != 0 {
				t.Errorf("early again: the wait is %v", wait)
			}
			moving.pass(1500 * time.Millisecond)
			if wait := waits(t, call()); wait != time.Second {
				t.Errorf("too early for the rate: the wait is %v", wait)
			}
		})
	}
}

func TestTiers(t *testing.T) {
	moving := &clock{}
	options := moving.options()
	options.Tiers = true
	_, client := start(t, options)
	read := func() error {
		_, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: channel})
		return err
	}
	for n := range 50 {
		if wait := waits(t, read()); wait != 0 {
			t.Fatalf("call %d must wait %v", n+1, wait)
		}
		moving.pass(time.Second)
	}
	if wait := waits(t, read()); wait != 10*time.Second {
		t.Errorf("call 51 must wait %v, want 10s", wait)
	}
	if _, err := client.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: channel}); err != nil {
		t.Errorf("the other method: %v", err)
	}
	moving.pass(10 * time.Second)
	if wait := waits(t, read()); wait != 0 {
		t.Errorf("after a minute: the wait is %v", wait)
	}
	if wait := waits(t, read()); wait != time.Second {
		t.Errorf("the next call must wait %v, want 1s", wait)
	}
}

func TestScriptPrecedesRate(t *testing.T) {
	moving := &clock{}
	options := moving.options()
	options.PostRate = 1
	server, client := start(t, options)
	post(t, client, "one")
	server.Script("chat.postMessage", slacktest.Fault{Error: "is_archived"})
	_, _, err := client.PostMessageContext(t.Context(), channel, slack.MsgOptionText("two", false))
	wantCode(t, "the fault", err, "is_archived")
	_, _, err = client.PostMessageContext(t.Context(), channel, slack.MsgOptionText("two", false))
	if wait := waits(t, err); wait != time.Second {
		t.Errorf("the wait is %v, want 1s", wait)
	}
}

func TestDistributed(t *testing.T) {
	moving := &clock{}
	options := moving.options()
	options.Distributed = true
	_, client := start(t, options)
	for range 20 {
		post(t, client, "x")
	}
	query := slack.GetConversationHistoryParameters{ChannelID: channel, Limit: 200}
	page, err := client.GetConversationHistoryContext(t.Context(), &query)
	if err != nil || len(page.Messages) != 15 || !page.HasMore {
		t.Fatalf("%d messages, %v", len(page.Messages), err)
	}
	query.Cursor = page.ResponseMetaData.NextCursor
	moving.pass(59 * time.Second)
	if _, err = client.GetConversationHistoryContext(t.Context(), &query); waits(t, err) != time.Second {
		t.Errorf("the second page within a minute: %v", err)
	}
	moving.pass(time.Second)
	if page, err = client.GetConversationHistoryContext(t.Context(), &query); err != nil || len(page.Messages) != 5 {
		t.Errorf("the second page after a minute: %v", err)
	}
}
