package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestToolsSchedule: a program has the agent of a thread asked later, once by its key, sees what waits, and ends it. A thread has 20
// of them at most.
func TestToolsSchedule(t *testing.T) {
	t.Parallel()
	h := open(t, withDesk(plan{})).echoes()
	h.mention("are we on?")
	h.posts(1)
	id := h.callTool(posterToken, "list_threads", `{"workspace":"acme"}`).Threads[0].ThreadID
	place := `{"workspace":"acme","thread_id":"` + id + `"`
	m := h.newMessage("elsewhere")
	m.Channel = "C0OTHER"
	h.accept(m.Event())
	var other string
	awaitTool(h, func() bool {
		for _, thread := range h.callTool(posterToken, "list_threads", `{"workspace":"acme"}`).Threads {
			if thread.Title == "elsewhere" {
				other = `{"workspace":"acme","thread_id":"` + thread.ThreadID + `"`
			}
		}
		return other != ""
	})
	at := h.clock.now().Add(time.Hour).UTC().Format(time.RFC3339)
	first := h.callTool(posterToken, "schedule_message", place+`,"prompt":"How is the rain?","at":"`+at+`","key":"k"}`)
	if first.fault != "" || first.ID == "" || first.Agent != "helper" || first.NextAt == nil || first.NextAt.Format(time.RFC3339) != at {
		t.Fatalf("%+v", first)
	}
	same(t, h.callTool(posterToken, "schedule_message", place+`,"prompt":"How is the rain?","at":"`+at+`","key":"k"}`).ID, first.ID)
	for n := range 19 {
		if got := h.callTool(posterToken, "schedule_message", place+fmt.Sprintf(`,"prompt":"%d","cron":"0 9 * * 1-5","time_zone":"Europe/Vienna"}`, n)); got.fault != "" {
			t.Fatal(got.fault)
		}
	}
	if got := h.callTool(posterToken, "schedule_message", place+`,"prompt":"one more","cron":"0 9 * * *"}`); !strings.Contains(got.fault, "20 schedules that wait") {
		t.Errorf("%+v", got)
	}
	same(t, len(h.callTool(posterToken, "list_schedules", place+`}`).Schedules), 20)
	same(t, h.callTool(posterToken, "cancel_schedule", place+`,"id":"`+first.ID+`"}`).Canceled, first.ID)
	same(t, len(h.callTool(posterToken, "list_schedules", place+`}`).Schedules), 19)
	for _, c := range []struct{ token, tool, arguments, want string }{
		{posterToken, "cancel_schedule", place + `,"id":"` + first.ID + `"}`, "no such schedule of this thread waits"},
		{posterToken, "schedule_message", place + `,"prompt":"x","at":"2020-01-01T00:00:00Z"}`, "at: must be in the future"},
		{posterToken, "schedule_message", place + `,"prompt":"x"}`, "at: must be given, or cron"},
		{posterToken, "schedule_message", place + `,"prompt":"x","cron":"now"}`, "cron: "},
		{posterToken, "schedule_message", `{"workspace":"acme","prompt":"x","cron":"0 9 * * *"}`, "thread_id: must be a UUID"},
		{posterToken, "schedule_message", place + `,"prompt":"x","at":"tomorrow"}`, "at: must be a time with its zone"},
		{ownToken, "schedule_message", place + `,"prompt":"x","cron":"0 9 * * *"}`, noPost},
		{ownToken, "list_schedules", place + `}`, noThread},
		{ownToken, "cancel_schedule", place + `,"id":"x"}`, noPost},
		{roomToken, "schedule_message", other + `,"prompt":"x","cron":"0 9 * * *"}`, "may not post there"},
		{roomToken, "cancel_schedule", other + `,"id":"x"}`, "may not post there"},
		{posterToken, "list_schedules", `{"workspace":"acme","thread_id":"` + thread + `"}`, noThread},
		{posterToken, "schedule_message", `{"workspace":"acme","thread_id":"` + thread + `","prompt":"x","cron":"0 9 * * *"}`, noThread},
	} {
		if got := h.callTool(c.token, c.tool, c.arguments); !strings.Contains(got.fault, c.want) {
			t.Errorf("%s %s: %+v, want the fault %q", c.tool, c.arguments, got, c.want)
		}
	}
}

// TestRunSchedulesInItsThread: the agent of a run, and a model, schedule in the run's thread without further rights, and in no other.
func TestRunSchedulesInItsThread(t *testing.T) {
	t.Parallel()
	h := openHolder(t, "", withReader)
	h.hears("C0OTHER", "channel", mara, "elsewhere")
	other := h.threadOf("elsewhere")
	h.mention("remind me")
	<-h.runs
	token := <-h.tokens
	made := h.callTool(token, "schedule_message", `{"prompt":"Remind Mara.","cron":"0 9 * * *"}`)
	if made.fault != "" || made.Agent != "helper" {
		t.Fatalf("%+v", made)
	}
	same(t, h.callTool(token, "list_schedules", `{}`).Schedules[0].ID, made.ID)
	for _, call := range []struct{ tool, more string }{{"schedule_message", `,"prompt":"x","cron":"0 9 * * *"`}, {"list_schedules", ""}, {"cancel_schedule", `,"id":"` + made.ID + `"`}} {
		if got := h.callTool(token, call.tool, `{"thread_id":"`+other+`"`+call.more+`}`); got.fault != noThread && !strings.Contains(got.fault, noPost) {
			t.Errorf("%s elsewhere: %+v", call.tool, got)
		}
	}
	same(t, h.callTool(token, "cancel_schedule", `{"id":"`+made.ID+`"}`).Canceled, made.ID)
	same(t, len(h.callTool(token, "list_schedules", `{}`).Schedules), 0)
}

// TestModelSchedules: a model is asked at the time that it has chosen, in the same thread.
func TestModelSchedules(t *testing.T) {
	t.Parallel()
	h := open(t, plan{helper: "tools: {read: thread}"})
	h.mention("remind me in an hour")
	at := h.clock.now().Add(time.Hour).UTC().Format(time.RFC3339)
	h.answerNext(callTool("", "schedule_message", `{"prompt":"Remind Mara of the rain.","at":"`+at+`"}`))
	asked := h.nextRequest()
	if !strings.Contains(asked.last(), `"next_at":"`+at) {
		t.Errorf("%s", asked.last())
	}
	h.answer(asked, replyWith("I will."))
	first := h.posts(1)[0]
	h.clock.advance(time.Hour + time.Minute)
	asked = h.nextRequest()
	if !strings.Contains(asked.last(), "Remind Mara of the rain.") {
		t.Errorf("%s", asked.last())
	}
	h.answer(asked, replyWith("Rain!"))
	if posts := h.posts(2); posts[1].ThreadTS != first.ThreadTS || !strings.Contains(posts[1].Text, "Rain!") {
		t.Errorf("%+v", posts)
	}
}
