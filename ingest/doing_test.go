package ingest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// ours makes a stored message one of ours, as a post that the platform knows by
// its id.
func (h *house) ours(id string) {
	h.Helper()
	h.sql(`INSERT INTO deliveries (thread, run, part, key, workspace, channel, root, payload, state, platform_id, created_at, due_at, kind)
		SELECT thread, 'r', 0, 'k' || id, 'acme', 'C1', '', '', 'sent', external_id, 0, 0, 'post' FROM messages WHERE external_id = $1`, id)
}

// reacting is a house where reactions are let through, with a message of
// somebody's and one of ours. U1 and U2 are people, UB is a program.
func reacting(t *testing.T, test func(h *house)) {
	t.Helper()
	inHouse(t, func(h *house) {
		h.settings.Policy.Reactions = true
		h.names["U1"], h.names["U2"] = adapters.User{DisplayName: "Olivia"}, adapters.User{DisplayName: "Ash"}
		h.names["UB"] = adapters.User{DisplayName: "Hal", IsBot: true}
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			h.Fatal(err)
		}
		h.work()
		h.said(payload{ID: "1", Text: "tomorrow?"})
		h.said(payload{ID: "2", Text: "Yes, at nine."})
		h.ours("2")
		test(h)
	})
}

// reacted is a reaction to a message, told once.
func (h *house) reacted(id, sender string) journal.Outcome {
	h.Helper()
	return h.said(payload{Kind: event.KindReaction, ID: id, Sender: sender, Revision: sender})
}

// TestAReactionIsItsSendersDoing: applied to its target, and a message in the
// sender's own name.
func TestAReactionIsItsSendersDoing(t *testing.T) {
	reacting(t, func(h *house) {
		got := h.reacted("2", "U2")
		if got.Disposition != event.Stored || got.Trigger != journal.TriggerRun || got.Reason != event.ReasonReply || got.TurnAt.IsZero() {
			t.Errorf("to ours: %+v, %s at %v", got.Fate, got.Trigger, got.TurnAt)
		}
		if got.Message == nil || got.Message.Content != "👍" || got.Message.Author != journal.ByHuman || got.Message.Seq != 3 {
			t.Fatalf("the message: %+v", got.Message)
		}
		var metadata map[string]any
		if err := json.Unmarshal(got.Message.Metadata, &metadata); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"source": "slack", "sender_id": "slack:U2", "sender_display_name": "Ash", "sender_type": "human", "channel_external_id": "C1",
			"passive": false, "include_in_memory": true, "trigger_rag": true, "recipient_id": "bot:helper",
			"slack_reaction": map[string]any{"emoji": "👍", "message_id": "2"},
		}
		if diff := cmp.Diff(want, metadata); diff != "" {
			t.Error(diff)
		}
		if q := got.Message.Quotes.Quoted; q == nil || q.ExternalID != "2" || q.Content != "Yes, at nine." || q.Name != "U1" {
			t.Errorf("it quotes %+v", q)
		}
		if diff := cmp.Diff([]event.Reaction{{Emoji: "👍", SenderID: "slack:U2"}}, h.thread("slack:acme:t")[1].Reactions); diff != "" {
			t.Errorf("on its target: %s", diff)
		}
		if got := h.reacted("1", "U2"); got.Trigger != journal.TriggerPassive || got.Reason != event.ReasonNoMention {
			t.Errorf("to somebody else's: %+v, %s", got.Fate, got.Trigger)
		}
	})
}

