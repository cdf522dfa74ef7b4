package memory

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/ingest/event"
)

// TestManyServersMayTakeLong checks that backfill waits for all servers of a new session while they
// arrive, and for an unavailable one no longer than the limit.
func TestManyServersMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5 * time.Second
		g := newServers()
		g.Begin(0, event.Self{UserID: "900"}, []discordgo.Guild{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4"}})
		go func() {
			for id := range 3 {
				<-time.After(limit - time.Second)
				g.Arrive(fmt.Appendf(nil, `{"id":"%d"}`, id+1), "", true, time.Now())
			}
		}()
		begun := time.Now()
		if others := g.Complete(t.Context(), limit); fmt.Sprint(others) != "[4]" {
			t.Errorf("complete returns %q after %v", others, time.Since(begun))
		}
		if waited := time.Since(begun); waited != 3*(limit-time.Second)+limit {
			t.Errorf("complete returns after %v", waited)
		}
	})
}
