package discord

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/ingest/event"
)

// TestManyServersMayTakeLong checks that backfill waits for all servers of a new session while they
// arrive, and for an unavailable one no longer than the limit.
func TestManyServersMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5 * time.Second
		g := newGuilds()
		g.begin(0, event.Self{UserID: "900"}, []discordgo.Guild{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4"}})
		go func() {
			for id := range 3 {
				<-time.After(limit - time.Second)
				g.arrive(fmt.Appendf(nil, `{"id":"%d"}`, id+1), "", true, time.Now())
			}
		}()
		begun := time.Now()
		if others := g.complete(t.Context(), limit); fmt.Sprint(others) != "[4]" {
			t.Errorf("complete returns %q after %v", others, time.Since(begun))
		}
		if waited := time.Since(begun); waited != 3*(limit-time.Second)+limit {
			t.Errorf("complete returns after %v", waited)
		}
	})
}

// failsOnce is a state whose first update fails.
type failsOnce struct {
	*adaptertest.State
	failed bool
}

func (s *failsOnce) Update(ctx context.Context, name string, change func(string) string) error {
	if !s.failed {
		s.failed = true
		return errors.New("the store is locked")
	}
	return s.State.Update(ctx, name, change)
}

// TestDirectMessagesAreRemembered checks that backfill knows a channel of direct messages whose
// first event the store did not take, and one whose first message is a forward from a server.
func TestDirectMessagesAreRemembered(t *testing.T) {
	a, state := New("acme", DefaultConfig()), &failsOnce{State: adaptertest.NewState()}
	a.UseState(state)
	s := a.newShard(0, 1, broken{}, adapters.Link{})
	a.guilds.begin(0, event.Self{UserID: "900"}, nil)
	for _, data := range []string{
		`{"id":"20","channel_id":"12","author":{"id":"30"},"content":"hello"}`,
		`{"id":"20","channel_id":"12","author":{"id":"30"},"content":"hello"}`, // offered again
		`{"id":"21","channel_id":"13","author":{"id":"31"},"message_reference":{"type":1,"guild_id":"1","channel_id":"10","message_id":"19"}}`,
	} {
		_ = s.accepts.noteMessage(t.Context(), parse(event.Envelope{Body: []byte(`{"op":0,"t":"MESSAGE_CREATE","d":` + data + `}`)}))
	}
	if list, err := adapters.GetList[string](t.Context(), state, directName); err != nil || fmt.Sprint(list) != "[12 13]" {
		t.Errorf("the channels are %q, %v", list, err)
	}
}
