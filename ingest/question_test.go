package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// TestPresses checks the right to press a button of a card, and the result of the press for the agent.
func TestPresses(t *testing.T) {
	book := card.Press{ID: runs.CardButton("run-1", 0), Label: "Book", Action: card.Action{ID: "book", Value: []byte(`7`), Approval: true}}
	for name, c := range map[string]struct {
		change func(g *gate, m *event.Message, s *store)
		want   verdict
		action string
		told   string
	}{
		"a press":          {nil, triggers("action"), `{"id":"book","value":7}`, ""},
		"an approver":      {func(g *gate, _ *event.Message, _ *store) { g.Approvers = list("U1") }, triggers("action"), `{"id":"book","value":7}`, ""},
		"no approver":      {func(g *gate, _ *event.Message, _ *store) { g.Approvers = list("U2") }, passively("action"), "", notPressedText},
		"no approval":      {func(g *gate, _ *event.Message, s *store) { g.Approvers, s.press.Action.Approval = list("U2"), false }, triggers("action"), `{"id":"book","value":7}`, ""},
		"a gone button":    {func(_ *gate, m *event.Message, _ *store) { m.Pressed = runs.CardButton("run-2", 0) }, passively("action"), "", goneText},
		"of another agent": {func(g *gate, _ *event.Message, _ *store) { g.Agent = "another" }, passively("action"), "", goneText},
		"a refused user":   {func(g *gate, _ *event.Message, _ *store) { g.Policy.AllowUsers = []string{} }, ignored(event.ReasonUserRefused), "", ""},
		"over a limit":     {func(g *gate, _ *event.Message, _ *store) { g.over = true }, passively("limit"), "", limitText},
		"beside an approval": {func(_ *gate, _ *event.Message, s *store) {
			s.question = &runs.Question{Run: "run-1", Agent: "helper", Ask: stream.Ask{Approval: true}}
		}, passively("no-answer"), "", chooseText},
		"an ordinary message": {func(g *gate, _ *event.Message, _ *store) { g.kind = event.KindMessage }, triggers("mention"), "", ""},
	} {
		g, m, s := defaultGate(), room(), &store{press: book}
		g.Approvers = list()
		g.kind, m.Pressed, m.Content, m.Addressed = event.KindAction, book.ID, "Book", event.AddressedAction
		if c.change != nil {
			c.change(&g, m, s)
		}
		if g.kind == event.KindMessage {
			m.Addressed = event.AddressedMention
		}
		d := g.decide(m, s)
		told := toldBy(d)
		if got := g.verdict(t, m, s); got != c.want || string(d.Action) != c.action || told != c.told || c.action != "" && !strings.Contains(string(d.Metadata), `"action":`+c.action) {
			t.Errorf("%s: %+v, action %s, told %q, %s", name, got, d.Action, told, d.Metadata)
		}
	}
}

