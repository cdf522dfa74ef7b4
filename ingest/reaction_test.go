package ingest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
)

// ours makes a stored message one of ours, as a delivered post with that platform id.
func (h *harness) ours(id string) {
	h.Helper()
	h.sql(`INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload, state, platform_id, created_at, due_at, kind)
		SELECT thread, 'r', 0, 'k' || id, 'acme', 'C1', '', '', 'sent', external_id, 0, 0, 'post' FROM messages WHERE external_id = $1`, id)
}

// withReactions runs a test with reactions admitted, and with a message of a user and one
// of ours. U1 and U2 are people, UB is a bot.
func withReactions(t *testing.T, test func(h *harness)) {
	t.Helper()
	inBubble(t, func(h *harness) {
		h.settings.Policy.Reactions = true
		h.names["U1"], h.names["U2"] = adapters.User{DisplayName: "Olivia"}, adapters.User{DisplayName: "Ash"}
		h.names["UB"] = adapters.User{DisplayName: "Hal", IsBot: true}
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			h.Fatal(err)
		}
		h.work()
		h.send(payload{ID: "1", Text: "tomorrow?"})
		h.send(payload{ID: "2", Text: "Yes, at nine."})
		h.ours("2")
		test(h)
	})
}

// react sends a reaction to a message.
func (h *harness) react(id, sender string) record.Result {
	h.Helper()
	return h.send(payload{Kind: event.KindReaction, ID: id, Sender: sender, Revision: sender})
}

// TestAReactionIsAMessage proves that a reaction changes its target, and is a message in
// the sender's own name.
func TestAReactionIsAMessage(t *testing.T) {
	withReactions(t, func(h *harness) {
		got := h.react("2", "U2")
		if got.Disposition != event.Stored || got.Trigger != messages.TriggerRun || got.Reason != event.ReasonReply || got.TurnAt.IsZero() {
			t.Errorf("to our message: %+v, %s at %v", got.Result, got.Trigger, got.TurnAt)
		}
		if got.Message == nil || got.Message.Content != "👍" || got.Message.Author != messages.ByHuman || got.Message.Seq != 3 {
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
			t.Errorf("quoted message: %+v", q)
		}
		if diff := cmp.Diff([]event.Reaction{{Emoji: "👍", SenderID: "slack:U2"}}, h.thread("slack:acme:t")[1].Reactions); diff != "" {
			t.Errorf("on its target: %s", diff)
		}
		if got := h.react("1", "U2"); got.Trigger != messages.TriggerPassive || got.Reason != event.ReasonNoMention {
			t.Errorf("to another message: %+v, %s", got.Result, got.Trigger)
		}
	})
}

// TestAReactionOfTheOwner proves that a reaction has the metadata of its payload, and that the
// owner's is passive as the owner's messages are. The directory has another name.
func TestAReactionOfTheOwner(t *testing.T) {
	for fromMe, want := range map[bool]string{false: event.ReasonFromMe, true: event.ReasonReply} {
		withReactions(t, func(h *harness) {
			h.settings.Policy.FromMe = fromMe
			got := h.send(payload{Kind: event.KindReaction, ID: "2", Sender: "U2", Channel: "C1", FromMe: true})
			if got.Reason != want {
				t.Errorf("with from_me %t: %+v, %s; want %s", fromMe, got.Result, got.Trigger, want)
			}
			var metadata map[string]any
			if err := json.Unmarshal(got.Message.Metadata, &metadata); err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]any{"sender_display_name": "Me", "is_from_me": true, "message_guid": "guid", "channel_external_id": "chat;C1"} {
				if metadata[key] != want {
					t.Errorf("%s is %v, want %v", key, metadata[key], want)
				}
			}
		})
	}
}

