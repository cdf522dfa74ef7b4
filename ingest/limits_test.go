package ingest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/messages"
)

// limitText tells a person that a limit of questions is reached.
var limitText = gate{}.overText()

// TestOver proves that a limit takes only runs away, and stores their messages even without
// passive memory.
func TestOver(t *testing.T) {
	for name, c := range map[string]struct {
		addressed event.Addressed
		change    func(g *gate, m *event.Message)
		want      verdict
		told      bool
	}{
		"a mention":                         {event.AddressedMention, nil, passively("limit"), true},
		"a direct message":                  {event.AddressedDirect, nil, passively("limit"), true},
		"an open channel":                   {"", func(g *gate, _ *event.Message) { g.Policy.RequireMention = false }, passively("limit"), true},
		"a mention, without passive memory": {event.AddressedMention, func(g *gate, _ *event.Message) { g.Policy.PassiveMemory = false }, passively("limit"), true},
		"no mention":                        {"", nil, passively("no-mention"), false},
		"passive":                           {event.AddressedMention, func(_ *gate, m *event.Message) { m.Passive = true }, passively("passive"), false},
		"refused":                           {event.AddressedMention, func(g *gate, _ *event.Message) { g.Policy.AllowUsers = []string{} }, ignored(event.ReasonUserRefused), false},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := defaultGate(), room()
			g.over, m.Addressed = true, c.addressed
			if c.change != nil {
				c.change(&g, m)
			}
			told := toldBy(g.decide(m, &store{}))
			if diff := cmp.Diff(c.want, g.verdict(t, m, &store{})); diff != "" || (told == limitText) != c.told {
				t.Errorf("told: %q, verdict (-want +got):\n%s", told, diff)
			}
		})
	}
}

