package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// TestCommandTexts checks which messages are commands: exactly the prefix and the word, beside
// what addresses us.
func TestCommandTexts(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		change func(g *gate, m *event.Message)
		want   record.Command
	}{
		"alone":                      {"/stop", nil, "stop"},
		"after a mention":            {"<@U0BOT> /new\n", nil, "new"},
		"before a mention":           {" /status <@U0BOT>", nil, "status"},
		"after the word that called": {"hey Parley, /stop", func(_ *gate, m *event.Message) { m.Called = "hey parley" }, "stop"},
		"after @ and that word":      {"@parley /stop", func(_ *gate, m *event.Message) { m.Called = "Parley" }, "stop"},
		"schedules":                  {"<@U0BOT> /schedules", nil, "schedules"},
		"a schedule":                 {"/unschedule k3x9q2ab", nil, "unschedule"},
		"no schedule":                {"/unschedule", nil, ""},
		"several":                    {"/unschedule a b", nil, ""},
		"the platform's own with id": {"/x", func(g *gate, m *event.Message) { g.kind, m.Command = event.KindCommand, "unschedule k3x9q2ab" }, "unschedule"},
		"another word":               {"/help", nil, ""},
		"a mode of an agent without": {"/mode ask", nil, ""},
		"a mode":                     {"/mode ask", func(g *gate, _ *event.Message) { g.Chooses = true }, "mode"},
		"a model by its number":      {"<@U0BOT> /Model 2.", func(g *gate, _ *event.Message) { g.Chooses = true }, "model"},
		"the list of modes":          {"/mode", func(g *gate, _ *event.Message) { g.Chooses = true }, "mode"},
		"a sentence about modes":     {"/mode of work", func(g *gate, _ *event.Message) { g.Chooses = true }, ""},
		"no prefix":                  {"stop", nil, ""},
		"more words":                 {"/stop it", nil, ""},
		"words before":               {"please /stop", nil, ""},
		"a capital":                  {"<@U0BOT> /Stop", nil, "stop"},
		"capitals":                   {"/STATUS", nil, "status"},
		"a full stop":                {"<@U0BOT> /stop.", nil, "stop"},
		"marks":                      {"/New!!", nil, "new"},
		"a mark of another script":   {"／停。", nil, ""},
		"a slash of full width":      {"／stop。", nil, "stop"},
		"a mark behind a mention":    {"<@U0BOT>, /stop", nil, "stop"},
		"close to a mention":         {"<@U0BOT>/stop", nil, "stop"},
		"close to the calling word":  {"@parley/Stop", func(_ *gate, m *event.Message) { m.Called = "Parley" }, "stop"},
		"a schedule with a mark":     {"/Unschedule k3x9q2ab.", nil, "unschedule"},
		"the platform's own capital": {"/x", func(g *gate, m *event.Message) { g.kind, m.Command = event.KindCommand, "Stop." }, "stop"},
		"a capital of the own":       {"/parley /Stop.", func(g *gate, _ *event.Message) { g.kind = event.KindCommand }, "stop"},
		"the beginning of a text":    {"/Stop. And then go on", nil, ""},
		"a longer word":              {"/stopped.", nil, ""},
		"a path":                     {"/stop/it", nil, ""},
		"a mark inside":              {"/st.op", nil, ""},
		"marks alone":                {"/...", nil, ""},
		"marks apart":                {"/stop ! ! ! !", nil, "stop"},
		"marks apart and more words": {"/stop . . . . go on", nil, ""},
		"more words than are read":   {"hey parley /stop " + strings.Repeat("it ", 100), func(_ *gate, m *event.Message) { m.Called = "hey parley" }, ""},
		"a mention alone":            {"<@U0BOT>", nil, ""},
		"another prefix":             {"!stop", func(g *gate, _ *event.Message) { g.Prefix = "!" }, "stop"},
		"not the prefix":             {"/stop", func(g *gate, _ *event.Message) { g.Prefix = "!" }, ""},
		"a bot's":                    {"/stop", func(_ *gate, m *event.Message) { m.Metadata.SenderType = event.Bot }, ""},
		"the platform's own":         {"/anything", func(g *gate, m *event.Message) { g.kind, m.Command = event.KindCommand, "stop" }, "stop"},
		"of the platform's own":      {"/parley /stop", func(g *gate, _ *event.Message) { g.kind = event.KindCommand }, "stop"},
		"a question to it":           {"/parley stop", func(g *gate, _ *event.Message) { g.kind = event.KindCommand }, ""},
		"a button":                   {"/stop", func(g *gate, _ *event.Message) { g.kind = event.KindAction }, ""},
	} {
		g, m := defaultGate(), room()
		g.Prefix, m.Content = "/", c.text
		if c.change != nil {
			c.change(&g, m)
		}
		if got := g.command(m); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	long := room()
	long.Content = strings.Repeat("on ", 100_000)
	if got := defaultGate().said(long, maxCommand); got != "on on on" {
		t.Errorf("of a long text, %d bytes are read", len(got))
	}
}

