package discord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/discord/payload"
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
		_ = s.accepts.noteMessage(t.Context(), payload.Of(event.Envelope{Body: []byte(`{"op":0,"t":"MESSAGE_CREATE","d":` + data + `}`)}))
	}
	if list, err := adapters.GetList[string](t.Context(), state, directName); err != nil || fmt.Sprint(list) != "[12 13]" {
		t.Errorf("the channels are %q, %v", list, err)
	}
}

// TestNamesOfRolesAndChannels: the memory of servers names the roles and channels of the server of the
// message, except a channel that some of its readers do not see.
func TestNamesOfRolesAndChannels(t *testing.T) {
	a := New("acme", DefaultConfig())
	a.guilds.begin(0, event.Self{UserID: "900"}, nil)
	const hidden = `"permission_overwrites":[{"id":"ROLE","type":0,"allow":"ALLOW","deny":"DENY"}]`
	rule := func(role, allow, deny string) string {
		return strings.NewReplacer("ROLE", role, "ALLOW", allow, "DENY", deny).Replace(hidden)
	}
	for _, data := range []string{
		`{"id":"1","roles":[{"id":"1","name":"@everyone","permissions":"1024"},{"id":"5","name":"growers"}],"channels":[
			{"id":"10","name":"shed"},{"id":"11","name":"tools"},
			{"id":"12","name":"staff",` + rule("1", "0", "1024") + `},{"id":"13","name":"staff-too",` + rule("1", "0", "1024") + `}],
			"threads":[{"id":"14","name":"beds","type":11,"parent_id":"10"},{"id":"15","name":"secret","type":12,"parent_id":"10"},{"id":"16","name":"plans","type":11,"parent_id":"12"}]}`,
		`{"id":"2","roles":[{"id":"2","name":"@everyone","permissions":"0"},{"id":"6","name":"others"}],"channels":[
			{"id":"20","name":"hall"},{"id":"21","name":"yard"},{"id":"22","name":"staff",` + rule("6", "0", "1024") + `},{"id":"23","name":"open",` + rule("2", "1024", "0") + `}]}`,
	} {
		a.guilds.arrive([]byte(data), "", true, time.Now())
	}
	for _, c := range []struct{ in, token, want string }{
		{"10", "<@&5>", "growers"}, {"10", "<#11>", "tools"}, {"10", "<#14>", "beds"}, {"14", "<#10>", "shed"}, {"12", "<#12>", "staff"}, {"12", "<#13>", "staff-too"},
		{"12", "<#16>", "plans"}, {"20", "<#21>", "yard"}, {"22", "<#23>", "open"}, // of a server that hides its channels from newcomers
		{"10", "<#12>", ""}, {"10", "<#15>", ""}, {"10", "<#16>", ""}, {"20", "<#22>", ""}, // hidden
		{"10", "<@&6>", ""}, {"10", "<#21>", ""}, {"99", "<#10>", ""}, {"10", "<#99>", ""}, {"10", "<@10>", ""}, {"10", "shed", ""},
	} {
		got, err := a.LookupMention(t.Context(), c.in, c.token)
		if got != c.want || errors.Is(err, adapters.ErrNoName) != (c.want == "") {
			t.Errorf("%s in %s: %q, %v; want %q", c.token, c.in, got, err, c.want)
		}
	}
}
