package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// newTestReceiver returns a receiver that makes no calls.
func newTestReceiver(m *memory.Memory) *Receiver {
	return New(call.New(call.Options{}), m, "acme", Settings{}, nil)
}

// TestAcknowledgementsAreTimedMonotonically checks that a change of the machine's clock neither
// ends a connection nor hides a dead one.
func TestAcknowledgementsAreTimedMonotonically(t *testing.T) {
	c := &conn{}
	if err := c.handle(t.Context(), []byte(`{"op":11}`)); err != nil {
		t.Fatal(err)
	}
	if acked := fmt.Sprint(c.acked.Load()); !strings.Contains(acked, " m=") {
		t.Errorf("the acknowledgement came at %s, without a reading of the monotonic clock", acked)
	}
}

// TestShortConnectionsBackOff checks that a gateway that resumes each session and then closes the
// connection at once gets ever fewer connections, and that a connection that lasts is a success.
func TestShortConnectionsBackOff(t *testing.T) {
	s := &shard{Receiver: newTestReceiver(memory.New())}
	for range 30 {
		if wait := s.backoff(true, time.Millisecond, errReconnect); wait <= 0 || wait > s.Limits.BackoffMax {
			t.Errorf("the wait after a short connection is %v", wait)
		}
	}
	if s.failures != 30 {
		t.Errorf("30 short connections count as %d failures", s.failures)
	}
	if wait := s.backoff(true, time.Minute, errReconnect); wait != 0 || s.failures != 0 {
		t.Errorf("after a connection of a minute: a wait of %v and %d failures", wait, s.failures)
	}
}

// bounded is a state that reports each call without a time limit.
type bounded struct {
	t     *testing.T
	calls int
}

func (b *bounded) check(ctx context.Context) {
	b.calls++
	if _, ok := ctx.Deadline(); !ok {
		b.t.Error("a call of the state has no time limit")
	}
}

func (b *bounded) Get(ctx context.Context, _ string) (string, error) {
	b.check(ctx)
	return "", nil
}

func (b *bounded) Put(ctx context.Context, _, _ string) error {
	b.check(ctx)
	return nil
}

func (b *bounded) Update(ctx context.Context, _ string, _ func(string) string) error {
	b.check(ctx)
	return nil
}

// broken is an inbox that refuses each envelope.
type broken struct{}

func (broken) Accept(context.Context, event.Envelope) (adapters.Receipt, error) {
	return adapters.Receipt{}, errors.New("the store is full")
}

// TestNotesHaveATimeLimit checks the calls of the state before an event is accepted. A stop does not
// cancel them, so a store that does not answer could prevent it.
func TestNotesHaveATimeLimit(t *testing.T) {
	for name, data := range map[string]string{
		"GUILD_CREATE":       `{"id":"10","channels":[{"id":"11","type":0}]}`,
		"MESSAGE_CREATE":     `{"id":"20","channel_id":"12","author":{"id":"30"},"content":"hello"}`,
		"INTERACTION_CREATE": `{"id":"40","application_id":"41","token":"t","type":2,"data":{"type":1,"name":"ask"}}`,
	} {
		state := &bounded{t: t}
		m := memory.New()
		m.State = state
		s := newTestReceiver(m).newShard(0, 1, broken{}, adapters.Link{})
		_ = s.accepts.accept(t.Context(), received{name: name, data: []byte(data), body: []byte(`{"op":0,"t":"` + name + `","d":` + data + `}`)}, func() {}, nil)
		if state.calls == 0 {
			t.Errorf("%s: nothing was stored", name)
		}
	}
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
	m, state := memory.New(), &failsOnce{State: adaptertest.NewState()}
	m.State = state
	s := newTestReceiver(m).newShard(0, 1, broken{}, adapters.Link{})
	m.Servers.Begin(0, event.Self{UserID: "900"}, nil)
	for _, data := range []string{
		`{"id":"20","channel_id":"12","author":{"id":"30"},"content":"hello"}`,
		`{"id":"20","channel_id":"12","author":{"id":"30"},"content":"hello"}`, // offered again
		`{"id":"21","channel_id":"13","author":{"id":"31"},"message_reference":{"type":1,"guild_id":"1","channel_id":"10","message_id":"19"}}`,
	} {
		_ = s.accepts.noteMessage(t.Context(), payload.Of(event.Envelope{Body: []byte(`{"op":0,"t":"MESSAGE_CREATE","d":` + data + `}`)}))
	}
	if list, err := memory.DirectChannels(t.Context(), state); err != nil || fmt.Sprint(list) != "[12 13]" {
		t.Errorf("the channels are %q, %v", list, err)
	}
}