// TestCommandsPassThePolicy checks that a command needs what a run needs.
func TestCommandsPassThePolicy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g *gate, m *event.Message, s *store)
		want   verdict
	}{
		"a mention":  {func(_ *gate, m *event.Message, _ *store) { m.Addressed = event.AddressedMention }, verdict{messages.TriggerNone, "command", "stored"}},
		"no mention": {nil, passively("no-mention")},
		"refused": {func(g *gate, m *event.Message, _ *store) {
			m.Addressed, g.Policy.AllowUsers = event.AddressedMention, []string{}
		}, ignored(event.ReasonUserRefused)},
		"too old": {func(_ *gate, m *event.Message, _ *store) {
			m.Addressed, m.SentAt = event.AddressedMention, arrival.Add(-2*time.Hour)
		}, verdict{messages.TriggerNone, "too-old", "stored"}},
	} {
		g, m, s := defaultGate(), room(), &store{}
		g.Prefix, m.Content = "/", "/stop"
		if c.change != nil {
			c.change(&g, m, s)
		}
		if diff := cmp.Diff(c.want, g.verdict(t, m, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if d := g.decide(m, s); (d.Command == record.CommandStop) != (d.Reason == event.ReasonCommand) {
			t.Errorf("%s: the command is %q", name, d.Command)
		}
	}
}

// TestAnswersToCommands checks what the sender of a command is told, which is posted too.
func TestAnswersToCommands(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Prefix, h.settings.Coalesce, h.settings.CoalesceMax = "/", time.Second, time.Second
		h.work()
		say := func(id, text string) record.Result {
			return h.send(payload{ID: id, Thread: "t", Channel: "C1", Sender: "U1", Text: text, Mention: true})
		}
		for i, c := range []struct{ text, want string }{
			{"/status", "helper has nothing to do here."},
			{"/stop", "There is nothing to stop."},
			{"hi", ""},
			{"/status", "helper has nothing to do here. One message waits for an answer."},
			{"/stop", "Stopped."},
			{"/status", "helper has nothing to do here."},
			{"/new", "I begin anew: from now on I don't see what was said here before."},
		} {
			out := say(string(rune('a'+i)), c.text)
			if out.Told != (c.want != "") || c.want != "" && (out.Trigger != messages.TriggerNone || out.Reason != event.ReasonCommand) {
				t.Errorf("%s: %+v", c.text, out)
			}
			if runs, known := h.Runs(h.Context(), h.results[len(h.results)-1].Envelope); !runs || !known {
				t.Errorf("%s: no answer is expected", c.text)
			}
			if said := contents(h.thread("slack:acme:t")); c.want != "" && said[len(said)-1] != c.want {
				t.Errorf("%s: %q, want %q", c.text, said[len(said)-1], c.want)
			}
		}
	})
}