// TestAReactionAsksForNothing where it is not let through, where it is told
// twice, and where nobody can say that a person did it.
func TestAReactionAsksForNothing(t *testing.T) {
	for name, c := range map[string]struct {
		set      func(h *house)
		sender   string
		trigger  journal.Trigger
		reason   string
		messages int // of the thread, afterwards
		applied  bool
	}{
		"by default":            {func(h *house) { h.settings.Policy.Reactions = false }, "U2", journal.TriggerNone, "", 2, true},
		"ours":                  {nil, "UBOT", journal.TriggerNone, event.ReasonOwnMessage, 2, false},
		"a program's":           {nil, "UB", journal.TriggerNone, "", 2, true},
		"the loop guard":        {func(h *house) { bots(h).Runs = 0 }, "UB", journal.TriggerPassive, event.ReasonLoopGuard, 3, true},
		"a program that may":    {func(h *house) { bots(h) }, "UB", journal.TriggerRun, event.ReasonReply, 3, true},
		"of nobody knows whom":  {nil, "U9", journal.TriggerPassive, event.ReasonPassive, 3, true},
		"who is not admitted":   {func(h *house) { h.settings.Policy.AllowUsers = []string{"U1"} }, "U2", journal.TriggerNone, event.ReasonUserRefused, 2, false},
		"where we are not":      {func(h *house) { h.settings.Policy.AllowChannels = []string{} }, "U2", journal.TriggerNone, event.ReasonChannelRefused, 2, false},
		"in an open channel":    {func(h *house) { h.settings.Policy.RequireMention = false }, "U2", journal.TriggerRun, event.ReasonReply, 3, true},
		"where nothing is kept": {func(h *house) { h.settings.Policy.PassiveMemory = false }, "U2", journal.TriggerRun, event.ReasonReply, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			reacting(t, func(h *house) {
				if c.set != nil {
					c.set(h)
				}
				got := h.reacted("2", c.sender)
				if got.Trigger != c.trigger || got.Reason != c.reason {
					t.Errorf("%+v, %s; want %s, %s", got.Fate, got.Trigger, c.trigger, c.reason)
				}
				messages := h.thread("slack:acme:t")
				if applied := len(messages[1].Reactions) == 1; len(messages) != c.messages || applied != c.applied {
					t.Errorf("%d messages, applied %v; want %d, %v", len(messages), applied, c.messages, c.applied)
				}
				again := h.said(payload{Kind: event.KindReaction, ID: "2", Sender: c.sender, Revision: "told anew"})
				if n := len(h.thread("slack:acme:t")); n != c.messages || !again.TurnAt.IsZero() {
					t.Errorf("told anew: %+v, %d messages", again.Fate, n)
				}
			})
		})
	}
}

// bots lets programs in, and returns what bounds them.
func bots(h *house) *LoopGuard {
	h.settings.Policy.AllowBotMessages = true
	return &h.settings.Policy.LoopGuard
}

// TestAReactionToOthersRunsNothingInAnOpenChannel, where every message would.
func TestAReactionToOthersRunsNothingInAnOpenChannel(t *testing.T) {
	reacting(t, func(h *house) {
		h.settings.Policy.RequireMention = false
		if got := h.reacted("1", "U2"); got.Trigger != journal.TriggerPassive || got.Reason != event.ReasonNoMention {
			t.Errorf("%+v, %s", got.Fate, got.Trigger)
		}
		h.settings.Policy.PassiveMemory = false
		if got := h.reacted("1", "U1"); got.Disposition != event.Updated || got.Trigger != journal.TriggerNone || len(h.thread("slack:acme:t")) != 3 {
			t.Errorf("where nothing is kept: %+v, %s", got.Fate, got.Trigger)
		}
	})
}

// TestAReactionWaitsToKnowWhoWeAre: it may be our own.
func TestAReactionWaitsToKnowWhoWeAre(t *testing.T) {
	inHouse(t, func(h *house) {
		h.settings.Policy.Reactions = true
		h.work()
		h.said(payload{ID: "1", Text: "hi"})
		id := h.accept(payload{Kind: event.KindReaction, ID: "1", Sender: "UBOT"}).ID
		h.pending(id)
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			t.Fatal(err)
		}
		pass(reviewEvery)
		if got := h.fate(id); got.Reason != event.ReasonOwnMessage {
			t.Errorf("%+v", got.Fate)
		}
	})
}

func TestAnEmojiIsSpelledAsItIsTyped(t *testing.T) {
	for emoji, want := range map[string]string{
		"tomato": ":tomato:", "+1::skin-tone-2": ":+1::skin-tone-2:", "100": ":100:", "trauben_ä": ":trauben_ä:",
		"👍": "👍", "❤️": "❤️", "1️⃣": "1️⃣", "blob:123456789": ":blob:", "love": ":love:",
	} {
		if got := spelled(emoji); got != want {
			t.Errorf("%s: %s, want %s", emoji, got, want)
		}
	}
}

