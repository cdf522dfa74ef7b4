package daemon_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/adapters/discord/discordtest"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/schedule"
)

// schedule returns a schedule with its last tick, as an operator sees it.
func (h *harness) schedule(id string) operator.Schedule {
	h.t.Helper()
	list, err := h.operate().Schedules(h.ctx, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range list.Items {
		if s.ID == id {
			return s
		}
	}
	h.t.Fatalf("there is no schedule %s: %+v", id, list.Items)
	return operator.Schedule{}
}

// changeSchedule changes a schedule of acme as an operator.
func (h *harness) changeSchedule(id, change string) operator.Schedule {
	h.t.Helper()
	s, err := h.operate().ChangeSchedule(h.ctx, "acme", id, change, "a test")
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// awaitResult waits until the last tick of a schedule has a result.
func (h *harness) awaitResult(id, result string) operator.Schedule {
	h.t.Helper()
	for {
		s := h.schedule(id)
		if string(s.LastResult) == result {
			return s
		}
		if !h.poll() {
			h.t.Fatalf("%+v\n%s%s", s, h.state(), h.log)
		}
	}
}

const twoSchedules = `schedules:
  - {id: morning, cron: 0 9 * * 1-5, time_zone: Europe/Vienna, to: {channel: ` + room + `}, prompt: "does it rain?"}
  - {id: beds, cron: 0 9 * * 1-5, to: {channel: ` + room + `}, prompt: "which beds?", thread: same}
`

// TestSchedulesOnSlack: each answer of a schedule is a post at the top of its channel, or a reply to its first one. Who
// replies needs no mention, and the agent sees what was said. Silence and a failure post nothing.
func TestSchedulesOnSlack(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: twoSchedules, turns: "coalesce: 0s, max_attempts: 1"})
	if s := h.schedule("morning"); s.NextAt == nil || s.LastAt != nil || s.Paused || s.LastResult != "" {
		t.Errorf("%+v", s)
	}
	h.changeSchedule("morning", "run")
	asked := h.answerNext(replyWith("**Rain** today"))
	same(t, strings.TrimSpace(asked.text()), "user: [[Schedule morning]]: does it rain?")
	posts := h.posts(1)
	if posts[0].ThreadTS != "" || !strings.Contains(posts[0].Text+posts[0].Markdown, "Rain") {
		t.Fatalf("%+v", posts)
	}
	same(t, h.awaitResult("morning", "posted").LastRun != "", true)
	if sent, err := h.operate().Delivery(h.ctx, 1); err != nil || sent.Link == "" {
		t.Errorf("%v %+v", err, sent)
	}
	m := h.newMessage("how much?")
	h.accept(inner(`{"type":"message","user":"` + mara + `","ts":"` + m.TS + `","text":"how much?","thread_ts":"` + posts[0].TS + `",
		"parent_user_id":"` + slacktest.BotUser + `","channel":"` + room + `","channel_type":"channel"}`))
	asked = h.answerNext(replyWith("Ten."))
	if !strings.Contains(asked.text(), "**Rain** today") || strings.Contains(asked.text(), "does it rain?") {
		t.Errorf("the agent does not see the post: %s", asked.text())
	}
	same(t, h.posts(2)[1].ThreadTS, posts[0].TS)

	h.changeSchedule("morning", "run")
	asked = h.nextRequest()
	same(t, strings.TrimSpace(asked.text()), "user: [[Schedule morning]]: does it rain?") // a thread of its own
	if _, err := h.operate().ChangeSchedule(h.ctx, "acme", "morning", "run", ""); err == nil || !strings.Contains(err.Error(), "still works") {
		t.Errorf("while it works: %v", err)
	}
	h.answer(asked, replyWith("NO_REPLY"))
	h.awaitResult("morning", "quiet")
	h.changeSchedule("morning", "run")
	h.answerNext(func(w http.ResponseWriter) { http.Error(w, "no such key", http.StatusUnauthorized) })
	failed := h.awaitResult("morning", "failed")
	if failed.LastError == "" || h.status().Schedules != (operator.ScheduleCounts{Total: 2, Failed: 1}) {
		t.Errorf("%+v %+v", failed, h.status())
	}
	runs, err := h.operate().Runs(h.ctx, map[string][]string{"failed": {"true"}})
	if err != nil || len(runs.Items) != 1 || runs.Items[0].ID != failed.LastRun {
		t.Errorf("%v %+v", err, runs)
	}
	same(t, len(h.posts(2)), 2)

	h.changeSchedule("beds", "run")
	h.answerNext(replyWith("Bed 2."))
	first := h.posts(3)[2]
	same(t, first.ThreadTS, "")
	h.awaitResult("beds", "posted")
	h.changeSchedule("beds", "run")
	asked = h.answerNext(replyWith("Bed 3."))
	if !strings.Contains(asked.text(), "Bed 2.") || !strings.HasSuffix(strings.TrimSpace(asked.text()), "user: [[Schedule beds]]: which beds?") {
		t.Errorf("the agent does not see its answer before: %s", asked.text())
	}
	same(t, h.posts(4)[3].ThreadTS, first.TS)
	h.awaitMetric(`parley_schedule_ticks_total{result="posted",workspace="acme"}`, 3)
	h.awaitMetric(`parley_schedule_ticks_total{result="quiet",workspace="acme"}`, 1)
	h.awaitMetric(`parley_schedule_ticks_total{result="failed",workspace="acme"}`, 1)
}

