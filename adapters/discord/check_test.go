package discord_test

import (
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
)

func TestCheckFindsWhatIsMissing(t *testing.T) {
	find := func(found []adapters.Finding, words string) *adapters.Finding {
		for _, f := range found {
			if strings.Contains(f.Words, words) {
				return &f
			}
		}
		return nil
	}
	l := testapp.Prepare(t, discordtest.Options{NoContent: true}, nil)
	l.AddGuild(discordtest.Guild{ID: "700000000000000020", Name: "attic", Denied: 1<<16 | 1<<15})
	found, err := l.Adapter.Check(t.Context(), adapters.Wants{})
	if err != nil {
		t.Fatal(err)
	}
	if f := find(found, "Message Content Intent"); f == nil || !f.Fault {
		t.Errorf("the missing intent: %+v", found)
	}
	if f := find(found, `"attic": Attach Files, Read Message History`); f == nil || f.Fault {
		t.Errorf("the missing permissions: %+v", found)
	}
	if f := find(found, "https://discord.com/oauth2/authorize?client_id="+discordtest.App+"&scope=bot+applications.commands&permissions="); f == nil || f.Fault || !f.Note {
		t.Errorf("the invite link: %+v", found)
	}
	if f := find(found, `"garden"`); f != nil {
		t.Errorf("a server with all permissions: %+v", f)
	}
	public := testapp.Prepare(t, discordtest.Options{Public: true}, nil).Adapter
	for _, anyServer := range []bool{true, false} {
		found, err := public.Check(t.Context(), adapters.Wants{AnyServer: anyServer})
		if warned := find(found, "policy.allow_servers") != nil; err != nil || warned != anyServer {
			t.Errorf("a public bot, any server %v: %+v, %v", anyServer, found, err)
		}
	}
	l.Revoke()
	if found, err := l.Adapter.Check(t.Context(), adapters.Wants{}); err != nil || len(found) != 1 || !found[0].Fault {
		t.Errorf("a revoked token: %+v, %v", found, err)
	}
}

// TestTheStartWarnsOfAPublicBot: anybody may add it to a server of their own. The warning comes once, and not if
// the policy has a list of servers.
func TestTheStartWarnsOfAPublicBot(t *testing.T) {
	for _, c := range []struct {
		public, anyServer bool
		want              int
	}{{true, true, 1}, {true, false, 0}, {false, true, 0}} {
		l := testapp.Prepare(t, discordtest.Options{Public: c.public}, nil)
		l.Wants.AnyServer = c.anyServer
		got := 0
		take := func(line string) {
			if strings.Contains(line, "policy.allow_servers") {
				got++
			}
		}
		for range 2 {
			l.Run()
			l.Up()
			for got < c.want {
				select {
				case line := <-l.Warned:
					take(line)
				case <-time.After(2 * time.Minute):
					t.Fatalf("%+v: no warning", c)
				}
			}
			l.Stop()
		}
		for len(l.Warned) > 0 {
			take(<-l.Warned)
		}
		if got != c.want {
			t.Errorf("%+v: %d warnings", c, got)
		}
	}
}
