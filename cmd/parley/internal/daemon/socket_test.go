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

// socketMode is acme's file with Socket Mode and the echo agent.
const socketMode = `
id: acme
platform: slack
agent: echo
slack: {mode: socket, app_token: ` + slacktest.AppToken + `, bot_token: ` + slacktest.Token + `, api_url: "SLACK", post_rate: 0, sockets: %d}
turns: {coalesce: 0s}
`

// openWithSockets starts a daemon that gets Slack's events over a number of sockets.
func openWithSockets(t *testing.T, sockets int, options slacktest.SocketOptions) *harness {
	t.Helper()
	h := open(t, plan{
		fake:  slacktest.Options{SocketOptions: options},
		files: map[string]string{"workspaces/acme.yaml": fmt.Sprintf(socketMode, sockets)},
	})
	h.sockets(sockets, sockets)
	return h
}

// sockets waits until exactly n sockets are open and exactly ever sockets have been opened in
// all.
func (h *harness) sockets(n, ever int) {
	h.t.Helper()
	if err := h.slack.AwaitSockets(h.ctx, n, ever); err != nil {
		h.t.Fatalf("%v\n%s", err, h.log)
	}
}

func TestMentionOverSocket(t *testing.T) {
	t.Parallel()
	h := openWithSockets(t, 1, slacktest.SocketOptions{})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	m, told := h.slack.Say(slacktest.Message{Channel: room, User: mara, Text: "<@U0BOT> when do we water?"})
	if post := h.posts(1)[0]; post.Channel != room || post.ThreadTS != m.TS || post.Text != m.Text {
		t.Errorf("%+v", post)
	}
	for _, d := range told { // the message event and the mention event
		if result, err := d.Wait(h.ctx); err != nil || result.State != slacktest.Acked {
			t.Errorf("%+v, %v", result, err)
		}
	}
	h.awaitMetric(envelopesMetric("message", "duplicate", "duplicate"), 1)
	h.awaitMetric(sent, 1)
	if posts := h.slack.Posts(); len(posts) != 1 {
		t.Errorf("%+v", posts)
	}
}

// TestAppIDFromHello: the event of another app is refused, although no event of our app came
// before it.
func TestAppIDFromHello(t *testing.T) {
	t.Parallel()
	h := openWithSockets(t, 1, slacktest.SocketOptions{})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	h.slack.PushRaw(slacktest.EventsAPI, []byte(strings.ReplaceAll(string(h.newMessage("<@U0BOT> hello").Mention()), slacktest.App, "A0OTHER")))
	h.awaitMetric(envelopesMetric("message", "ignored", "other-workspace"), 1)
}

// TestForcedDisconnectsLoseNothing: messages in four conversations are answered once and in
// order, while Slack disconnects every socket several times.
func TestForcedDisconnectsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, sockets := range []int{1, 3} {
		t.Run(fmt.Sprint(sockets), func(t *testing.T) {
			t.Parallel()
			h := openWithSockets(t, sockets, slacktest.SocketOptions{Grace: time.Minute, Repeat: slices.Repeat([]time.Duration{time.Second}, 10)})
			const each = 2
			rounds := 8 / sockets // with more, the replaced sockets use up the spare connections
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
							t.Errorf("round %d: %d sockets got the disconnect", round, told)
						}
					}
				}
				if err := h.slack.AwaitFresh(h.ctx, sockets); err != nil {
					t.Fatalf("round %d: %v\n%s", round, err, h.log)
				}
				h.posts(4 * each * round) // the posts of earlier rounds
			}
			h.posts(4 * rounds * each)
			answered := map[string][]string{}
			for _, post := range h.slack.Posts() {
				answered[post.Channel] = append(answered[post.Channel], post.Text)
			}
			// Several sockets have no common order. An event has none either if the store of a
			// slow machine refused it at first, which is logged as a warning.
			if sockets > 1 || h.warnings("level") > 0 {
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

// TestDaemonWithSocketsStops in time and closes its sockets. It opens new ones at the next
// start.
func TestDaemonWithSocketsStops(t *testing.T) {
	t.Parallel()
	h := openWithSockets(t, 2, slacktest.SocketOptions{Grace: time.Minute})
	h.slack.Disconnect("warning", 1) // Slack closes this socket in a minute
	if err := h.stop(); err != nil {
		t.Fatalf("%v\n%s", err, h.log)
	}
	h.sockets(0, 2)
	if err := h.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		t.Fatal(err)
	}
	h.sockets(2, 4)
	h.slack.Say(slacktest.Message{Channel: direct, ChannelType: "im", User: mara, Text: "still there?"})
	h.posts(1)
}

// TestTwoProgramsWithOneApp: the state of a workspace says that another program has the same app, and that events go to one alone.
func TestTwoProgramsWithOneApp(t *testing.T) {
	t.Parallel()
	first := openWithSockets(t, 1, slacktest.SocketOptions{})
	first.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	if st := first.status(); st.Workspaces[0].Warning != "" {
		t.Errorf("alone: %+v", st.Workspaces[0])
	}
	second := open(t, plan{files: map[string]string{"workspaces/acme.yaml": strings.ReplaceAll(fmt.Sprintf(socketMode, 1), "SLACK", first.slack.URL())}})
	for !strings.Contains(second.status().Workspaces[0].Warning, "another program has the same app (its connections: 1)") {
		if !second.poll() {
			t.Fatalf("%+v\n%s", second.status().Workspaces, second.log)
		}
	}
}
