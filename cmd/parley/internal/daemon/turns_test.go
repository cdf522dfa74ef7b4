package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const contextHead = "[Thread context — prior messages in this thread, newest last]\n"

// listed is a message in the list of a thread's messages.
type listed struct {
	ID        string
	SenderID  string `json:"sender_id"`
	ThreadSeq int64  `json:"thread_seq"`
	Role      string
	Kind      string
	Content   string
	Trigger   string
	Reason    string
	Run       *struct {
		ID    string
		State string
		Error string
	}
	RunID     string `json:"run_id"`
	DeletedAt string `json:"deleted_at"`
	BaseSeq   *int64 `json:"base_seq"`
}

// thread reads the web thread.
func (h *harness) thread() []listed {
	h.t.Helper()
	got := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "")
	if got.status != http.StatusOK {
		h.t.Fatalf("%d %s", got.status, got.body)
	}
	return decode[struct{ Messages []listed }](h.t, got.body).Messages
}

// awaitReply reads the web thread until it ends with the reply.
func (h *harness) awaitReply(text string) []listed {
	h.t.Helper()
	for {
		messages := h.thread()
		if last := messages[len(messages)-1]; last.Role == "assistant" && last.Content == text {
			return messages
		}
		if !h.poll() {
			h.t.Fatalf("%+v\n%s", messages, h.log)
		}
	}
}