// TestAStopBeforeTheRunClearsSigns: no run ends for the messages that waited. The end of a run clears its own
// signs, and those of messages that go on waiting stay.
func TestAStopBeforeTheRunClearsSigns(t *testing.T) {
	for name, c := range map[string]struct {
		command record.Command
		state   record.ThreadState
		want    bool
	}{
		"messages wait":         {record.CommandStop, record.ThreadState{Waiting: 2}, true},
		"a run and messages":    {record.CommandStop, record.ThreadState{Run: "r", Waiting: 2}, false},
		"nothing":               {record.CommandStop, record.ThreadState{}, false},
		"their status is asked": {record.CommandStatus, record.ThreadState{Waiting: 2}, false},
	} {
		if got := clears(record.Tell{Command: c.command, State: c.state}); got != c.want {
			t.Errorf("%s: clears signs: %v", name, got)
		}
	}
}

// TestStatus checks the words about an unfinished run.
func TestStatus(t *testing.T) {
	g := defaultGate()
	g.now = func() time.Time { return arrival.Add(90 * time.Second) }
	run := record.ThreadState{Run: "r", Agent: "helper", BegunAt: arrival, Waiting: 2}
	for want, change := range map[string]func(s *record.ThreadState){
		"helper has been working since 14:00:00 UTC (1m30s). 2 messages wait for an answer.":                                                func(*record.ThreadState) {},
		"helper has taken the question, and has been thinking about it since 14:00:00 UTC (1m30s).":                                         func(s *record.ThreadState) { s.Taken, s.Waiting = true, 0 },
		"helper has failed (attempts: 1) and tries again; it has been working since 14:00:00 UTC (1m30s). One message waits for an answer.": func(s *record.ThreadState) { s.Attempts, s.Waiting = 1, 1 },
		"helper waits for others. 2 messages wait for an answer.\n- sources works for helper since 14:00:00 UTC: executing search\n- coder works for helper since 14:00:00 UTC: planning": func(s *record.ThreadState) {
			w := workstreams.Workstream{Agent: "coder", Asker: "helper", LaunchedAt: arrival, Progress: workstreams.Progress{Phase: workstreams.Planning}}
			named := w
			named.Name, named.Progress = "sources", workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search"}
			s.Run, s.Workstreams = "", []workstreams.Workstream{named, w}
		},
		"helper has nothing to do here.\nThe next question gets no answer: the limit of questions is reached. Please ask again later.": func(s *record.ThreadState) {
			*s = record.ThreadState{Spent: &budgets.Budget{Most: 1, Per: time.Hour}}
		},
		"helper has nothing to do here.\nThe next question gets no answer: today's limit of tokens is reached. Please ask again after 1 December, 00:00 (UTC).": func(s *record.ThreadState) {
			*s = record.ThreadState{Spent: &budgets.Budget{Most: 1, Until: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}}
		},
	} {
		s := run
		if change(&s); g.status(s) != want {
			t.Errorf("%q, want %q", g.status(s), want)
		}
	}
	g.pause = &Pause{At: arrival, Until: arrival.Add(time.Hour), Say: "Back at five."}
	if got, want := g.status(record.ThreadState{}), "helper has nothing to do here.\nThe next question gets no answer: "+(&PausedError{*g.pause}).Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestStatusNamesTheLimit: a status names the limit that the next question of its sender would reach, and is itself no question.
func TestStatusNamesTheLimit(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Prefix, h.settings.Limits.RunsPerUser = "/", Rate{Runs: 1, Per: time.Hour}
		h.work()
		for i, c := range []struct{ sender, text, want string }{
			{"U1", "/status", "helper has nothing to do here."},
			{"U1", "hi", "hi"},
			{"U1", "/status", "helper has nothing to do here. One message waits for an answer.\nThe next question gets no answer: the limit of questions is reached. Please ask again later."},
			{"U2", "/status", "helper has nothing to do here. One message waits for an answer."},
		} {
			h.send(payload{ID: string(rune('a' + i)), Thread: "t", Channel: "C1", Sender: c.sender, Text: c.text, Mention: true})
			if said := contents(h.thread("slack:acme:t")); said[len(said)-1] != c.want {
				t.Errorf("%s: %q, want %q", c.text, said[len(said)-1], c.want)
			}
		}
	})
}

