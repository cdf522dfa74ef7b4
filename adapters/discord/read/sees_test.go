package read_test

import (
	"testing"

	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

// TestSees: the permissions of a user in a channel, and those of the parent of a thread.
func TestSees(t *testing.T) {
	const guild, closed, open, staff, plans, secret, direct, nora = "700000000000000101", "700000000000000102", "700000000000000103", "700000000000000104",
		"700000000000000105", "700000000000000106", "700000000000000107", "700000000000000108"
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.AddGuild(discordtest.Guild{ID: closed})
	l.AddGuild(discordtest.Guild{ID: guild, Everyone: 1024 | 65536})
	l.AddUser(discordtest.User{ID: nora, Username: "Nora"})
	for _, c := range []discordtest.Channel{
		{ID: open, Guild: guild}, {ID: staff, Guild: guild, Only: []string{nora}}, {ID: plans, Guild: guild, Type: discordtest.PublicThread, Parent: staff},
		{ID: secret, Guild: closed}, {ID: direct, Type: discordtest.Direct, User: nora},
	} {
		l.SetChannel(c)
	}
	for _, c := range []struct {
		channel, user string
		want          bool
	}{
		{open, nora, true}, {open, testapp.Mara, true}, {open, "700000000000000199", false}, {staff, nora, true}, {staff, testapp.Mara, false}, {plans, nora, true},
		{plans, testapp.Mara, false}, {secret, nora, false}, {direct, nora, true}, {direct, testapp.Mara, false}, {"x", nora, false}, {open, "x", false},
	} {
		if got, err := l.Adapter.Sees(t.Context(), c.channel, c.user); got != c.want || err != nil {
			t.Errorf("%s sees %s: %v, %v", c.user, c.channel, got, err)
		}
	}
	if got, err := l.Adapter.Sees(t.Context(), "700000000000000198", nora); got || err == nil {
		t.Errorf("an unknown channel: %v, %v", got, err)
	}
}