// TestEveryKindPassesTheSameGate: who may not write may not edit, react, command
// or press either, whatever else is allowed.
func TestEveryKindPassesTheSameGate(t *testing.T) {
	kinds := map[string]struct {
		payload payload
		runs    string // why it runs where it is admitted; empty: it does not
		passive string // why it is passive then
	}{
		"message":  {payload{ID: "9", Mention: true}, event.ReasonMention, ""},
		"edit":     {payload{Kind: event.KindEdit, ID: "1", Revision: "r", Thread: "t", Mention: true}, event.ReasonMention, ""},
		"reaction": {payload{Kind: event.KindReaction, ID: "2"}, event.ReasonReply, ""},
		"command":  {payload{Kind: event.KindCommand, ID: "command-1", Thread: "t"}, event.ReasonCommand, ""},
		"action":   {payload{Kind: event.KindAction, ID: "action-1", Thread: "t"}, "", event.ReasonAction},
	}
	policies := map[string]struct {
		set     func(p *Policy)
		sender  string
		refused string // empty: admitted
	}{
		"the default":             {func(*Policy) {}, "U2", ""},
		"open":                    {func(p *Policy) { p.RequireMention = false }, "U2", ""},
		"forgetful":               {func(p *Policy) { p.PassiveMemory = false }, "U2", ""},
		"listed":                  {func(p *Policy) { p.AllowUsers, p.AllowChannels = []string{"U2"}, []string{"C1"} }, "U2", ""},
		"others are listed":       {func(p *Policy) { p.AllowUsers = []string{"U1"} }, "U2", event.ReasonUserRefused},
		"nobody is listed":        {func(p *Policy) { p.AllowUsers = []string{} }, "U2", event.ReasonUserRefused},
		"names are listed":        {func(p *Policy) { p.AllowUsers = []string{"Ash"} }, "U2", event.ReasonUserRefused},
		"other channels":          {func(p *Policy) { p.AllowChannels = []string{"C2"} }, "U2", event.ReasonChannelRefused},
		"no channels":             {func(p *Policy) { p.AllowChannels = []string{} }, "U2", event.ReasonChannelRefused},
		"open, others are listed": {func(p *Policy) { p.RequireMention, p.AllowUsers = false, []string{"U1"} }, "U2", event.ReasonUserRefused},
		"a program":               {func(*Policy) {}, "UB", event.ReasonBotMessage},
		"a program that may":      {func(p *Policy) { p.AllowBotMessages = true }, "UB", ""},
		"programs, but not this":  {func(p *Policy) { p.AllowBotMessages, p.AllowUsers = true, []string{"U2"} }, "UB", event.ReasonUserRefused},
		"programs, none may run":  {func(p *Policy) { p.AllowBotMessages, p.LoopGuard.Runs = true, 0 }, "UB", event.ReasonLoopGuard},
	}
	for policy, c := range policies {
		t.Run(policy, func(t *testing.T) {
			reacting(t, func(h *house) {
				c.set(&h.settings.Policy)
				for kind, k := range kinds {
					k.payload.Sender, k.payload.Bot, k.payload.Text = c.sender, c.sender == "UB", "let me in"
					before := h.thread("slack:acme:t")
					got := h.said(k.payload)
					trigger, reason := journal.TriggerRun, k.runs
					if k.runs == "" {
						trigger, reason = journal.TriggerPassive, k.passive
					}
					switch {
					case c.refused == event.ReasonLoopGuard && k.runs != "":
						trigger, reason = journal.TriggerPassive, c.refused
					case c.refused == event.ReasonLoopGuard:
					case c.refused == event.ReasonBotMessage && kind == "reaction": // it stands on its target, and says nothing
						trigger, reason = journal.TriggerNone, ""
					case c.refused != "":
						trigger, reason = journal.TriggerNone, c.refused
					}
					if got.Trigger != trigger || got.Reason != reason {
						t.Errorf("%s: %s for %q, want %s for %q", kind, got.Trigger, got.Reason, trigger, reason)
					}
					isRefused := c.refused != "" && c.refused != event.ReasonLoopGuard
					if diff := cmp.Diff(contents(before), contents(h.thread("slack:acme:t"))); isRefused && diff != "" {
						t.Errorf("%s: is kept: %s", kind, diff)
					}
				}
			})
		})
	}
}