// TestAReactionMayTriggerNothing covers reactions that the settings refuse, repeated
// reactions, and senders that may not be people.
func TestAReactionMayTriggerNothing(t *testing.T) {
	for name, c := range map[string]struct {
		set      func(h *harness)
		sender   string
		trigger  messages.Trigger
		reason   string
		messages int // in the thread, afterwards
		applied  bool
	}{
		"by default":             {func(h *harness) { h.settings.Policy.Reactions = false }, "U2", messages.TriggerNone, "", 2, true},
		"ours":                   {nil, "UBOT", messages.TriggerNone, event.ReasonOwnMessage, 2, false},
		"a bot's":                {nil, "UB", messages.TriggerPassive, event.ReasonBotMessage, 3, true},
		"an ignored bot's":       {func(h *harness) { h.settings.Policy.BotMessages = BotsIgnored }, "UB", messages.TriggerNone, event.ReasonBotMessage, 2, false},
		"the loop guard":         {func(h *harness) { bots(h).Runs = 0 }, "UB", messages.TriggerPassive, event.ReasonLoopGuard, 3, true},
		"an allowed bot":         {func(h *harness) { bots(h) }, "UB", messages.TriggerRun, event.ReasonReply, 3, true},
		"an unknown sender's":    {nil, "U9", messages.TriggerPassive, event.ReasonPassive, 3, true},
		"a refused user's":       {func(h *harness) { h.settings.Policy.AllowUsers = []string{"U1"} }, "U2", messages.TriggerNone, event.ReasonUserRefused, 2, false},
		"in a refused channel":   {func(h *harness) { h.settings.Policy.AllowChannels = []string{} }, "U2", messages.TriggerNone, event.ReasonChannelRefused, 2, false},
		"in an open channel":     {func(h *harness) { h.settings.Policy.RequireMention = false }, "U2", messages.TriggerRun, event.ReasonReply, 3, true},
		"without passive memory": {func(h *harness) { h.settings.Policy.PassiveMemory = false }, "U2", messages.TriggerRun, event.ReasonReply, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			withReactions(t, func(h *harness) {
				if c.set != nil {
					c.set(h)
				}
				got := h.react("2", c.sender)
				if got.Trigger != c.trigger || got.Reason != c.reason {
					t.Errorf("%+v, %s; want %s, %s", got.Result, got.Trigger, c.trigger, c.reason)
				}
				messages := h.thread("slack:acme:t")
				if applied := len(messages[1].Reactions) == 1; len(messages) != c.messages || applied != c.applied {
					t.Errorf("%d messages, applied %v; want %d, %v", len(messages), applied, c.messages, c.applied)
				}
				again := h.send(payload{Kind: event.KindReaction, ID: "2", Sender: c.sender, Revision: "repeated"})
				if n := len(h.thread("slack:acme:t")); n != c.messages || !again.TurnAt.IsZero() {
					t.Errorf("repeated: %+v, %d messages", again.Result, n)
				}
			})
		})
	}
}

// bots admits bots, and returns their loop guard.
func bots(h *harness) *LoopGuard {
	h.settings.Policy.BotMessages = BotsRun
	return &h.settings.Policy.LoopGuard
}

// TestAReactionToOthersIsPassive proves this for an open channel, in which every message
// triggers a run.
func TestAReactionToOthersIsPassive(t *testing.T) {
	withReactions(t, func(h *harness) {
		h.settings.Policy.RequireMention = false
		if got := h.react("1", "U2"); got.Trigger != messages.TriggerPassive || got.Reason != event.ReasonNoMention {
			t.Errorf("%+v, %s", got.Result, got.Trigger)
		}
		h.settings.Policy.PassiveMemory = false
		if got := h.react("1", "U1"); got.Disposition != event.Updated || got.Trigger != messages.TriggerNone || len(h.thread("slack:acme:t")) != 3 {
			t.Errorf("without passive memory: %+v, %s", got.Result, got.Trigger)
		}
	})
}

// TestAReactionWaitsForOurIdentity matters because the reaction may be our own.
func TestAReactionWaitsForOurIdentity(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Policy.Reactions = true
		h.work()
		h.send(payload{ID: "1", Text: "hi"})
		id := h.accept(payload{Kind: event.KindReaction, ID: "1", Sender: "UBOT"}).ID
		h.pending(id)
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			t.Fatal(err)
		}
		advance(reviewEvery)
		if got := h.result(id); got.Reason != event.ReasonOwnMessage {
			t.Errorf("%+v", got.Result)
		}
	})
}

// TestAReactionThatNamesItsOwnerDoesNotWait matters because some platforms have no own user id.
func TestAReactionThatNamesItsOwnerDoesNotWait(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Policy.Reactions = true
		h.work()
		h.send(payload{ID: "1", Text: "hi"})
		if got := h.send(payload{Kind: event.KindReaction, ID: "1", Sender: "U2", FromMe: true}); got.Reason != event.ReasonFromMe {
			t.Errorf("%+v", got.Result)
		}
	})
}

// TestAReactionInWords covers messages whose words express a reaction. Without the quoted message, such
// a message is a question like others.
func TestAReactionInWords(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Policy.RequireMention = false
		h.work()
		h.send(payload{ID: "1", Text: "rain tomorrow"})
		h.send(payload{ID: "2", Thread: "elsewhere", Text: "sun today"})
		got := h.send(payload{ID: "3", Text: "Liked “rain”", Quotes: "rain", Sender: "U2"})
		if got.Kind != event.KindReaction || got.Disposition != event.Updated || got.Trigger != messages.TriggerNone || got.Message.ExternalID != "1" {
			t.Errorf("a quotation: %+v, %s", got.Result, got.Trigger)
		}
		if diff := cmp.Diff([]event.Reaction{{Emoji: "👍", SenderID: "slack:U2"}}, h.thread("slack:acme:t")[0].Reactions); diff != "" {
			t.Error(diff)
		}
		for what, p := range map[string]payload{
			"of another thread": {ID: "4", Text: "Liked “sun”", Quotes: "sun"},
			"of a refused user": {ID: "5", Text: "Liked “rain”", Quotes: "rain", Sender: "U3"},
			"of last month":     {ID: "6", Text: "Liked “rain”", Quotes: "rain"},
		} {
			want := record.Result{Kind: event.KindMessage, Trigger: messages.TriggerRun, Result: event.Result{Disposition: event.Stored, Reason: event.ReasonOpen}}
			switch p.ID {
			case "5":
				h.settings.Policy.AllowUsers = []string{"U1"}
				want = record.Result{Kind: event.KindReaction, Trigger: messages.TriggerNone, Result: *event.Ignore(event.ReasonUserRefused)}
			case "6":
				h.sql(`UPDATE messages SET sent_at = $1 WHERE external_id = '1'`, time.Now().Add(-8*24*time.Hour).UnixMilli())
			}
			if got := h.send(p); got.Kind != want.Kind || got.Trigger != want.Trigger || got.Disposition != want.Disposition {
				t.Errorf("%s: %s %+v, %s", what, got.Kind, got.Result, got.Trigger)
			}
			h.settings.Policy.AllowUsers = nil
			h.sql(`UPDATE messages SET sent_at = $1 WHERE external_id = '1'`, time.Now().UnixMilli())
		}
	})
}

