package daemon_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// grows streams pieces, and does something between each two of them.
func grows(pieces []string, between func(i int)) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, piece := range pieces {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", quoted(piece))
			_ = http.NewResponseController(w).Flush()
			between(i)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// prose is a text of so many pieces of so many characters, some of them with what
// Slack must not take for its own.
func prose(pieces, each int) (list []string) {
	for i := range pieces {
		line := fmt.Sprintf("%d: <!chan", i) + "nel> is only text, `a < b` too.\n"
		if i%4 == 3 {
			line += "\n"
		}
		list = append(list, strings.Repeat(line, each/len(line)+1)[:each])
	}
	return list
}

// shown is what a reader sees of the bot in a thread, post by post.
func (h *house) shown(m slacktest.Message) (texts []string) {
	for _, post := range h.slack.Thread(m.Channel, m.TS) {
		if post.BotID != "" && !post.Deleted {
			texts = append(texts, post.Shown())
		}
	}
	return texts
}

// awaitShown waits until what a reader sees is as it should be.
func (h *house) awaitShown(m slacktest.Message, what string, good func(texts []string) bool) {
	h.t.Helper()
	for !good(h.shown(m)) {
		if !h.again() {
			h.t.Fatalf("%s: a reader sees %q\n%s%s", what, h.shown(m), h.state(), h.log)
		}
	}
}

// plain takes the zero-width marks out that make tokens plain text.
func plain(s string) string { return strings.ReplaceAll(s, "\u200b", "") }

// TestALongAnswerGrowsOverManyStreams: Slack closes a stream after five minutes and
// before it has more than 12,000 characters, and may refuse edits. What stands there
// in the end is the answer, and every token in it is plain text.
func TestALongAnswerGrowsOverManyStreams(t *testing.T) {
	t.Parallel()
	refused := func(call slacktest.Call) slacktest.Fault {
		if call.Method == "chat.update" {
			return slacktest.Fault{Error: "edit_window_closed"}
		}
		return slacktest.Fault{}
	}
	for name, plan := range map[string]func(slacktest.Call) slacktest.Fault{"": nil, "edits are refused": refused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := new(clock)
			h := open(t, planOf(slacktest.Options{Now: clock.now, Plan: plan}, clock))
			pieces := prose(40, 1000)
			m := h.mention("tell me everything")
			h.asks(grows(pieces, func(i int) {
				sofar := len(strings.Join(pieces[:i], ""))
				h.awaitShown(m, "while it grows", func(texts []string) bool {
					return len(plain(strings.Join(texts, ""))) >= sofar-200 && sofar > 0 || i == 0
				})
				clock.advance(30 * time.Second) // twenty minutes in all
			}))
			h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
			whole := strings.Join(pieces, "")
			h.awaitShown(m, "in the end", func(texts []string) bool { return plain(strings.Join(texts, "")) == whole })
			for len(h.slack.OpenStreams()) > 0 {
				if !h.again() {
					t.Fatal("a stream is still open")
				}
			}
			texts := h.shown(m)
			if joined := strings.Join(texts, ""); strings.Contains(joined, "<!channel>") || len(texts) < 5 {
				t.Errorf("%d posts, with a live token: %v", len(texts), strings.Contains(joined, "<!channel>"))
			}
			for _, text := range texts {
				if n := len([]rune(text)); n > 12_000 {
					t.Errorf("a post of %d characters", n)
				}
			}
			if name == "" {
				return
			}
			for _, post := range h.slack.Posts() {
				if post.Edits > 0 {
					t.Errorf("edited: %+v", post)
				}
			}
		})
	}
}

// planOf has previews as often as a test likes, and a clock that its Slack has too.
func planOf(fake slacktest.Options, c *clock) plan {
	return plan{fake: fake, clock: c, slack: "timeout: 5s, preview_every: 10ms", turns: "coalesce: 0s, max_attempts: 2"}
}
