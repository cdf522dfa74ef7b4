package send_test

import (
	"errors"
	"testing"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/adapters/discord/memory"
)

// TestOpenDirect checks that direct messages are opened once and are known to backfill, the failures, and the links of
// posts there and in a server.
func TestOpenDirect(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, func(*discord.Config) {})
	l.AddUser(discordtest.User{ID: "700000000000000077", Username: "Uma"})
	channel, err := l.Adapter.OpenDirect(t.Context(), "700000000000000077")
	again, failed := l.Adapter.OpenDirect(t.Context(), "700000000000000077")
	if err != nil || failed != nil || channel != again {
		t.Fatalf("%q %q %v %v", channel, again, err, failed)
	}
	if known, err := memory.DirectChannels(t.Context(), l.State); err != nil || len(known) != 1 || known[0] != channel {
		t.Errorf("%v %v", known, err)
	}
	for _, c := range []struct {
		fault discordtest.Fault
		want  adapters.SendFailure
	}{{discordtest.Fault{Cut: true}, adapters.Unclear}, {discordtest.Fault{Status: 502}, adapters.Unclear}} {
		l.Script(discordtest.OpenDirect, c.fault)
		_, err := l.Adapter.OpenDirect(t.Context(), "700000000000000077")
		if failure, ok := errors.AsType[*adapters.SendError](err); !ok || failure.Failure != c.want {
			t.Errorf("%+v: %v", c.fault, err)
		}
	}
	for in, want := range map[string]string{channel: "@me", testapp.Room: testapp.Garden} {
		for range 2 {
			link := l.Adapter.Link(t.Context(), adapters.Address{Channel: in}, "1267190211223752704")
			if link != "https://discord.com/channels/"+want+"/"+in+"/1267190211223752704" {
				t.Errorf("the link is %q", link)
			}
		}
	}
	if link := l.Adapter.Link(t.Context(), adapters.Address{Channel: "1"}, "1267190211223752704"); link != "" {
		t.Errorf("in an unknown channel: %q", link)
	}
}