// TestAnswers checks who may answer which question, with which words.
func TestAnswers(t *testing.T) {
	options := []stream.Option{{ID: "y", Label: "Yes, do it"}, {ID: "n", Label: "No"}}
	open := func() *runs.Question {
		return &runs.Question{Run: "run-1", Agent: "helper", Ask: stream.Ask{Options: options, Approval: true}}
	}
	numbered := []stream.Option{{ID: "2", Label: "Good"}, {ID: "1", Label: "Poor"}}
	labelled := []stream.Option{{ID: "two", Label: "2"}, {ID: "one", Label: "1"}}
	const button, text = true, false
	for name, c := range map[string]struct {
		pressed bool
		text    string // of the message, or the id of the button
		change  func(g *gate, m *event.Message, q *runs.Question)
		want    verdict
		option  string // "-" for another text
		told    string
	}{
		"a number":                {text, "2", nil, triggers("mention"), "n", ""},
		"a number with a dot":     {text, "<@U0BOT> 1.", nil, triggers("mention"), "y", ""},
		"a label":                 {text, "yes, DO it", nil, triggers("mention"), "y", ""},
		"an id":                   {text, "n", nil, triggers("mention"), "n", ""},
		"a number before an id":   {text, "2", func(_ *gate, _ *event.Message, q *runs.Question) { q.Options = numbered }, triggers("mention"), "1", ""},
		"a label before a number": {text, "1", func(_ *gate, _ *event.Message, q *runs.Question) { q.Options = labelled }, triggers("mention"), "one", ""},
		"other words":             {text, "why?", nil, passively("no-answer"), "", "Please choose one of the answers:\n\n1. Yes, do it\n2. No"},
		"a number out of range":   {text, "3", nil, passively("no-answer"), "", "Please choose one of the answers:\n\n1. Yes, do it\n2. No"},
		"other words to a question that is no approval": {text, "why?", func(_ *gate, _ *event.Message, q *runs.Question) { q.Approval = false }, triggers("mention"), "-", ""},
		"not addressed":              {text, "2", func(_ *gate, m *event.Message, _ *runs.Question) { m.Addressed = "" }, passively("no-mention"), "", ""},
		"refused":                    {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) { g.Policy.AllowUsers = []string{} }, ignored(event.ReasonUserRefused), "", ""},
		"the agent is gone":          {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) { g.Agent = "another" }, triggers("mention"), "", ""},
		"the button of a gone agent": {button, runs.Button("run-1", 1), func(g *gate, _ *event.Message, _ *runs.Question) { g.Agent = "another" }, passively("action"), "", closedText},
		"the agent of another message": {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) {
			g.Agent, g.Asks = "another", func(agent string) bool { return agent == "helper" }
		}, triggers("mention"), "n", ""},
		"a bot": {text, "2", func(g *gate, m *event.Message, _ *runs.Question) {
			g.Policy.BotMessages, m.Metadata.SenderType = BotsRun, event.Bot
		}, passively("no-answer"), "", ""},
		"a bot beside a question that is no approval": {text, "2", func(g *gate, m *event.Message, q *runs.Question) {
			g.Policy.BotMessages, m.Metadata.SenderType, q.Approval = BotsRun, event.Bot, false
		}, triggers("mention"), "", ""},
		"a text message": {text, "2", func(_ *gate, m *event.Message, _ *runs.Question) { m.TextMessage = true }, passively("no-answer"), "", ""},
		"an approver":    {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) { g.Approvers = list("U1") }, triggers("mention"), "n", ""},
		"no approver":    {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) { g.Approvers = list("U2") }, passively("no-answer"), "", notAllowedText},
		"a namesake": {text, "2", func(g *gate, m *event.Message, _ *runs.Question) {
			g.Approvers, m.Metadata.SenderID = list("U1"), "crm:U1"
		}, passively("no-answer"), "", notAllowedText},
		"a namesake of an operator": {text, "2", func(g *gate, m *event.Message, _ *runs.Question) {
			g.API, g.Approvers, m.Metadata.SenderID = true, list("operator:opa"), "crm:operator:opa"
		}, passively("no-answer"), "", notAllowedText},
		"somebody who claims to be an operator": {text, "2", func(g *gate, m *event.Message, _ *runs.Question) {
			g.API, g.Approvers, m.Metadata.SenderID = true, list("operator:opa"), "operator:opa"
		}, passively("no-answer"), "", notAllowedText},
		"an approver with a whole id": {text, "2", func(g *gate, m *event.Message, _ *runs.Question) {
			g.API, g.senders, g.Approvers, m.Metadata.SenderID = true, "web", list("crm:7"), "crm:7"
		}, triggers("mention"), "n", ""},
		"a part of a whole id": {text, "2", func(g *gate, m *event.Message, _ *runs.Question) {
			g.API, g.senders, g.Approvers, m.Metadata.SenderID = true, "web", list("crm:7"), "web:crm:7"
		}, passively("no-answer"), "", notAllowedText},
		"no approvers": {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) { g.Approvers = list() }, triggers("mention"), "n", ""},
		"not an approval": {text, "2", func(g *gate, _ *event.Message, q *runs.Question) {
			g.Approvers, q.Approval = list("U2"), false
		}, triggers("mention"), "n", ""},
		"a button":               {button, runs.Button("run-1", 1), nil, triggers("action"), "n", ""},
		"a button, no approver":  {button, runs.Button("run-1", 1), func(g *gate, _ *event.Message, _ *runs.Question) { g.Approvers = list("U2") }, passively("action"), "", notAllowedText},
		"another run's button":   {button, runs.Button("run-2", 1), nil, passively("action"), "", closedText},
		"a refused user's press": {button, runs.Button("run-1", 1), func(g *gate, _ *event.Message, _ *runs.Question) { g.Policy.AllowUsers = []string{} }, ignored(event.ReasonUserRefused), "", ""},
		"a press over a limit":   {button, runs.Button("run-1", 1), func(g *gate, _ *event.Message, _ *runs.Question) { g.over = true }, passively("limit"), "", limitText},
		"an operator": {button, runs.Button("run-1", 1), func(g *gate, m *event.Message, _ *runs.Question) {
			g.Policy.AllowUsers, g.over, m.Answers = []string{}, true, "run-1"
		}, triggers("action"), "n", ""},
		"an operator in other words":               {text, "why?", byOperator("run-1"), triggers("action"), "-", ""},
		"an operator too late":                     {button, runs.Button("run-0", 1), byOperator("run-0"), ignored(event.ReasonNoAnswer), "", ""},
		"an operator in other words too late":      {text, "why?", byOperator("run-0"), ignored(event.ReasonNoAnswer), "", ""},
		"an operator with a button of another run": {button, runs.Button("run-0", 1), byOperator("run-1"), ignored(event.ReasonNoAnswer), "", ""},
		"an operator to an agent that is gone":     {text, "why?", func(g *gate, m *event.Message, _ *runs.Question) { g.Agent, m.Answers = "another", "run-1" }, ignored(event.ReasonNoAnswer), "", ""},
		"an edit":                                  {text, "2", func(g *gate, _ *event.Message, _ *runs.Question) { g.kind = event.KindEdit }, triggers("mention"), "n", ""},
		"a reaction":                               {text, ":+1:", func(g *gate, _ *event.Message, _ *runs.Question) { g.kind = event.KindReaction }, passively("no-answer"), "", "Please choose one of the answers:\n\n1. Yes, do it\n2. No"},
		"a command":                                {text, "/status", nil, verdict{messages.TriggerNone, "command", "stored"}, "", ""},
	} {
		g, m, q := defaultGate(), room(), open()
		g.Prefix, m.Content, m.Addressed = "/", c.text, event.AddressedMention
		if c.pressed {
			g.kind, m.Pressed, m.Content, m.Addressed = event.KindAction, c.text, "No", event.AddressedAction
		}
		if c.change != nil {
			c.change(&g, m, q)
		}
		d, want := g.decide(m, &store{question: q}), (*runs.Answer)(nil)
		if diff := cmp.Diff(c.want, g.verdict(t, m, &store{question: q})); diff != "" || toldBy(d) != c.told {
			t.Errorf("%s: told %q, verdict (-want +got):\n%s", name, toldBy(d), diff)
		}
		switch c.option {
		case "":
		case "-":
			want = &runs.Answer{Text: m.Content}
		default:
			want = &runs.Answer{Option: c.option, Text: m.Content}
		}
		if diff := cmp.Diff(want, d.Answer); diff != "" {
			t.Errorf("%s: answer (-want +got):\n%s", name, diff)
		}
		if d.Tell != nil && d.Command == "" && d.Tell.Private != c.pressed {
			t.Errorf("%s: the room is told, %v", name, !d.Tell.Private)
		}
	}
}

