package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/journal/postgres/postgrestest"
)

// eachEngine runs a test on each engine.
func eachEngine(t *testing.T, test func(t *testing.T, store string)) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) string{
		"SQLite":     func(*testing.T) string { return "" },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, store(t))
		})
	}
}

// textOf returns the whole text of a post.
func textOf(p slacktest.Post) string { return p.Text + p.Markdown }

// awaitPosts advances the clock until there is a number of posts.
func (h *harness) awaitPosts(n int) []slacktest.Post {
	h.t.Helper()
	for len(h.slack.Posts()) < n {
		if !h.poll() {
			h.t.Fatalf("%d of %d posts\n%s", len(h.slack.Posts()), n, h.log)
		}
		h.clock.advance(100 * time.Millisecond)
	}
	return h.slack.Posts()
}

// answersAll answers each question to the model by its own words, until the test ends. It returns the inputs.
func (h *harness) answersAll() <-chan string {
	inputs := make(chan string, 1000)
	var answering sync.WaitGroup
	ctx, cancel := context.WithCancel(h.ctx)
	h.t.Cleanup(func() { cancel(); answering.Wait() })
	answering.Go(func() {
		for {
			select {
			case a := <-h.model.asked:
				text := a.text()
				inputs <- text
				lines := strings.Split(strings.TrimSpace(text), "\n")
				select {
				case a.reply <- replyWith("To " + lines[len(lines)-1]):
				case <-a.gone: // the daemon stops; it asks again
				case <-ctx.Done():
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return inputs
}

// TestAnswersStandBelowTheirAnnouncements: whatever delays a post that shows an injected message, and whoever stops the daemon meanwhile, the answer is
// the post below it. A person who asks below it is understood.
func TestAnswersStandBelowTheirAnnouncements(t *testing.T) {
	eachEngine(t, func(t *testing.T, store string) {
		h := open(t, withInjectors(plan{store: store}, "acme", ""))
		const n = 12
		h.slack.Script("chat.postMessage",
			slacktest.Fault{Status: http.StatusServiceUnavailable, Effect: true}, slacktest.RateLimited(15*time.Second), slacktest.Fault{Status: http.StatusServiceUnavailable},
			slacktest.Fault{}, slacktest.Fault{Cut: true, Effect: true}, slacktest.Fault{Status: http.StatusServiceUnavailable, Effect: true}, slacktest.Fault{Cut: true})
		more := `,"to":{"channel":"` + room + `"},"mentioned":true,"announce":true`
		asks := func(text string, more string) injectedMessage {
			t.Helper()
			got := h.web(http.MethodPost, "acme/messages", crmToken, `{"content":"`+text+`","metadata":{`+crmSays+`}`+more+`}`)
			if got.status != http.StatusAccepted {
				t.Fatal(got)
			}
			return decode[injectedMessage](t, got.body)
		}
		inputs := h.answersAll()
		for i := range n {
			asks(fmt.Sprintf("question %02d?", i), more)
			if i%4 == 3 {
				h.restart()
			}
		}
		posts := h.awaitPosts(2 * n)
		top, below := map[string]string{}, map[string]int{}
		for _, p := range posts {
			if i := strings.Index(textOf(p), "question "); i < 0 {
				t.Errorf("the post %+v", p)
			} else if name := textOf(p)[i:][:len("question 00")]; p.ThreadTS == "" {
				if top[name] != "" || !strings.Contains(textOf(p), "(crm") {
					t.Errorf("a further post at the top: %q", textOf(p))
				}
				top[name] = p.TS
			} else {
				below[name+p.ThreadTS]++
			}
		}
		for name, ts := range top {
			if below[name+ts] != 1 {
				t.Errorf("%s has %d answers below it", name, below[name+ts])
			}
		}
		same(t, len(top), n)
		same(t, len(below), n)

		// A message that follows while the post is on its way belongs there, too, and so does what people ask.
		held := make(chan struct{})
		h.slack.Script("chat.postMessage", slacktest.Fault{Hold: held})
		first := asks("is it dry?", more)
		asks("and warm?", `,"thread_id":"`+first.ThreadID+`","mentioned":true,"announce":true`)
		close(held)
		posts = h.awaitPosts(2*n + 4)[2*n:]
		for _, p := range posts[1:] {
			same(t, p.ThreadTS, posts[0].TS)
		}
		m := h.newMessage("and now?")
		h.accept(inner(`{"type":"app_mention","user":"` + mara + `","ts":"` + m.TS + `","text":"<@` + slacktest.BotUser + `> and now?","thread_ts":"` + posts[0].TS + `","channel":"` + room + `"}`))
		h.awaitPosts(2*n + 5)
		input := ""
		for !strings.Contains(input, "and now?") {
			input = <-inputs
		}
		for _, want := range []string{"is it dry?", "and warm?"} {
			if !strings.Contains(input, want) {
				t.Errorf("the agent gets %q", input)
			}
		}
	})
}

// TestTheThreadOfATick: a scheduled agent's answers to the reports of its workstreams are in the thread below its first answer, even if the
// platform does not have the first answer yet.
func TestTheThreadOfATick(t *testing.T) {
	t.Parallel()
	for _, thread := range []string{"same", "new"} {
		t.Run(thread, func(t *testing.T) {
			t.Parallel()
			h := openLead(t, plan{acme: `schedules: [{id: m, cron: 0 9 * * 1-5, to: {channel: ` + room + `}, prompt: "tick", thread: ` + thread + `}]`})
			h.changeSchedule("m", "run")
			asked := <-h.inputs
			held := make(chan struct{})
			h.slack.Script("chat.postMessage", slacktest.Fault{Hold: held})
			h.launch(asked.RunID, `{"task":"Look it up.","agent":"echo","name":"the books"}`)
			h.reply(asked.RunID, "started")
			told := <-h.inputs
			h.launch(told.RunID, `{"task":"Once more.","agent":"echo","name":"the papers"}`)
			h.reply(told.RunID, "the result is there")
			close(held)
			again := <-h.inputs
			h.reply(again.RunID, "all of it")
			posts := h.posts(3)
			same(t, posts[0].ThreadTS+posts[0].Text, "started")
			same(t, []string{posts[1].Text, posts[1].ThreadTS, posts[2].Text, posts[2].ThreadTS}, []string{"the result is there", posts[0].TS, "all of it", posts[0].TS})
			m := h.newMessage("and now?")
			h.accept(inner(`{"type":"app_mention","user":"` + mara + `","ts":"` + m.TS + `","text":"<@` + slacktest.BotUser + `> and now?","thread_ts":"` + posts[0].TS + `","channel":"` + room + `"}`))
			input := fmt.Sprint((<-h.inputs).Messages)
			for _, want := range []string{"started", "the result is there", "all of it"} {
				if !strings.Contains(input, want) {
					t.Errorf("the agent gets %s", input)
				}
			}
		})
	}
}

// TestWhatNobodyAskedIsAskedAgain: an operator has a schedule's question, and the report of a workstream, asked again whose run has failed.
func TestWhatNobodyAskedIsAskedAgain(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: twoSchedules, turns: "coalesce: 0s, max_attempts: 1"})
	h.changeSchedule("morning", "run")
	h.answerNext(failWith(http.StatusBadRequest))
	h.awaitResult("morning", "failed")
	failed, err := h.operate().Runs(h.ctx, map[string][]string{"failed": {"true"}})
	if err != nil || len(failed.Items) != 1 {
		t.Fatalf("%v %+v", err, failed)
	}
	if _, err := h.operate().RetryRun(h.ctx, failed.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	asked := h.answerNext(replyWith("Rain."))
	same(t, strings.TrimSpace(asked.text()), "user: [[Schedule morning]]: does it rain?")
	same(t, h.posts(1)[0].Text, "Rain.")
	if _, err := h.operate().RetryRun(h.ctx, failed.Items[0].ID); err == nil {
		t.Error("the same question is asked again twice")
	}
}
