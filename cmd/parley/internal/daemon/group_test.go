package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
)

// shed is a channel of Slack whose id does not reveal its type: a private channel, or a group conversation.
const shed = "G0SHED"

// saysInShed lets mara say something in the shed, below a post if ts is not empty.
func (h *harness) saysInShed(kind, ts, text string) {
	h.t.Helper()
	m := h.newMessage(text)
	if m.Channel, m.ChannelType, m.ThreadTS = shed, kind, ts; ts != "" {
		m.ParentUser = slacktest.BotUser
	}
	h.accept(m.Event())
}

const shedSchedule = `schedules: [{id: rain, cron: 0 9 * * *, to: {channel: ` + shed + `}, prompt: hello}]`

// TestWhoAnswersAPostIsInItsThread: what a program or a schedule posts first in a private channel is answered below the post, and in a
// group conversation also at its top. The agent knows the post there, whether an event has named the channel's type before or not.
func TestWhoAnswersAPostIsInItsThread(t *testing.T) {
	t.Parallel()
	ways := map[string]func(h *harness){
		"a post": func(h *harness) { h.speak("acme", `"channel":"`+shed+`"`, "It rains.", "") },
		"an announcement": func(h *harness) {
			h.inject(http.StatusAccepted, "acme", "It rains.", `,"to":{"channel":"`+shed+`"},"mentioned":true,"announce":true`)
			h.answerNext(replyWith("I know."))
			h.posts(2)
		},
		"a schedule": func(h *harness) {
			h.changeSchedule("rain", "run")
			h.answerNext(replyWith("It rains."))
		},
	}
	for name, c := range map[string]struct {
		kind        slacktest.Kind
		channelType string // in events
		below       bool
	}{
		"below, in a private channel": {slacktest.PrivateChannel, "group", true},
		"below, in a group":           {slacktest.GroupMessage, "mpim", true},
		"at the top of a group":       {slacktest.GroupMessage, "mpim", false},
	} {
		for way, begin := range ways {
			for _, known := range []bool{false, true} {
				t.Run(name+"/"+way, func(t *testing.T) {
					t.Parallel()
					h := open(t, withInjectors(plan{acme: shedSchedule}, "acme", ""))
					h.slack.SetChannel(slacktest.Channel{ID: shed, Name: "shed", Kind: c.kind})
					if known {
						h.saysInShed(c.channelType, "", "morning")
						h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1)
					}
					begin(h)
					posts, under, mention := h.posts(1), "", "<@"+slacktest.BotUser+"> "
					h.awaitMetric(sent, float64(len(posts)))
					if c.below {
						under, mention = posts[0].TS, ""
					}
					for i, text := range []string{"how much?", "and now?"} {
						h.saysInShed(c.channelType, under, mention+text)
						asked := h.answerNext(replyWith("Ten."))
						if got := asked.text(); strings.Count(got, "It rains.") != 1 || i > 0 && !strings.Contains(got, "how much?") {
							t.Errorf("the agent gets %q", got)
						}
						same(t, h.posts(len(posts) + i + 1)[len(posts)+i].ThreadTS, under)
					}
				})
			}
		}
	}
}

// TestAThreadOfAnUnknownGroupGoesOn: a thread that a program began in a group conversation whose type Slack did not tell stays below its
// announcement after an event has named the type.
func TestAThreadOfAnUnknownGroupGoesOn(t *testing.T) {
	t.Parallel()
	h := open(t, withInjectors(plan{}, "acme", ""))
	h.slack.SetChannel(slacktest.Channel{ID: shed, Name: "shed", Kind: slacktest.GroupMessage})
	h.slack.Script("conversations.info", slacktest.Fault{Error: "missing_scope"}, slacktest.Fault{Error: "missing_scope"})
	first := h.inject(http.StatusAccepted, "acme", "It rains.", `,"to":{"channel":"`+shed+`"},"mentioned":true,"announce":true`)
	h.answerNext(replyWith("I know."))
	announced := h.posts(2)[0]
	h.awaitMetric(sent, 2)
	h.saysInShed("mpim", announced.TS, "how much?")
	h.answerNext(replyWith("Ten."))
	h.inject(http.StatusAccepted, "acme", "and now?", `,"thread_id":"`+first.ThreadID+`","mentioned":true`)
	asked := h.answerNext(replyWith("Sun."))
	if got := asked.text(); !strings.Contains(got, "It rains.") || !strings.Contains(got, "how much?") {
		t.Errorf("the agent gets %q", got)
	}
	for _, p := range h.posts(4)[1:] {
		same(t, p.ThreadTS, announced.TS)
	}
}
