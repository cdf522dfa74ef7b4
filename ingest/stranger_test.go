package ingest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/strangers"
)

// askingGate is a gate that asks the users among some approvers about strangers.
func askingGate(approvers ...string) gate {
	g := defaultGate()
	g.Policy.AllowUsers, g.Policy.Strangers, g.Prefix = []string{"U7"}, StrangersAsk, "/"
	g.Approvers = func(string) []string { return approvers }
	return g
}

// TestWhoAsks checks which messages make a question to the approvers, by the state of the decision about the person.
func TestWhoAsks(t *testing.T) {
	const asks, waits, no, full, refused = event.ReasonStrangerAsked, event.ReasonStrangerWaits, event.ReasonStrangerNo, event.ReasonStrangersFull, event.ReasonUserRefused
	for name, c := range map[string]struct {
		change func(g *gate, m *event.Message, s *store)
		reason string // empty: the message runs the agent
	}{
		"a mention": {func(*gate, *event.Message, *store) {}, asks},
		"a direct message": {func(_ *gate, m *event.Message, _ *store) {
			m.Addressed, m.Channel.Type = event.AddressedDirect, event.ChannelDirect
		}, asks},
		"a slash command": {func(g *gate, m *event.Message, _ *store) {
			g.kind, m.Addressed = event.KindCommand, event.AddressedCommand
		}, asks},
		"a command":          {func(_ *gate, m *event.Message, _ *store) { m.Content = "/status" }, asks},
		"not for us":         {func(_ *gate, m *event.Message, _ *store) { m.Addressed = event.AddressedNone }, refused},
		"an edit":            {func(g *gate, _ *event.Message, _ *store) { g.kind = event.KindEdit }, refused},
		"a reaction":         {func(g *gate, _ *event.Message, _ *store) { g.kind = event.KindReaction }, refused},
		"too old":            {func(_ *gate, m *event.Message, _ *store) { m.SentAt = arrival.Add(-48 * 3600 * 1e9) }, refused},
		"paused":             {func(g *gate, _ *event.Message, _ *store) { g.pause = &Pause{} }, refused},
		"of unknown kind":    {func(_ *gate, m *event.Message, _ *store) { m.Metadata.SenderType = "" }, refused},
		"a program":          {func(_ *gate, m *event.Message, _ *store) { m.Injected = &event.Injected{} }, refused},
		"by telephone":       {func(g *gate, m *event.Message, _ *store) { g.Policy.SMS, m.TextMessage = SMSRun, true }, refused},
		"a refused channel":  {func(g *gate, _ *event.Message, _ *store) { g.Policy.AllowChannels = []string{"C9"} }, refused},
		"a refused server":   {func(g *gate, _ *event.Message, _ *store) { g.Policy.AllowServers, g.server = []string{"T1"}, "T2" }, event.ReasonServerRefused},
		"the policy ignores": {func(g *gate, _ *event.Message, _ *store) { g.Policy.Strangers = StrangersIgnored }, refused},
		"nobody can be asked": {func(g *gate, _ *event.Message, _ *store) {
			g.Approvers = func(string) []string { return []string{"group:S1", "operator:local"} }
		}, refused},
		"no approvers":  {func(g *gate, _ *event.Message, _ *store) { g.Approvers = func(string) []string { return nil } }, refused},
		"asked already": {func(_ *gate, _ *event.Message, s *store) { s.stranger.State = strangers.Asked }, waits},
		"expired, not yet told": {func(_ *gate, _ *event.Message, s *store) {
			s.stranger.State, s.stranger.DueAt = strangers.Expired, arrival
		}, waits},
		"expired":             {func(_ *gate, _ *event.Message, s *store) { s.stranger.State = strangers.Expired }, asks},
		"refused":             {func(_ *gate, _ *event.Message, s *store) { s.stranger.State = strangers.No }, no},
		"admitted":            {func(_ *gate, _ *event.Message, s *store) { s.stranger.State = strangers.Always }, ""},
		"admitted, in memory": {func(g *gate, _ *event.Message, _ *store) { g.admitted = map[string]bool{"slack:U1": true} }, ""},
		"admitted elsewhere": {func(g *gate, _ *event.Message, _ *store) {
			g.admitted, g.Policy.Strangers = map[string]bool{"slack:U1": true}, StrangersIgnored
		}, refused},
		"once, this message": {func(g *gate, _ *event.Message, s *store) {
			s.envelope, s.stranger.Envelope, s.stranger.State = 7, 7, strangers.Once
		}, ""},
		"once, another message": {func(g *gate, _ *event.Message, s *store) {
			s.envelope, s.stranger.Envelope, s.stranger.State = 8, 7, strangers.Once
		}, asks},
		"once, before its row": {func(_ *gate, _ *event.Message, s *store) { s.stranger.State = strangers.Once }, asks},
		"an edit of the admitted message": {func(g *gate, _ *event.Message, s *store) {
			g.kind, s.envelope, s.stranger.Envelope, s.stranger.State = event.KindEdit, 7, 7, strangers.Once
		}, ""},
		"an edit of another one": {func(g *gate, _ *event.Message, s *store) {
			g.kind, s.envelope, s.stranger.Envelope, s.stranger.State = event.KindEdit, 8, 7, strangers.Once
		}, refused},
		"an edit by an admitted person": {func(g *gate, _ *event.Message, s *store) {
			g.kind, s.stranger.State = event.KindEdit, strangers.Always
		}, ""},
		"once, after the questions ended": {func(g *gate, _ *event.Message, s *store) {
			g.Policy.Strangers, s.envelope, s.stranger.Envelope, s.stranger.State = StrangersIgnored, 7, 7, strangers.Once
		}, ""},
		"always, after the questions ended": {func(g *gate, _ *event.Message, s *store) {
			g.Policy.Strangers, s.envelope, s.stranger.Envelope, s.stranger.State = StrangersIgnored, 7, 7, strangers.Always
		}, ""},
		"no, after the questions ended": {func(g *gate, _ *event.Message, s *store) {
			g.Policy.Strangers, s.envelope, s.stranger.Envelope, s.stranger.State = StrangersIgnored, 7, 7, strangers.No
		}, refused},
		"another message after the questions ended": {func(g *gate, _ *event.Message, s *store) {
			g.Policy.Strangers, s.envelope, s.stranger.Envelope, s.stranger.State = StrangersIgnored, 8, 7, strangers.Always
		}, refused},
		"an edit after the questions ended": {func(g *gate, _ *event.Message, s *store) {
			g.kind, g.Policy.Strangers, s.envelope, s.stranger.Envelope, s.stranger.State = event.KindEdit, StrangersIgnored, 7, 7, strangers.Once
		}, refused},
		"many questions": {func(_ *gate, _ *event.Message, s *store) { s.strangers = maxStrangers }, full},
	} {
		g, m, s := askingGate("U8", "group:S1"), room(), &store{}
		m.Addressed = event.AddressedMention
		c.change(&g, m, s)
		d := g.decide(m, s)
		if got := d.Trigger == messages.TriggerRun; got != (c.reason == "") || c.reason != "" && d.Reason != c.reason {
			t.Errorf("%s: %s %q, want %q", name, d.Trigger, d.Reason, c.reason)
		}
		if told := d.Tell != nil; (d.Asks != nil) != (c.reason == asks) || c.reason != "" && told != (c.reason == asks) {
			t.Errorf("%s: asks %+v, tells %+v", name, d.Asks, d.Tell)
		}
		if d.Asks != nil && fmt.Sprintf("%v %s %s %s", d.Asks.Approvers, d.Asks.SenderID, d.Asks.Name, d.Asks.Agent) != "[U8] slack:U1 Olivia helper" {
			t.Errorf("%s: %+v", name, d.Asks)
		}
	}
}

