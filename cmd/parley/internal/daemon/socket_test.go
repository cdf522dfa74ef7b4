package daemon_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// socketMode is acme's file where Slack's events come over sockets, and echo answers.
const socketMode = `
id: acme
platform: slack
agent: echo
slack: {mode: socket, app_token: ` + slacktest.AppToken + `, bot_token: ` + slacktest.Token + `, api_url: "SLACK", post_rate: 0, sockets: %d}
turns: {coalesce: 0s}
`

// plugIn starts a daemon that takes Slack's events over so many sockets.
func plugIn(t *testing.T, sockets int, options slacktest.SocketOptions) *house {
	t.Helper()
	h := open(t, plan{
		fake:  slacktest.Options{SocketOptions: options},
		files: map[string]string{"workspaces/acme.yaml": fmt.Sprintf(socketMode, sockets)},
	})
	h.sockets(sockets, sockets)
	return h
}

// sockets waits until exactly so many are open, and so many ever were.
func (h *house) sockets(n, ever int) {
	h.t.Helper()
	if err := h.slack.AwaitSockets(h.ctx, n, ever); err != nil {
		h.t.Fatalf("%v\n%s", err, h.log)
	}
}

func TestAMentionOverASocketIsAnswered(t *testing.T) {
	t.Parallel()
	h := plugIn(t, 1, slacktest.SocketOptions{})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	m, told := h.slack.Say(slacktest.Message{Channel: room, User: mara, Text: "<@U0BOT> when do we water?"})
	if post := h.posts(1)[0]; post.Channel != room || post.ThreadTS != m.TS || post.Text != m.Text {
		t.Errorf("%+v", post)
	}
	for _, d := range told { // the message and its twin
		if fate, err := d.Wait(h.ctx); err != nil || fate.State != slacktest.Acked {
			t.Errorf("%+v, %v", fate, err)
		}
	}
	h.awaitMetric(settled("message", "duplicate", ""), 1)
	h.awaitMetric(sent, 1)
	if posts := h.slack.Posts(); len(posts) != 1 {
		t.Errorf("%+v", posts)
	}
}

// TestTheAppIsLearntFromTheHello: another app's event is turned away although no
// event of ours came before it.
func TestTheAppIsLearntFromTheHello(t *testing.T) {
	t.Parallel()
	h := plugIn(t, 1, slacktest.SocketOptions{})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	h.slack.PushRaw(slacktest.EventsAPI, []byte(strings.ReplaceAll(string(h.said("<@U0BOT> hello").Mention()), slacktest.App, "A0OTHER")))
	h.awaitMetric(settled("message", "ignored", "other-workspace"), 1)
}

// TestForcedDisconnectsLoseNothing: in four conversations, what is said is answered
// once and in its order while Slack sends every socket away again and again.
func TestForcedDisconnectsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, sockets := range []int{1, 3} {
		t.Run(fmt.Sprint(sockets), func(t *testing.T) {
			t.Parallel()
			h := plugIn(t, sockets, slacktest.SocketOptions{Grace: 5 * time.Second, Repeat: slices.Repeat([]time.Duration{time.Second}, 10)})
			const rounds, each = 12, 2
			said := map[string][]string{}
			for round := range rounds {
				for n := range each {
					for _, channel := range []string{"D0A", "D0B", "D0C", "D0D"} {
						text := fmt.Sprintf("%s %d/%d", channel, round, n)
						said[channel] = append(said[channel], text)
						h.slack.Say(slacktest.Message{Channel: channel, ChannelType: "im", User: mara, Text: text})
					}
					if n == 0 {
						reason := []string{"warning", "refresh_requested"}[round%2]
						if told := h.slack.Disconnect(reason, slacktest.All); told != sockets {
							t.Errorf("round %d: %d sockets were told", round, told)
						}
					}
				}
				if err := h.slack.AwaitFresh(h.ctx, sockets); err != nil {
					t.Fatalf("round %d: %v\n%s", round, err, h.log)
				}
				h.posts(4 * each * round) // the rounds before this one
			}
			h.posts(4 * rounds * each)
			answered := map[string][]string{}
			for _, post := range h.slack.Posts() {
				answered[post.Channel] = append(answered[post.Channel], post.Text)
			}
			// Several sockets have no order among them, nor has what a slow machine's
			// store could not take the first time.
			if log := h.log.String(); sockets > 1 || strings.Contains(log, "durable accept refused") || strings.Contains(log, "found no room") {
				for channel := range said {
					slices.Sort(said[channel])
					slices.Sort(answered[channel])
				}
			}
			same(t, answered, said)
			if h.slack.Missed() != 0 || h.slack.Unacked() != 0 {
				t.Errorf("%d events were missed, %d not acknowledged\n%s", h.slack.Missed(), h.slack.Unacked(), h.log)
			}
		})
	}
}

// TestADaemonWithSocketsStopsInTime, and takes its sockets with it; it goes on
// after the start.
func TestADaemonWithSocketsStopsInTime(t *testing.T) {
	t.Parallel()
	h := plugIn(t, 2, slacktest.SocketOptions{})
	h.slack.Disconnect("warning", 1) // one of them waits for Slack to close it
	begun := time.Now()
	if err := h.stop(); err != nil {
		t.Fatalf("%v\n%s", err, h.log)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	h.sockets(0, 2)
	if err := h.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		t.Fatal(err)
	}
	h.sockets(2, 4)
	h.slack.Say(slacktest.Message{Channel: direct, ChannelType: "im", User: mara, Text: "still there?"})
	h.posts(1)
}