// TestScheduled checks the list of a thread's schedules.
func TestScheduled(t *testing.T) {
	g := defaultGate()
	g.Prefix = "!"
	var s record.ThreadState
	if got := g.answer(record.CommandSchedules, s); got != "Nothing is scheduled in this thread." {
		t.Errorf("%q", got)
	}
	s.Schedules = []schedules.Schedule{
		{ID: "a", NextAt: arrival, Plan: schedules.Plan{Timing: schedules.Timing{At: arrival}, Prompt: "water\nthe beds"}},
		{ID: "b", NextAt: arrival, Plan: schedules.Plan{Timing: schedules.Timing{Cron: "0 9 * * *", TimeZone: "Europe/Vienna"}, Prompt: strings.Repeat("x", 100)}},
	}
	day := arrival.UTC().Format("2006-01-02")
	want := "- a, " + day + " 14:00 UTC: water the beds\n- b, " + day + " 15:00 CET (0 9 * * *): " + strings.Repeat("x", 80) + "…\nEnd one with !unschedule and its id."
	if got := strings.ReplaceAll(g.answer(record.CommandSchedules, s), "16:00 CEST", "15:00 CET"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := g.answer(record.CommandUnschedule, s); !strings.Contains(got, "!schedules") {
		t.Errorf("%q", got)
	}
	s.Canceled = true
	if got := g.answer(record.CommandUnschedule, s); got != "It is cancelled." {
		t.Errorf("%q", got)
	}
}

func TestCommandFaults(t *testing.T) {
	for prefix, faulty := range map[string]bool{"/": false, "!": false, "parley:": false, "": true, " ": true, "/ ": true, "a b": true, strings.Repeat("x", 9): true} {
		if faults := (Commands{Prefix: prefix}).Validate(); (len(faults) > 0) != faulty {
			t.Errorf("prefix %q: %v", prefix, faults)
		}
	}
}

// TestChoices checks the answers to the commands for the settings of an agent, and that only approvers choose.
func TestChoices(t *testing.T) {
	g, m := defaultGate(), room()
	g.Chooses, g.Prefix, g.Agent = true, "/", "coder"
	g.Approvers = func(string) []string { return []string{"slack:U9"} }
	modes := []stream.Choice{{Name: "mode", Current: "code", Values: []stream.Option{{ID: "code", Label: "Write code"}, {ID: "ask", Label: "Only ask"}}}}
	for _, c := range []struct {
		command record.Command
		state   record.ThreadState
		want    string
	}{
		{"mode", record.ThreadState{}, "coder has offered no mode in this thread yet. It can do so with its next answer."},
		{"mode", record.ThreadState{Choices: modes}, "The mode is: Write code\n1. Write code\n2. Only ask\nChoose one with /mode and its number."},
		{"mode", record.ThreadState{Choices: modes, Picked: "Only ask"}, "From the next answer on, the mode is: Only ask"},
		{"status", record.ThreadState{Choices: modes}, "coder has nothing to do here.\n- mode: Write code"},
	} {
		if got := g.answer(c.command, c.state); got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
	m.Content = "/mode ask"
	if d := g.obey(m, record.CommandMode); d.Command != "" || d.Tell == nil || d.Tell.Text != notChosenText {
		t.Errorf("a person who is no approver: %+v", d)
	}
	m.Content = "/mode"
	if d := g.obey(m, record.CommandMode); d.Command != record.CommandMode {
		t.Errorf("the list: %+v", d)
	}
	m.Content, m.Metadata.SenderID = "/mode ask", "slack:U9"
	if d := g.obey(m, record.CommandMode); d.Command != record.CommandMode || d.Subject != "ask" {
		t.Errorf("an approver: %+v", d)
	}
}
