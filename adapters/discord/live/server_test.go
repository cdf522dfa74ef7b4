package live_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/ingest/event"
)

// TestRoleMentionAddressesUs checks the mention of the role that Discord made for the bot.
func TestRoleMentionAddressesUs(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	for role, want := range map[string]event.Addressed{discordtest.BotRole: event.AddressedMention, "900000000000000009": event.AddressedNone} {
		m, _ := l.Say(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Content: "<@&" + role + "> hi", Extra: map[string]any{"mention_roles": []string{role}}})
		l.AwaitTexts(1)
		for len(l.Envelopes()) == 0 || !strings.Contains(string(l.Envelopes()[len(l.Envelopes())-1].Body), m.ID) {
			l.AwaitTexts(len(l.Envelopes()) + 1)
		}
		if got := l.EventOf(m.ID).Message.Addressed; got != want {
			t.Errorf("role %s: %q, want %q", role, got, want)
		}
	}
}

// TestRemovedServerEndsNothingElse checks that a removal from one server, a deleted channel and a
// deleted thread leave the others.
func TestRemovedServerEndsNothingElse(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.AddGuild(discordtest.Guild{ID: "700000000000000020"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000021", Guild: "700000000000000020"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000022", Guild: testapp.Garden})
	l.SetChannel(discordtest.Channel{ID: "700000000000000023", Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
	l.RemoveGuild("700000000000000020")
	l.RemoveChannel("700000000000000022")
	l.RemoveChannel("700000000000000023")
	l.MaraSays(testapp.Room, "hi")
	l.AwaitTexts(1)
	_, err := l.Adapter.Send(t.Context(), l.Post("k1", "700000000000000021", "", "hi"))
	if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.Permanent {
		t.Errorf("a post in a channel that is gone: %v", err)
	}
	l.Send(l.Post("k2", testapp.Room, "", "hi"))
	l.Stop()
	l.Adapter.Client.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	if got, err := l.Adapter.Channels(t.Context()); err != nil || !slices.Equal(got, []string{testapp.Room}) {
		t.Errorf("the channels are %q, %v", got, err)
	}
}