// toldBy returns the text that a decision tells people; empty for none.
func toldBy(d record.Decision) string {
	if d.Tell == nil {
		return ""
	}
	return d.Tell.Text
}

// byOperator makes a message the answer of an operator to the question of a run.
func byOperator(run string) func(*gate, *event.Message, *runs.Question) {
	return func(_ *gate, m *event.Message, _ *runs.Question) { m.Answers = run }
}

func list(ids ...string) func(string) []string { return func(string) []string { return ids } }

// TestAButtonWithoutAQuestion checks a press after the question was answered: its sender is
// told, without a limit and with one.
func TestAButtonWithoutAQuestion(t *testing.T) {
	for _, limited := range []bool{false, true} {
		inBubble(t, func(h *harness) {
			if limited {
				h.settings.Limits.RunsPerUser = Rate{Runs: 1, Per: time.Hour}
			}
			h.work()
			out := h.send(payload{Kind: event.KindAction, ID: "a", Thread: "t", Channel: "C1", Sender: "U1", Text: "Yes", Pressed: runs.Button("run-1", 0)})
			if out.Trigger != messages.TriggerPassive || out.Reason != event.ReasonAction || !out.Told {
				t.Errorf("%+v", out)
			}
			if diff := cmp.Diff([]string{"Yes", closedText}, contents(h.thread("slack:acme:t"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStopClosesAQuestion checks what its sender and others are told.
func TestStopClosesAQuestion(t *testing.T) {
	g := defaultGate()
	for asks, want := range map[bool][2]string{
		true:  {"Stopped.", "helper waits for the answer to its question."},
		false: {"There is nothing to stop.", "helper has nothing to do here."},
	} {
		state := record.ThreadState{Asks: asks}
		if got := [2]string{g.answer(record.CommandStop, state), g.answer(record.CommandStatus, state)}; got != want {
			t.Errorf("%+v: %q", state, got)
		}
	}
}

// TestAQuestionExpires checks that the whole thread is told, and the agent.
func TestAQuestionExpires(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.send(payload{ID: "a", Thread: "t", Channel: "C1", Sender: "U1", Text: "hi"})
		h.sql(`INSERT INTO questions (run, thread, agent, state, body, asked_at, until_at)
			SELECT 'run-1', id, 'helper', 'open', '{}', 0, 1 FROM threads`)
		advance(reviewEvery + time.Second)
		if diff := cmp.Diff([]string{"hi", expiredText}, contents(h.thread("slack:acme:t"))); diff != "" {
			t.Error(diff)
		}
		advance(reviewEvery)
		if diff := cmp.Diff([]string{"helper run-1"}, h.unasked); diff != "" {
			t.Error(diff)
		}
	})
}