// TestBudgets proves that the first budget is the sender's own, and that a channel's own limits
// leave the workspace's counters right.
func TestBudgets(t *testing.T) {
	user, all := Rate{Runs: 5, Per: time.Hour}, Rate{Runs: 9, Per: time.Minute}
	of := func(r Rate, channel string) Rate {
		r.Channel = channel
		return r
	}
	none := Rate{Channel: "C1"}
	for name, c := range map[string]struct {
		own, workspace Limits
		want           []budgets.Budget
	}{
		"none": {},
		"of a sender": {Limits{RunsPerUser: user}, Limits{RunsPerUser: user}, []budgets.Budget{
			{Name: " by slack:U1", Most: 5, Per: time.Hour},
		}},
		"of all": {Limits{RunsPerWorkspace: all}, Limits{RunsPerWorkspace: all}, []budgets.Budget{
			{Name: " told slack:U1", Per: time.Minute}, {Name: " all", Most: 9, Per: time.Minute},
		}},
		"of a channel": {Limits{RunsPerUser: of(user, "C1"), RunsPerWorkspace: of(all, "C1")}, Limits{RunsPerUser: user, RunsPerWorkspace: all}, []budgets.Budget{
			{Name: "C1 by slack:U1", Most: 5, Per: time.Hour}, {Name: " by slack:U1", Per: time.Hour},
			{Name: "C1 all", Most: 9, Per: time.Minute}, {Name: " all", Per: time.Minute},
		}},
		"not in this channel": {Limits{RunsPerUser: none, RunsPerWorkspace: none}, Limits{RunsPerUser: user, RunsPerWorkspace: all}, []budgets.Budget{
			{Name: " by slack:U1", Per: time.Hour}, {Name: " all", Per: time.Minute},
		}},
	} {
		got := Settings{Limits: c.own, WorkspaceLimits: c.workspace}.budgets(room(), arrival)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	long := room()
	long.Metadata.SenderID = "slack:" + strings.Repeat("U", 1000)
	if got := (Settings{Limits: Limits{RunsPerUser: user}}).budgets(long, arrival); len(got[0].Name) > 256 {
		t.Errorf("the name of a budget has %d bytes", len(got[0].Name))
	}
}

// TestSendersAreToldOfALimit proves that a person is told once, that a bot is never told, and
// that a platform's fault costs only the post.
func TestSendersAreToldOfALimit(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Limits.RunsPerUser = Rate{Runs: 1, Per: time.Hour}
		h.settings.Policy.BotMessages = BotsRun
		h.work()
		for i, c := range []struct {
			sender, reason string
			told           bool
		}{
			{"U1", "mention", false}, {"U1", "limit", true}, {"U1", "limit", false},
			{"B1", "mention", false}, {"B1", "limit", false},
			{"U2", "mention", false}, {"U2", "limit", false}, // no post of U2's notice can be made
		} {
			if c.sender == "U2" {
				h.mute.Store(true)
			}
			out := h.send(payload{ID: string(rune('a' + i)), Sender: c.sender, Bot: c.sender == "B1", Text: "hi", Mention: true})
			if out.Reason != c.reason || out.Told != c.told {
				t.Errorf("message %d is %+v, told %v; want %+v", i, out.Result, out.Told, c)
			}
		}
		for kind, limited := range map[event.Kind]bool{event.KindMessage: true, event.KindDelete: false} {
			until, err := h.Limited(h.Context(), h.envelope(payload{ID: "next", Kind: kind, Sender: "U1", Text: "hi"}))
			if err != nil || until.IsZero() == limited {
				t.Errorf("the next %s of U1 is limited until %v, %v", kind, until, err)
			}
		}
		want := []string{"hi", "hi", limitText, "hi", "hi", "hi", "hi", "hi", limitText}
		if diff := cmp.Diff(want, contents(h.thread("slack:acme:t"))); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

// TestTokenBudgets proves that the tokens of a sender come before those of all, and that a sender without limits of its own has a counter that
// remembers what it was told.
func TestTokenBudgets(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	until := time.Date(arrival.In(zone).Year(), arrival.In(zone).Month(), arrival.In(zone).Day()+1, 0, 0, 0, 0, zone)
	runs := Limits{RunsPerUser: Rate{Runs: 5, Per: time.Hour}, RunsPerWorkspace: Rate{Runs: 9, Per: time.Hour}}
	own, all := budgets.Budget{Name: "tokens of slack:U1", Most: 10, Until: until}, budgets.Budget{Name: "all tokens", Most: 20, Until: until}
	told := budgets.Budget{Name: " told slack:U1", Until: until}
	for name, c := range map[string]struct {
		limits Limits
		tokens budgets.Tokens
		want   []budgets.Budget
	}{
		"of a sender": {Limits{}, budgets.Tokens{PerUser: 10}, []budgets.Budget{own}},
		"of all":      {Limits{}, budgets.Tokens{PerWorkspace: 20}, []budgets.Budget{told, all}},
		"both":        {Limits{}, budgets.Tokens{PerUser: 10, PerWorkspace: 20}, []budgets.Budget{own, all}},
		"and runs": {runs, budgets.Tokens{PerUser: 10, PerWorkspace: 20}, []budgets.Budget{
			{Name: " by slack:U1", Most: 5, Per: time.Hour}, own, {Name: " all", Most: 9, Per: time.Hour}, all,
		}},
	} {
		c.tokens.Zone = zone
		if diff := cmp.Diff(c.want, Settings{Limits: c.limits, WorkspaceLimits: c.limits, Tokens: c.tokens}.budgets(room(), arrival)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestParleysOwnMessagesNeedTokens proves that the run of a schedule is its payer's, and that one that nobody asked for needs the tokens
// of the workspace and tells nobody.
func TestParleysOwnMessagesNeedTokens(t *testing.T) {
	ends := time.Date(2026, 12, 1, 0, 0, 0, 0, time.FixedZone("Europe/Vienna", 3600))
	for name, c := range map[string]struct {
		internal event.Internal
		want     []string
		told     string
	}{
		"of a person":    {event.Internal{Schedule: "s", Cause: "slack:U2"}, []string{"tokens of slack:U2", "all tokens"}, "I was to go on by myself now, but today's limit of tokens is reached. Please ask again after 1 December, 00:00 (Europe/Vienna)."},
		"of nobody":      {event.Internal{Schedule: "s"}, []string{"all tokens"}, ""},
		"a workstream's": {event.Internal{Thread: event.WorkstreamThread("w1"), Runs: true, Cause: "slack:U2"}, nil, ""},
	} {
		g, m := defaultGate(), room()
		g.Tokens = budgets.Tokens{PerUser: 10, PerWorkspace: 20}
		m.Internal = &c.internal
		var names []string
		d := g.decide(m, &store{})
		for _, b := range d.Budgets {
			names = append(names, b.Name)
		}
		if diff := cmp.Diff(c.want, names); diff != "" || d.Trigger != messages.TriggerRun {
			t.Errorf("%s: %s, budgets (-want +got):\n%s", name, d.Trigger, diff)
		}
		if g.over, g.ends = true, ends; c.want == nil {
			continue
		}
		d = g.decide(m, &store{})
		if got := toldBy(d); got != c.told || d.Reason != event.ReasonLimit || d.Trigger != messages.TriggerPassive {
			t.Errorf("%s: %s %s, told %q", name, d.Trigger, d.Reason, got)
		}
	}
}