// TestSchedulesSurviveReloads: a tick runs at its time after a reload and a restart. A paused one does not, and a removed
// one is gone.
func TestSchedulesSurviveReloads(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: twoSchedules})
	if s := h.changeSchedule("beds", "pause"); !s.Paused || s.NextAt != nil {
		t.Errorf("%+v", s)
	}
	next := *h.schedule("morning").NextAt
	h.restart()
	if s := h.schedule("beds"); !s.Paused {
		t.Errorf("%+v", s)
	}
	same(t, *h.schedule("morning").NextAt, next)
	h.clock.advance(next.Add(10 * time.Second).Sub(h.clock.now()))
	asked := h.answerNext(replyWith("Rain."))
	if !strings.Contains(asked.text(), "does it rain?") {
		t.Errorf("%s", asked.text())
	}
	same(t, *h.awaitResult("morning", "posted").LastAt, next)
	if s := h.changeSchedule("beds", "resume"); s.Paused || s.NextAt == nil || !s.NextAt.After(h.clock.now()) {
		t.Errorf("%+v", s)
	}
	plan{dir: h.dir, acme: strings.Replace(twoSchedules, "thread: same", "paused: true", 1)}.write(t, h.places)
	<-h.daemon.Reload()
	if s := h.schedule("beds"); !s.Paused {
		t.Errorf("%+v", s)
	}
	if _, err := h.operate().ChangeSchedule(h.ctx, "acme", "beds", "resume", ""); err == nil || !strings.Contains(err.Error(), "paused in the file") {
		t.Errorf("%v", err)
	}
	plan{dir: h.dir}.write(t, h.places)
	<-h.daemon.Reload()
	if list, err := h.operate().Schedules(h.ctx, nil); err != nil || len(list.Items) != 0 {
		t.Errorf("%v %+v", err, list)
	}
}

