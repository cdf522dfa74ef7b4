package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestPause: while a channel is paused its messages are context, an asker is told once, commands go on, and posts of programs are
// refused. A pause outlives the daemon, and ends with its own scope alone. Both stores are tried.
func TestPause(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(testing.TB) string{"sqlite": func(testing.TB) string { return "" }, "postgres": postgrestest.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{store: store(t)})
			h.awaitState("acme", "up")
			pause := func(n operator.NewPause) operator.Paused {
				t.Helper()
				made, err := h.operate().Pause(h.ctx, n)
				if err != nil {
					t.Fatal(err)
				}
				return made
			}
			m := h.mention("before")
			working := h.nextRequest()
			if made := pause(operator.NewPause{Scope: "acme:" + room, Say: "Back at four.", For: "2h"}); made.Until.IsZero() || made.Stopped != 0 {
				t.Errorf("%+v", made)
			}
			h.answer(working, replyWith("Yes.")) // it works on
			h.awaitVisible(m, "the answer", func(texts []string) bool { return len(texts) == 1 && texts[0] == "Yes." })

			below := func(text string) {
				reply := h.newMessage("<@" + slacktest.BotUser + "> " + text)
				reply.ThreadTS = m.TS
				h.accept(reply.Mention())
			}
			below("one")
			below("two")
			h.awaitMetric(`parley_envelopes_total{disposition="stored",kind="message",reason="paused",workspace="acme"}`, 2)
			below("/status")
			for len(h.slack.Ephemerals()) < 2 {
				if !h.poll() {
					t.Fatalf("told: %+v\n%s", h.slack.Ephemerals(), h.log)
				}
			}
			if told := h.slack.Ephemerals(); told[0].Text != "Back at four." || !strings.Contains(told[1].Text, "has nothing to do here") {
				t.Errorf("told: %+v", told)
			}
			_, err := h.operate().Pause(h.ctx, operator.NewPause{Scope: "nowhere"})
			if err == nil || !strings.Contains(err.Error(), "scope") {
				t.Errorf("an unknown scope: %v", err)
			}
			if _, err := h.operate().Resume(h.ctx, "acme"); err == nil {
				t.Error("the workspace is not paused, and is resumed")
			}
			if st := h.status(); len(st.Pauses) != 1 || st.Pauses[0].Scope != "acme:"+room {
				t.Errorf("%+v", st.Pauses)
			}
			pause(operator.NewPause{Scope: "ours"})
			if got := h.web(http.MethodPost, "ours/messages", ownToken, `{"thread_id":"`+thread+`","content":"hello"}`); got.status != http.StatusAccepted || !strings.Contains(got.body, `"reason":"paused"`) {
				t.Errorf("%d %s", got.status, got.body)
			}
			const run = `{"threadId":"6ba7b810-9dad-41d1-80b4-00c04fd43099","runId":"run-paused","state":{},"forwardedProps":{},"messages":[{"id":"m","role":"user","content":"hi"}],"tools":[],"context":[]}`
			if got := h.request(http.MethodPost, runsPath, ownToken, "application/json", run); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "paused") {
				t.Errorf("a run: %d %s", got.status, got.body)
			}

			h.restart(func() {
				client := h.alone()
				if _, err := client.Resume(h.ctx, "ours"); err != nil {
					t.Fatal(err)
				}
				_ = client.Close()
			})
			h.awaitState("acme", "up")
			if got := h.request(http.MethodPost, runsPath, ownToken, "application/json", run); got.status != http.StatusAccepted {
				t.Errorf("the same run after the pause: %d %s", got.status, got.body)
			}
			h.answerNext(replyWith("Hi."))
			if st := h.status(); len(st.Pauses) != 1 {
				t.Errorf("after a restart: %+v", st.Pauses)
			}
			if _, err := h.operate().Resume(h.ctx, "acme:"+room); err != nil {
				t.Fatal(err)
			}
			below("three")
			request := h.answerNext(replyWith("At last."))
			if all := request.messages; !strings.Contains(all[len(all)-2].Content+all[len(all)-1].Content, "two") || !strings.HasSuffix(all[len(all)-1].Content, "three") {
				t.Errorf("the agent reads %q", all)
			}
			h.awaitVisible(m, "the answer after the pause", func(texts []string) bool { return len(texts) == 2 && texts[1] == "At last." })
		})
	}
}

// TestPauseNow stops the runs that work in the scope, and no other.
func TestPauseNow(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.awaitState("acme", "up")
	h.mention("think")
	request := h.nextRequest()
	if made, err := h.operate().Pause(h.ctx, operator.NewPause{Scope: "agent:echo", Now: true}); err != nil || made.Stopped != 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	if made, err := h.operate().Pause(h.ctx, operator.NewPause{Scope: "agent:helper", Now: true}); err != nil || made.Stopped != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	h.awaitHangup(request)
}

// TestAPausedAgentGetsNoWorkstream, although the run that launches it works on.
func TestAPausedAgentGetsNoWorkstream(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.mention("who is right?")
	asked := <-h.inputs
	if _, err := h.operate().Pause(h.ctx, operator.NewPause{Scope: "agent:echo"}); err != nil {
		t.Fatal(err)
	}
	const task = `{"task":"Look it up.","agent":"echo"}`
	if got := h.call(http.MethodPost, "/runs/"+asked.RunID+"/workstreams", task, http.StatusBadRequest); !strings.Contains(got, "echo is paused by an operator") {
		t.Errorf("%s", got)
	}
	if _, err := h.operate().Resume(h.ctx, "agent:echo"); err != nil {
		t.Fatal(err)
	}
	h.launch(asked.RunID, task)
	h.reply(asked.RunID, "I have asked echo.")
}