// TestAdmittedDuringAPause: a message that approvers have admitted once is stored during a pause, like that of anybody else.
func TestAdmittedDuringAPause(t *testing.T) {
	g, m := askingGate("U8"), room()
	g.pause, m.Addressed = &Pause{}, event.AddressedMention
	d := g.decide(m, &store{envelope: 7, stranger: strangers.Stranger{State: strangers.Once, Envelope: 7}})
	if d.Ignore || d.Reason != event.ReasonPaused {
		t.Errorf("%+v", d)
	}
}

// TestQuestionsKeepTheirIDs: a replay of a message and of the press of its button has the same question.
func TestQuestionsKeepTheirIDs(t *testing.T) {
	ids := map[string]bool{}
	for _, change := range []func(m *event.Message){func(*event.Message) {}, func(*event.Message) {}, func(m *event.Message) { m.ExternalID = "C1/2" }, func(m *event.Message) { m.Metadata.SenderID = "slack:U2" }} {
		m := room()
		m.Addressed = event.AddressedMention
		change(m)
		g := askingGate("U8")
		ids[g.decide(m, &store{}).Asks.Question] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d ids of three questions", len(ids))
	}
}

// TestWhoMayPress checks whose presses answer a question about a stranger. Approvers need no place on a list of the policy.
func TestWhoMayPress(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g *gate, m *event.Message, s *store)
		counts bool
	}{
		"an approver":               {func(*gate, *event.Message, *store) {}, true},
		"in a refused channel":      {func(g *gate, _ *event.Message, _ *store) { g.Policy.AllowChannels = []string{} }, true},
		"an admitted person":        {func(_ *gate, m *event.Message, _ *store) { m.Metadata.SenderID = "slack:U7" }, false},
		"the stranger":              {func(_ *gate, m *event.Message, _ *store) { m.Metadata.SenderID = "slack:U1" }, false},
		"a program":                 {func(_ *gate, m *event.Message, _ *store) { m.Injected = &event.Injected{} }, false},
		"a bot":                     {func(_ *gate, m *event.Message, _ *store) { m.Metadata.SenderType = event.Bot }, false},
		"a message, no press":       {func(g *gate, _ *event.Message, _ *store) { g.kind = event.KindMessage }, false},
		"approvers are gone":        {func(g *gate, _ *event.Message, _ *store) { g.Approvers = func(string) []string { return nil } }, false},
		"no button of the question": {func(_ *gate, m *event.Message, _ *store) { m.Pressed = strangerButton("q1", 3) }, false},
		"a question of nobody":      {func(_ *gate, m *event.Message, _ *store) { m.Pressed = strangerButton("q2", 1) }, false},
		"an answered question":      {func(_ *gate, _ *event.Message, s *store) { s.stranger.State = strangers.No }, false},
	} {
		g, m, s := askingGate("U8"), room(), &store{stranger: strangers.Stranger{Question: "q1", State: strangers.Asked, Agent: "helper"}}
		g.kind, m.Metadata.SenderID, m.Pressed, m.Addressed = event.KindAction, "slack:U8", strangerButton("q1", 1), event.AddressedAction
		c.change(&g, m, s)
		d := g.decide(m, s)
		if !d.Ignore || d.Reason != event.ReasonAction || d.Tell != nil {
			t.Errorf("%s: %+v", name, d)
		}
		if counts := d.Decides != nil; counts != c.counts || counts && (d.Decides.State != strangers.Always || d.Decides.By != "slack:U8" || d.Decides.Question != "q1") {
			t.Errorf("%s: %+v", name, d.Decides)
		}
	}
}

