package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
)

// TestPausedMessages checks what a pause does to messages of each kind.
func TestPausedMessages(t *testing.T) {
	paused := func(m *event.Message, s *store) (told, runsNow, ignored bool) {
		g := defaultGate()
		g.pause, g.Prefix = &Pause{At: arrival.Add(-time.Hour), Say: "Later."}, "/"
		m.Addressed = event.AddressedMention
		d := g.decide(m, s)
		if d.Trigger != messages.TriggerRun && d.Reason != event.ReasonPaused && d.Command == "" {
			t.Errorf("%+v", d)
		}
		return d.Tell != nil && d.Tell.Text == "Later.", d.Trigger == messages.TriggerRun || d.Command != "", d.Ignore
	}
	for name, c := range map[string]struct {
		change             func(m *event.Message, s *store)
		told, runs, ignore bool
	}{
		"a question":                     {func(*event.Message, *store) {}, true, false, false},
		"another one of the same sender": {func(_ *event.Message, s *store) { s.said = true }, false, false, false},
		"a program's":                    {func(m *event.Message, _ *store) { m.Injected = &event.Injected{} }, false, false, false},
		"a client's run":                 {func(m *event.Message, _ *store) { m.RunID = "run-1" }, false, false, true},
		"a command":                      {func(m *event.Message, _ *store) { m.Content = "/stop" }, false, true, false},
		"an answer to a question": {func(m *event.Message, s *store) {
			s.question = &runs.Question{Run: "r", Agent: "helper"}
		}, false, true, false},
	} {
		m, s := room(), &store{}
		c.change(m, s)
		if told, runsNow, ignored := paused(m, s); told != c.told || runsNow != c.runs || ignored != c.ignore {
			t.Errorf("%s: told %t, runs %t, ignored %t", name, told, runsNow, ignored)
		}
	}
}

// TestPauses checks the scopes of pauses, their end, and that another node learns of them.
func TestPauses(t *testing.T) {
	inBubble(t, func(h *harness) {
		p, other := NewPauses(h.journal.Threads, time.Now), NewPauses(h.journal.Threads, time.Now)
		ctx := h.Context()
		for _, pause := range []Pause{{Scope: "acme:C1", Until: time.Now().Add(time.Hour)}, {Scope: "agent:coder"}, {Scope: "beta", Say: "old"}, {Scope: "beta", Say: "new"}} {
			if err := p.Begin(ctx, pause); err != nil {
				t.Fatal(err)
			}
		}
		go other.Serve(ctx, func(err error) { t.Error(err) })
		time.Sleep(2 * pausesEvery)
		synctest.Wait()
		for _, pauses := range []*Pauses{p, other} {
			for place, want := range map[[4]string]string{
				{"acme", "C1", "", "helper"}: "acme:C1", {"acme", "T9", "C1", "helper"}: "acme:C1", {"acme", "C2", "", "coder"}: "agent:coder",
				{"acme", "C2", "", "helper"}: "", {"beta", "C1", "", "helper"}: "beta", {"acmes", "C1", "", "helper"}: "",
			} {
				got := ""
				if pause := pauses.Of(place[0], place[1], place[2], place[3]); pause != nil {
					got = pause.Scope
				}
				if got != want {
					t.Errorf("%v: %q, want %q", place, got, want)
				}
			}
			if pause := pauses.Of("beta", "", "", ""); pause.Words() != "new" {
				t.Errorf("%+v", pause)
			}
		}
		if ended, err := p.End(ctx, "acme"); ended || err != nil {
			t.Errorf("a scope that is not paused: %t, %v", ended, err)
		}
		time.Sleep(time.Hour)
		if p.Of("acme", "C1", "", "helper") != nil {
			t.Error("a pause outlives its time")
		}
		if ended, err := p.End(ctx, "beta"); !ended || err != nil || len(p.List()) != 1 {
			t.Errorf("%t, %v, %+v", ended, err, p.List())
		}
	})
}
