package daemon_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// streamPieces streams pieces, and calls between after each of them.
func streamPieces(pieces []string, between func(i int)) func(http.ResponseWriter) {
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

// textPieces returns a number of pieces of text with a number of characters each. Some
// contain tokens that Slack must show as plain text.
func textPieces(pieces, each int) (list []string) {
	for i := range pieces {
		line := fmt.Sprintf("%d: <!chan", i) + "nel> is only text, `a < b` too.\n"
		if i%4 == 3 {
			line += "\n"
		}
		list = append(list, strings.Repeat(line, each/len(line)+1)[:each])
	}
	return list
}

// visible returns the bot's posts in a thread, as a reader sees them.
func (h *harness) visible(m slacktest.Message) (texts []string) {
	for _, post := range h.slack.Thread(m.Channel, m.TS) {
		if post.BotID != "" && !post.Deleted {
			texts = append(texts, post.Shown())
		}
	}
	return texts
}

// awaitVisible waits until the visible posts are good.
func (h *harness) awaitVisible(m slacktest.Message, what string, good func(texts []string) bool) {
	h.t.Helper()
	for !good(h.visible(m)) {
		if !h.poll() {
			h.t.Fatalf("%s: a reader sees %q\n%s%s", what, h.visible(m), h.state(), h.log)
		}
	}
}

// withoutZeroWidth removes the zero-width characters that make tokens plain text.
func withoutZeroWidth(s string) string { return strings.ReplaceAll(s, "\u200b", "") }

// TestLongAnswerUsesManyStreams: Slack ends a stream after five minutes, takes at most 12,000
// characters in it, and may refuse edits. The posts together must be the answer, with every
// token as plain text. A post whose stream Slack has ended grows by edits.
func TestLongAnswerUsesManyStreams(t *testing.T) {
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
			pieces := textPieces(40, 1000)
			m := h.mention("tell me everything")
			h.answerNext(streamPieces(pieces, func(i int) {
				sofar := len(strings.Join(pieces[:i], ""))
				h.awaitVisible(m, "while it grows", func(texts []string) bool {
					return len(withoutZeroWidth(strings.Join(texts, ""))) >= sofar-200 && sofar > 0 || i == 0
				})
				if name == "" {
					clock.advance(time.Minute) // a stream ends before its post is full
				}
			}))
			h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
			whole := strings.Join(pieces, "")
			h.awaitVisible(m, "in the end", func(texts []string) bool { return withoutZeroWidth(strings.Join(texts, "")) == whole })
			for len(h.slack.OpenStreams()) > 0 {
				if !h.poll() {
					t.Fatal("a stream is still open")
				}
			}
			texts := h.visible(m)
			if joined := strings.Join(texts, ""); strings.Contains(joined, "<!channel>") || len(texts) < 5 {
				t.Errorf("%d posts, with a live token: %v", len(texts), strings.Contains(joined, "<!channel>"))
			}
			for _, text := range texts {
				if n := len([]rune(text)); n > 12_000 {
					t.Errorf("a post has %d characters", n)
				}
			}
			edited := slices.ContainsFunc(h.slack.Posts(), func(p slacktest.Post) bool { return p.Edits > 0 })
			if edited != (name == "") {
				t.Errorf("a post is edited: %v", edited)
			}
		})
	}
}

// planOf returns a plan with frequent previews, whose daemon and Slack share a clock.
func planOf(fake slacktest.Options, c *clock) plan {
	return plan{fake: fake, clock: c, slack: "timeout: 5s, preview_every: 10ms", turns: "coalesce: 0s, max_attempts: 2"}
}