func TestEmojiText(t *testing.T) {
	for emoji, want := range map[string]string{
		"tomato": ":tomato:", "+1::skin-tone-2": ":+1::skin-tone-2:", "100": ":100:", "trauben_ä": ":trauben_ä:",
		"👍": "👍", "❤️": "❤️", "1️⃣": "1️⃣", "blob:123456789": ":blob:", "love": ":love:",
	} {
		if got := emojiText(emoji); got != want {
			t.Errorf("%s: %s, want %s", emoji, got, want)
		}
	}
}

// TestEveryKindPassesTheSameGate proves that a sender who may not write may not edit,
// react, command or press a button either, in spite of all other settings.
func TestEveryKindPassesTheSameGate(t *testing.T) {
	kinds := map[string]struct {
		payload payload
		runs    string // the reason for its run if admitted; empty if it triggers none
		passive string // the reason for which it is passive then
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
		refused string // empty if admitted
	}{
		"the default":                 {func(*Policy) {}, "U2", ""},
		"open":                        {func(p *Policy) { p.RequireMention = false }, "U2", ""},
		"no passive memory":           {func(p *Policy) { p.PassiveMemory = false }, "U2", ""},
		"user and channel listed":     {func(p *Policy) { p.AllowUsers, p.AllowChannels = []string{"U2"}, []string{"C1"} }, "U2", ""},
		"other users listed":          {func(p *Policy) { p.AllowUsers = []string{"U1"} }, "U2", event.ReasonUserRefused},
		"empty user list":             {func(p *Policy) { p.AllowUsers = []string{} }, "U2", event.ReasonUserRefused},
		"a list of names":             {func(p *Policy) { p.AllowUsers = []string{"Ash"} }, "U2", event.ReasonUserRefused},
		"other channels":              {func(p *Policy) { p.AllowChannels = []string{"C2"} }, "U2", event.ReasonChannelRefused},
		"empty channel list":          {func(p *Policy) { p.AllowChannels = []string{} }, "U2", event.ReasonChannelRefused},
		"open, other users listed":    {func(p *Policy) { p.RequireMention, p.AllowUsers = false, []string{"U1"} }, "U2", event.ReasonUserRefused},
		"an ignored bot":              {func(p *Policy) { p.BotMessages = BotsIgnored }, "UB", event.ReasonBotMessage},
		"an allowed bot":              {func(p *Policy) { p.BotMessages, p.AllowUsers = BotsRun, []string{"U1"} }, "UB", ""},
		"bots, but not this one":      {func(p *Policy) { p.BotMessages, p.AllowBots = BotsRun, []string{"U2"} }, "UB", event.ReasonBotMessage},
		"bots, none may trigger runs": {func(p *Policy) { p.BotMessages, p.LoopGuard.Runs = BotsRun, 0 }, "UB", event.ReasonLoopGuard},
	}
	for policy, c := range policies {
		t.Run(policy, func(t *testing.T) {
			withReactions(t, func(h *harness) {
				c.set(&h.settings.Policy)
				for kind, k := range kinds {
					k.payload.Sender, k.payload.Bot, k.payload.Text = c.sender, c.sender == "UB", "let me in"
					before := h.thread("slack:acme:t")
					got := h.send(k.payload)
					trigger, reason := messages.TriggerRun, k.runs
					if k.runs == "" {
						trigger, reason = messages.TriggerPassive, k.passive
					}
					switch {
					case c.refused == event.ReasonLoopGuard && k.runs != "":
						trigger, reason = messages.TriggerPassive, c.refused
					case c.refused == event.ReasonLoopGuard:
					case c.refused != "":
						trigger, reason = messages.TriggerNone, c.refused
					}
					if got.Trigger != trigger || got.Reason != reason {
						t.Errorf("%s: %s for %q, want %s for %q", kind, got.Trigger, got.Reason, trigger, reason)
					}
					isRefused := c.refused != "" && c.refused != event.ReasonLoopGuard
					if diff := cmp.Diff(contents(before), contents(h.thread("slack:acme:t"))); isRefused && diff != "" {
						t.Errorf("%s: the thread changed: %s", kind, diff)
					}
				}
			})
		})
	}
}