// TestAdmittedStrangersAreQuoted: quotations show the words of an admitted stranger.
func TestAdmittedStrangersAreQuoted(t *testing.T) {
	g := askingGate("U8")
	quote := event.Quote{ExternalID: "C1/1", SenderID: "slack:U1", SenderType: event.Human, Content: "words"}
	if !g.quoted(quote, "C1").Hidden {
		t.Error("the words of a stranger are shown")
	}
	g.admitted = map[string]bool{"slack:U1": true}
	if g.quoted(quote, "C1").Hidden {
		t.Error("the words of an admitted stranger are hidden")
	}
}

// TestQuestionsAboutStrangers: the name of a stranger is no markup, and the answer names who gave it.
func TestQuestionsAboutStrangers(t *testing.T) {
	s := strangers.Stranger{SenderID: "slack:U1", Name: " `a` *b*\n<!here> ", State: strangers.Asked, Question: "q1"}
	text, mentions := questionAbout(&s)
	if want := "`'a' *b* <!here>` (`slack:U1`) wants to talk to me. *Once* answers the message that waits, *Always* also each later one, *No* none."; text != want || mentions != nil || len(buttonsOf(&s)) != 3 {
		t.Errorf("%q %q %v", text, mentions, buttonsOf(&s))
	}
	for by, want := range map[string]string{"slack:U8": "`slack:U1` wanted to talk to me. The answer of <@U8>: always.", "operator:mara": "`slack:U1` wanted to talk to me. The answer of `operator:mara`: always."} {
		s := strangers.Stranger{SenderID: "slack:U1", State: strangers.Always, By: by}
		if text, _ := questionAbout(&s); text != want || buttonsOf(&s) != nil {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

// approvers counts the questions that approvers get.
type approvers struct{ asked int }

func (a *approvers) Speak(context.Context, adapters.Speech) (record.Post, bool, error) {
	a.asked++
	return record.Post{}, false, nil
}

func (a *approvers) Close(context.Context, adapters.Speech) error { return nil }

// TestStrangersAreReadWhereTheyMatter: a node reads the strangers if a workspace asks about them or a question is open, and after a reload.
func TestStrangersAreReadWhereTheyMatter(t *testing.T) {
	inBubble(t, func(h *harness) {
		posts := &approvers{}
		h.Ingest.Strangers = NewStrangers(h.journal.Strangers, posts)
		decided := 0
		reads := func() bool {
			h.Helper()
			decided++
			person := fmt.Sprint("slack:U", decided)
			if err := h.journal.Strangers.Decide(h.Context(), "acme", person, "", strangers.Always, "operator:mara"); err != nil {
				h.Fatal(err)
			}
			if err := h.reviewStrangers(h.Context()); err != nil {
				h.Fatal(err)
			}
			return h.Ingest.Strangers.admitted("acme")[person]
		}
		asks := h.workspace("acme")
		asks.AsksAboutStrangers = true
		if first, second := reads(), reads(); !first || second {
			h.Error("without questions, the strangers are not read at the start alone")
		}
		h.configure(asks)
		if first, second := reads(), reads(); !first || !second {
			h.Error("where the policy asks, the strangers are not read each time")
		}
		h.settings = askingGate("U8").Settings
		h.settings.Policy.AllowUsers = []string{}
		defer h.work()()
		h.accept(payload{ID: "C1/1", Thread: "C1", Channel: "C1", Sender: "U99", Mention: true, Text: "hi"})
		synctest.Wait()
		h.configure(h.workspace("acme"))
		if first, second := reads(), reads(); !first || !second || posts.asked != 1 {
			h.Errorf("the strangers are not read while a question is open; asked: %d", posts.asked)
		}
	})
}
