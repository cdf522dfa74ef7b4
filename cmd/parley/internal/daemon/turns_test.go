package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const contextHead = "[Thread context — prior messages in this thread, newest last]\n"

// listed is a message in the answer of the list of a thread's messages.
type listed struct {
	ID        string
	ThreadSeq int64 `json:"thread_seq"`
	Role      string
	Content   string
	RunID     string `json:"run_id"`
	DeletedAt string `json:"deleted_at"`
	BaseSeq   *int64 `json:"base_seq"`
}

// thread reads the web thread.
func (h *house) thread() []listed {
	h.t.Helper()
	got := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "")
	if got.status != http.StatusOK {
		h.t.Fatalf("%d %s", got.status, got.body)
	}
	return decode[struct{ Messages []listed }](h.t, got.body).Messages
}

// awaitReply reads the web thread until it ends with the reply.
func (h *house) awaitReply(text string) []listed {
	h.t.Helper()
	for {
		messages := h.thread()
		if last := messages[len(messages)-1]; last.Role == "assistant" && last.Content == text {
			return messages
		}
		if !h.again() {
			h.t.Fatalf("%+v\n%s", messages, h.log)
		}
	}
}

func TestADeleteEndsTheRun(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("what is Tom's salary?")
	asked := h.ask()
	h.accept(deleted(m))
	h.hangsUp(asked)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="canceled"}`, 1)
	h.mention("and the weather?")
	h.asks(says("Fine."))
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Fine." {
		t.Errorf("%+v", posts)
	}
}

// TestAReplyOfTheLastRunIsSent: a run ends while the daemon stops. The daemon sends its
// reply before it has stopped.
func TestAReplyOfTheLastRunIsSent(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("are you there?")
	asked := h.ask()
	stopped := make(chan error, 1)
	go func() { stopped <- h.stop() }()
	for { // the server is the first part that stops
		r, err := http.NewRequestWithContext(h.ctx, http.MethodGet, h.url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			break
		}
		_ = answer.Body.Close()
	}
	h.answer(asked, says("Yes."))
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v\n%s", err, h.log)
	}
	if posts := h.slack.Posts(); len(posts) != 1 || posts[0].Text != "Yes." {
		t.Errorf("%+v", posts)
	}
}

// TestADeleteOfSomeOfATurnDoesNotEndIt leaves the message that is still there to
// be answered.
func TestADeleteOfSomeOfATurnDoesNotEndIt(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 1h, coalesce_max: 2h"})
	first := h.mention("one")
	second := h.said("<@U0BOT> two")
	second.ThreadTS = first.TS
	h.accept(second.Mention())
	h.awaitMetric(settled("message", "stored", "mention"), 2)
	h.clock.advance(2 * time.Hour)
	asked := h.ask()
	h.accept(deleted(first))
	h.awaitMetric(settled("delete", "updated", ""), 1)
	h.answer(asked, says("Two."))
	if posts := h.posts(1); posts[0].Text != "Two." {
		t.Errorf("%+v", posts)
	}
}

func TestANewerMessageInterrupts(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, mode: interrupt"})
	first := h.mention("book a table for two")
	asked := h.ask()
	second := h.said("<@U0BOT> no, for three")
	second.ThreadTS = first.TS
	h.accept(second.Mention())
	h.hangsUp(asked)
	same(t, h.asks(says("For three.")).messages, []spoken{
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> book a table for two"},
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> no, for three"},
	})
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "For three." {
		t.Errorf("%+v", posts)
	}
}

func TestANewerMessageWaitsItsTurn(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.typed("one")
	first := h.ask()
	h.typed("two")
	h.typed("three")
	h.answer(first, says("First."))
	same(t, h.asks(says("Second.")).messages, []spoken{
		{"user", "[Olivia]: one"}, {"assistant", "First."}, {"user", "[Olivia]: two"},
	})
	h.asks(says("Third."))
	h.awaitReply("Third.")
}

// TestAPassiveMessageIsThereAtOnce: it is read while a run is going, and is
// context of the turn after it.
func TestAPassiveMessageIsThereAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.typed("are we still on?")
	first := h.ask()
	h.typed("it rains, by the way", `"passive":true`)
	if messages := h.thread(); len(messages) != 2 || messages[1].Content != "it rains, by the way" {
		t.Errorf("%+v", messages)
	}
	same(t, first.messages, []spoken{{"user", "[Olivia]: are we still on?"}})
	h.answer(first, says("Yes."))
	h.awaitReply("Yes.")
	h.typed("and tomorrow?")
	same(t, h.asks(says("Yes, too.")).messages, []spoken{
		{"user", "[Olivia]: are we still on?"},
		{"assistant", "Yes."},
		{"system", contextHead + "- Olivia: it rains, by the way"},
		{"user", "[Olivia]: and tomorrow?"},
	})
	messages := h.awaitReply("Yes, too.")
	for i, m := range messages {
		if m.ThreadSeq != int64(i+1) {
			t.Errorf("%+v", messages)
		}
	}
}

func TestMessagesThatFollowQuicklyAreOneTurn(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 1h, coalesce_max: 2h"})
	h.typed("one")
	h.typed("two")
	h.clock.advance(time.Hour)
	same(t, h.asks(says("Both.")).messages, []spoken{{"user", "[Olivia]: one"}, {"user", "[Olivia]: two"}})
	h.awaitReply("Both.")
}

func TestAnEditBeforeTheRunIsWhatTheAgentSees(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 1h, coalesce_max: 2h"})
	m := h.mention("call me at eigth")
	h.accept(edited(m, "<@U0BOT> call me at eight"))
	h.awaitMetric(settled("edit", "updated", "mention"), 1)
	h.clock.advance(time.Hour)
	same(t, h.asks(says("I will.")).messages, []spoken{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> call me at eight"}})
	h.posts(1)
}

func TestAnEditThatAddsAMentionIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.said("what do we sow?")
	h.accept(m.Event())
	h.accept(edited(m, "<@U0BOT> what do we sow?"))
	h.asks(says("Beans."))
	again := m
	again.TS += "1"
	h.accept([]byte(strings.Replace(string(edited(m, "<@U0BOT> what do we sow, and when?")), `"edited":{"user":"U0MARA","ts":"`+m.TS, `"edited":{"user":"U0MARA","ts":"`+again.TS, 1)))
	h.awaitMetric(settled("edit", "updated", ""), 1)
	if posts := h.posts(1); len(posts) != 1 || posts[0].ThreadTS != m.TS {
		t.Errorf("%+v", posts)
	}
}

// TestOneHonestSentence lets the agent fail in every way, as often as it may, and
// then answer the next turn.
func TestOneHonestSentence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		helper string
		reply  func(http.ResponseWriter) // nil: none
		want   string
	}{
		"refuses": {"", fails(http.StatusUnauthorized), "something went wrong"},
		"fails":   {"", fails(http.StatusServiceUnavailable), "something went wrong"},
		"breaks":  {"", breaks, "something went wrong"},
		"hangs":   {"timeout: 300ms", nil, "in time"},
		"floods":  {"max_bytes: 1KiB", says(strings.Repeat("flood", 500)), "something went wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{helper: c.helper, turns: "coalesce: 0s, max_attempts: 2"})
			m := h.mention("are you well?")
			first := h.ask()
			h.fail(first, c.reply)
			h.clock.advance(time.Minute)
			if name != "refuses" { // which no second attempt can mend
				second := h.ask()
				if second.run != first.run || first.run == "" {
					t.Errorf("asked as run %q, then %q", first.run, second.run)
				}
				h.fail(second, c.reply)
			}
			h.awaitMetric(sent, 1)
			if told := h.slack.Ephemerals(); len(told) != 1 || !strings.Contains(told[0].Text, c.want) || told[0].ThreadTS != m.TS || told[0].User != m.User {
				t.Errorf("%+v", told)
			}
			next := h.said("<@U0BOT> better now?")
			next.ThreadTS = m.TS
			h.accept(next.Mention())
			asked := h.asks(says("Much."))
			same(t, asked.messages, []spoken{ // the sentence is no part of the transcript
				{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> are you well?"},
				{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> better now?"},
			})
			if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Much." {
				t.Errorf("%+v", posts)
			}
		})
	}
}

// fail answers with a failure, or lets the agent hang until it is given up.
func (h *house) fail(a *ask, reply func(http.ResponseWriter)) {
	h.t.Helper()
	if reply == nil {
		h.hangsUp(a)
		return
	}
	h.answer(a, reply)
}

func TestAStaleReply(t *testing.T) {
	t.Parallel()
	const outcomes = `parley_runs_total{agent="helper",outcome=`
	t.Run("is sent", func(t *testing.T) {
		t.Parallel()
		h := open(t, plan{})
		h.typed("how many?")
		asked := h.ask()
		h.typed("of the red ones", `"passive":true`)
		h.answer(asked, says("Ten."))
		messages := h.awaitReply("Ten.")
		if base := messages[2].BaseSeq; base == nil || *base != 1 || messages[2].RunID != asked.run {
			t.Errorf("%+v", messages[2])
		}
	})
	t.Run("is asked for again", func(t *testing.T) {
		t.Parallel()
		h := open(t, plan{turns: "coalesce: 0s, stale: rerun"})
		h.typed("how many?")
		asked := h.ask()
		h.typed("of the red ones", `"passive":true`)
		h.answer(asked, says("Ten."))
		again := h.ask()
		same(t, again.messages, []spoken{{"system", contextHead + "- Olivia: of the red ones"}, {"user", "[Olivia]: how many?"}})
		if again.run != asked.run {
			t.Errorf("asked as run %q, then %q", asked.run, again.run)
		}
		h.answer(again, says("Four."))
		if messages := h.awaitReply("Four."); len(messages) != 3 {
			t.Errorf("%+v", messages)
		}
	})
	t.Run("is dropped", func(t *testing.T) {
		t.Parallel()
		h := open(t, plan{turns: "coalesce: 0s, stale: drop"})
		h.typed("how many?")
		asked := h.ask()
		h.typed("never mind, I have counted", `"passive":true`)
		h.answer(asked, says("Ten."))
		h.awaitMetric(outcomes+`"dropped"}`, 1)
		h.typed("and the beans?")
		h.asks(says("Twelve."))
		if messages := h.awaitReply("Twelve."); len(messages) != 4 {
			t.Errorf("%+v", messages)
		}
	})
}
