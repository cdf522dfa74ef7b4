package slacktest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"parley/adapters/slack/slacktest"
)

// effects are calls that change something, each with a check of its effect.
var effects = map[string]struct {
	do   func(*testing.T, *slack.Client, string) error
	done func(*slacktest.Server, string) bool
}{
	"chat.update": {func(t *testing.T, c *slack.Client, ts string) error {
		_, _, _, err := c.UpdateMessageContext(t.Context(), channel, ts, slack.MsgOptionText("new", false))
		return err
	}, func(s *slacktest.Server, ts string) bool { p, _ := s.Message(channel, ts); return p.Text == "new" }},
	"chat.delete": {func(t *testing.T, c *slack.Client, ts string) error {
		_, _, err := c.DeleteMessageContext(t.Context(), channel, ts)
		return err
	}, func(s *slacktest.Server, ts string) bool { _, there := s.Message(channel, ts); return !there }},
	"chat.postEphemeral": {func(t *testing.T, c *slack.Client, _ string) error {
		_, err := c.PostEphemeralContext(t.Context(), channel, "U1", slack.MsgOptionText("x", false))
		return err
	}, func(s *slacktest.Server, _ string) bool { return len(s.Ephemerals()) == 1 }},
	"chat.startStream": {func(t *testing.T, c *slack.Client, ts string) error {
		_, _, err := c.StartStreamContext(t.Context(), channel, under(ts), slack.MsgOptionRecipientTeamID("T"), slack.MsgOptionRecipientUserID("U"))
		return err
	}, func(s *slacktest.Server, _ string) bool { return len(s.OpenStreams()) == 1 }},
	"reactions.add": {func(t *testing.T, c *slack.Client, ts string) error {
		return c.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, ts))
	}, func(s *slacktest.Server, ts string) bool { return len(s.Reactions(channel, ts)) == 1 }},
	"assistant.threads.setStatus": {func(t *testing.T, c *slack.Client, ts string) error {
		return c.SetAssistantThreadsStatusContext(t.Context(),
			slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: ts, Status: "is thinking…"})
	}, func(s *slacktest.Server, ts string) bool { return s.Status(channel, ts) != "" }},
}

func TestFaultsOfEveryMethod(t *testing.T) {
	for name, c := range map[string]struct {
		fault         slacktest.Fault
		fails, effect bool
	}{
		"429":              {slacktest.RateLimited(time.Second), true, false},
		"500 and done":     {slacktest.Fault{Status: 500, Effect: true}, true, true},
		"cut":              {slacktest.Fault{Cut: true}, true, false},
		"cut and done":     {slacktest.Fault{Cut: true, Effect: true}, true, true},
		"refused":          {slacktest.Fault{Error: "fatal_error"}, true, false},
		"refused and done": {slacktest.Fault{Error: "fatal_error", Effect: true}, true, true},
		"late":             {slacktest.Fault{Late: time.Nanosecond}, false, true},
	} {
		for method, call := range effects {
			t.Run(name+" "+method, func(t *testing.T) {
				server, client := start(t, slacktest.Options{})
				ts := post(t, client, "old")
				server.Script(method, c.fault)
				if err := call.do(t, client, ts); (err != nil) != c.fails {
					t.Errorf("the call returned %v", err)
				}
				if effect := call.done(server, ts); effect != c.effect {
					t.Errorf("the call took effect: %v", effect)
				}
				if c.effect {
					return
				}
				if err := call.do(t, client, ts); err != nil || !call.done(server, ts) {
					t.Errorf("the next call returned %v or had no effect", err)
				}
			})
		}
	}
}

func TestRateLimitResponse(t *testing.T) {
	server, client := start(t, slacktest.Options{})
	server.Script("chat.update", slacktest.RateLimited(3*time.Second))
	_, _, _, err := client.UpdateMessageContext(t.Context(), channel, root, slack.MsgOptionText("x", false))
	if diff := cmp.Diff(3*time.Second, waits(t, err)); diff != "" {
		t.Error(diff)
	}
}