// threadOf returns the UUID of the thread with a key.
func (h *harness) threadOf(key string) string {
	h.t.Helper()
	list, err := h.operate().Threads(h.ctx, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, t := range list.Items {
		if string(t.Key) == key {
			return t.ID
		}
	}
	h.t.Fatalf("there is no thread %s: %+v", key, list.Items)
	return ""
}

// TestAgentsScheduleInThreads: an agent's question to itself is asked in its thread, where people list and cancel it.
func TestAgentsScheduleInThreads(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("remind me")
	h.answerNext(replyWith("I will."))
	root := h.posts(1)[0].ThreadTS
	thread := h.threadOf("slack:acme:" + room + ":" + root)
	add := func(prompt string, after time.Duration) schedule.Listed {
		t.Helper()
		made, err := h.daemon.Schedules().Add(context.WithoutCancel(h.ctx), schedule.Entry{Workspace: "acme", Thread: thread, Agent: "helper", Prompt: prompt, At: h.clock.now().Add(after)})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	add("remind Mara", time.Hour)
	other := add("remind Tom", 2*time.Hour)
	say := func(text string) {
		t.Helper()
		m := h.newMessage(text)
		h.accept(inner(`{"type":"app_mention","user":"` + mara + `","ts":"` + m.TS + `","text":"<@` + slacktest.BotUser + `> ` + text + `","thread_ts":"` + root + `","channel":"` + room + `"}`))
	}
	say("/unschedule " + other.ID)
	if told := h.private(1).Text; !strings.Contains(told, "cancelled") {
		t.Errorf("%q", told)
	}
	say("/schedules")
	if told := h.private(2).Text; !strings.Contains(told, "remind Mara") || strings.Contains(told, "Tom") {
		t.Errorf("%q", told)
	}
	h.clock.advance(61 * time.Minute)
	asked := h.answerNext(replyWith("Mara, the beds!"))
	if !strings.Contains(asked.text(), "remind me") || !strings.Contains(asked.text(), "]: remind Mara") {
		t.Errorf("%s", asked.text())
	}
	same(t, h.posts(2)[1].ThreadTS, root)
}

// TestScheduleOfATickIsInTheThreadOfItsAnswer: a message that a model schedules during a schedule's run is listed below the
// answer, and asked there.
func TestScheduleOfATickIsInTheThreadOfItsAnswer(t *testing.T) {
	t.Parallel()
	h := open(t, plan{helper: "tools: {read: thread}", acme: twoSchedules})
	h.changeSchedule("morning", "run")
	at := h.clock.now().Add(time.Hour).UTC().Format(time.RFC3339)
	h.answerNext(callTool("", "schedule_message", `{"prompt":"look again","at":"`+at+`"}`))
	h.answerNext(replyWith("Rain. I look again."))
	answer := h.posts(1)[0]
	h.awaitResult("morning", "posted")
	say := func(text string) {
		t.Helper()
		m := h.newMessage(text)
		h.accept(inner(`{"type":"app_mention","user":"` + mara + `","ts":"` + m.TS + `","text":"<@` + slacktest.BotUser + `> ` + text + `","thread_ts":"` + answer.TS + `","channel":"` + room + `"}`))
	}
	say("thanks")
	h.answerNext(replyWith("Gladly."))
	h.posts(2) // Slack shows a sentence to one person only in a thread with replies
	say("/schedules")
	if told := h.private(1).Text; !strings.Contains(told, "look again") {
		t.Errorf("%q", told)
	}
	h.clock.advance(61 * time.Minute)
	if asked := h.answerNext(replyWith("Dry.")); !strings.Contains(asked.text(), "Rain. I look again.") || !strings.Contains(asked.text(), "]: look again") {
		t.Errorf("%s", asked.text())
	}
	same(t, h.posts(3)[2].ThreadTS, answer.TS)
}

// TestSchedulesInConversations: a person's conversation on Slack, a channel on Discord and a chat of iMessage are one
// thread each. The answer is there, and the agent knows it later. Two schedules of one minute are two runs.
func TestSchedulesInConversations(t *testing.T) {
	t.Parallel()
	const guild, shed, tom = "700000000000000001", "700000000000000002", "700000000000000005"
	fake, err := discordtest.Start(discordtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	fake.AddGuild(discordtest.Guild{ID: guild})
	fake.AddUser(discordtest.User{ID: tom, Username: "Tom"})
	fake.SetChannel(discordtest.Channel{ID: shed, Guild: guild})
	h := open(t, plan{turns: "coalesce: 1s", acme: `schedules: [{id: person, cron: 0 9 * * *, to: {user: ` + mara + `}, prompt: hello}]`, files: map[string]string{"workspaces/guild.yaml": `
id: guild
platform: discord
agent: helper
discord: {token: ` + discordtest.Token + `, api_url: "` + fake.URL() + `", post_rate: 0, preview: off, working: off, commands: false}
turns: {coalesce: 1s}
schedules:
  - {id: rain, cron: 0 9 * * *, to: {channel: "` + shed + `"}, prompt: "rain?"}
  - {id: beds, cron: 0 9 * * *, to: {channel: "` + shed + `"}, prompt: "beds?", thread: same}
`}})
	h.awaitState("guild", "up")
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.changeSchedule("person", "run")
	h.answerNext(replyWith("Good morning."))
	p := h.posts(1)[0]
	same(t, p.Channel, "D"+mara)
	m := slacktest.Message{Channel: p.Channel, User: mara, Text: "and now?", TS: slacktest.Timestamp(h.last.Add(time.Second))}
	h.accept(inner(`{"type":"message","user":"` + mara + `","ts":"` + m.TS + `","text":"and now?","channel":"` + m.Channel + `","channel_type":"im"}`))
	if asked := h.answerNext(replyWith("Work.")); !strings.Contains(asked.text(), "Good morning.") {
		t.Errorf("the agent does not know its answer: %s", asked.text())
	}
	next := *h.schedule("rain").NextAt
	h.clock.advance(next.Add(time.Second).Sub(h.clock.now()))
	seen := map[string]bool{}
	for range 3 { // with that of the person
		asked := h.nextRequest()
		for _, prompt := range []string{"rain?", "beds?", "hello"} {
			if strings.HasSuffix(strings.TrimSpace(asked.text()), "]: "+prompt) {
				seen[prompt] = true
			}
		}
		h.answer(asked, replyWith("Noted."))
	}
	if len(seen) != 3 {
		t.Errorf("the agent was asked %v", seen)
	}
	sent, err := fake.Await(h.ctx, 2)
	if err != nil || sent[0].Channel != shed || sent[1].Channel != shed {
		t.Fatalf("%v %+v", err, sent)
	}
	h.awaitResult("rain", "posted")
	h.awaitResult("beds", "posted")
}