func TestDeleteCancelsRun(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("what is Tom's salary?")
	asked := h.nextRequest()
	h.accept(deleted(m))
	h.awaitHangup(asked)
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="canceled"}`, 1)
	h.mention("and the weather?")
	h.answerNext(replyWith("Fine."))
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Fine." {
		t.Errorf("%+v", posts)
	}
}

// TestReplyOfTheLastRunIsSent: a run ends while the daemon stops. The daemon sends its
// reply before it has stopped.
func TestReplyOfTheLastRunIsSent(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("are you there?")
	asked := h.nextRequest()
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
	h.answer(asked, replyWith("Yes."))
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v\n%s", err, h.log)
	}
	if posts := h.slack.Posts(); len(posts) != 1 || posts[0].Text != "Yes." {
		t.Errorf("%+v", posts)
	}
}

// TestDeleteOfOneOfTwoMessages of a turn leaves the other one to be answered.
func TestDeleteOfOneOfTwoMessages(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 1h, coalesce_max: 2h"})
	first := h.mention("one")
	second := h.newMessage("<@U0BOT> two")
	second.ThreadTS = first.TS
	h.accept(second.Mention())
	h.awaitMetric(envelopesMetric("message", "stored", "mention"), 2)
	h.clock.advance(2 * time.Hour)
	asked := h.nextRequest()
	h.accept(deleted(first))
	h.awaitMetric(envelopesMetric("delete", "updated", ""), 1)
	h.answer(asked, replyWith("Two."))
	if posts := h.posts(1); posts[0].Text != "Two." {
		t.Errorf("%+v", posts)
	}
}

func TestNewerMessageInterruptsRun(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, mode: interrupt"})
	first := h.mention("book a table for two")
	asked := h.nextRequest()
	second := h.newMessage("<@U0BOT> no, for three")
	second.ThreadTS = first.TS
	h.accept(second.Mention())
	h.awaitHangup(asked)
	same(t, h.answerNext(replyWith("For three.")).messages, []chatMessage{
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> book a table for two"},
		{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> no, for three"},
	})
	if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "For three." {
		t.Errorf("%+v", posts)
	}
}

func TestNewerMessageIsQueued(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.postWeb("one")
	first := h.nextRequest()
	h.postWeb("two")
	h.postWeb("three")
	h.answer(first, replyWith("First."))
	same(t, h.answerNext(replyWith("Second.")).messages, []chatMessage{
		{"user", "[Olivia]: one"}, {"assistant", "First."}, {"user", "[Olivia]: two"},
	})
	h.answerNext(replyWith("Third."))
	h.awaitReply("Third.")
}

// TestPassiveMessageDuringRun: the message is listed during the run, and is in the context of
// the next turn.
func TestPassiveMessageDuringRun(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.postWeb("are we still on?")
	first := h.nextRequest()
	h.postWeb("it rains, by the way", `"passive":true`)
	if messages := h.thread(); len(messages) != 2 || messages[1].Content != "it rains, by the way" {
		t.Errorf("%+v", messages)
	}
	same(t, first.messages, []chatMessage{{"user", "[Olivia]: are we still on?"}})
	h.answer(first, replyWith("Yes."))
	h.awaitReply("Yes.")
	h.postWeb("and tomorrow?")
	same(t, h.answerNext(replyWith("Yes, too.")).messages, []chatMessage{
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

func TestMessagesCoalesce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 1h, coalesce_max: 2h"})
	h.postWeb("one")
	h.postWeb("two")
	h.awaitMetric(strings.Replace(envelopesMetric("message", "stored", "direct"), "acme", "ours", 1), 2) // a slow record is not awaited by its POST
	h.clock.advance(time.Hour)
	same(t, h.answerNext(replyWith("Both.")).messages, []chatMessage{{"user", "[Olivia]: one"}, {"user", "[Olivia]: two"}})
	h.awaitReply("Both.")
}

func TestEditBeforeRun(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 1h, coalesce_max: 2h"})
	m := h.mention("call me at eigth")
	h.accept(edited(m, "<@U0BOT> call me at eight"))
	h.awaitMetric(envelopesMetric("edit", "updated", "mention"), 1)
	h.clock.advance(time.Hour)
	same(t, h.answerNext(replyWith("I will.")).messages, []chatMessage{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> call me at eight"}})
	h.posts(1)
}

func TestEditThatAddsMention(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.newMessage("what do we sow?")
	h.accept(m.Event())
	h.accept(edited(m, "<@U0BOT> what do we sow?"))
	h.answerNext(replyWith("Beans."))
	again := m
	again.TS += "1"
	h.accept([]byte(strings.Replace(string(edited(m, "<@U0BOT> what do we sow, and when?")), `"edited":{"user":"U0MARA","ts":"`+m.TS, `"edited":{"user":"U0MARA","ts":"`+again.TS, 1)))
	h.awaitMetric(envelopesMetric("edit", "updated", ""), 1)
	if posts := h.posts(1); len(posts) != 1 || posts[0].ThreadTS != m.TS {
		t.Errorf("%+v", posts)
	}
}

// TestFailureNotice lets every attempt of a run fail in the same way, and then answers the
// next turn.
func TestFailureNotice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		helper string
		reply  func(http.ResponseWriter) // nil for no answer
		want   string
	}{
		"refuses": {"", failWith(http.StatusUnauthorized), "something went wrong"},
		"fails":   {"", failWith(http.StatusServiceUnavailable), "something went wrong"},
		"breaks":  {"", breakStream, "something went wrong"},
		"hangs":   {"timeout: 2s", nil, "in time"},
		"floods":  {"max_bytes: 1KiB", replyWith(strings.Repeat("flood", 500)), "my answer became too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{helper: c.helper, turns: "coalesce: 0s, max_attempts: 2"})
			m := h.mention("are you well?")
			first := h.nextRequest()
			h.fail(first, c.reply)
			h.clock.advance(time.Minute)
			if name != "refuses" { // has no second attempt
				second := h.nextRequest()
				if second.run != first.run || first.run == "" {
					t.Errorf("asked as run %q, then %q", first.run, second.run)
				}
				h.fail(second, c.reply)
			}
			h.awaitMetric(sent, 1)
			if told := h.slack.Ephemerals(); len(told) != 1 || !strings.Contains(told[0].Text, c.want) || told[0].ThreadTS != "" || told[0].User != m.User {
				t.Errorf("%+v", told)
			}
			next := h.newMessage("<@U0BOT> better now?")
			next.ThreadTS = m.TS
			h.accept(next.Mention())
			asked := h.answerNext(replyWith("Much."))
			same(t, asked.messages, []chatMessage{ // the notice is no part of the transcript
				{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> are you well?"},
				{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> better now?"},
			})
			if posts := h.posts(1); len(posts) != 1 || posts[0].Text != "Much." {
				t.Errorf("%+v", posts)
			}
		})
	}
}

// fail sends a failure, or waits until the daemon gives up the request.
func (h *harness) fail(a *modelRequest, reply func(http.ResponseWriter)) {
	h.t.Helper()
	if reply == nil {
		h.awaitHangup(a)
		return
	}
	h.answer(a, reply)
}

func TestStaleReply(t *testing.T) {
	t.Parallel()
	const outcomes = `parley_runs_total{agent="helper",outcome=`
	t.Run("is sent", func(t *testing.T) {
		t.Parallel()
		h := open(t, plan{})
		h.postWeb("how many?")
		asked := h.nextRequest()
		h.postWeb("of the red ones", `"passive":true`)
		h.answer(asked, replyWith("Ten."))
		messages := h.awaitReply("Ten.")
		if base := messages[2].BaseSeq; base == nil || *base != 1 || messages[2].RunID != asked.run {
			t.Errorf("%+v", messages[2])
		}
	})
	t.Run("is asked for again", func(t *testing.T) {
		t.Parallel()
		h := open(t, plan{turns: "coalesce: 0s, stale: rerun"})
		h.postWeb("how many?")
		asked := h.nextRequest()
		h.postWeb("of the red ones", `"passive":true`)
		h.answer(asked, replyWith("Ten."))
		again := h.nextRequest()
		same(t, again.messages, []chatMessage{{"system", contextHead + "- Olivia: of the red ones"}, {"user", "[Olivia]: how many?"}})
		if again.run != asked.run {
			t.Errorf("asked as run %q, then %q", asked.run, again.run)
		}
		h.answer(again, replyWith("Four."))
		if messages := h.awaitReply("Four."); len(messages) != 3 {
			t.Errorf("%+v", messages)
		}
	})
	t.Run("is dropped", func(t *testing.T) {
		t.Parallel()
		h := open(t, plan{turns: "coalesce: 0s, stale: drop"})
		h.postWeb("how many?")
		asked := h.nextRequest()
		h.postWeb("never mind, I have counted", `"passive":true`)
		h.answer(asked, replyWith("Ten."))
		h.awaitMetric(outcomes+`"dropped"}`, 1)
		h.postWeb("and the beans?")
		h.answerNext(replyWith("Twelve."))
		if messages := h.awaitReply("Twelve."); len(messages) != 4 {
			t.Errorf("%+v", messages)
		}
	})
}
