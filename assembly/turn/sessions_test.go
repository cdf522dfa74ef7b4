package turn_test

import (
	"context"
	"testing"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// talker is an agent with conversations of its own, which it numbers.
type talker struct {
	sessions chan string // that its runs got
}

func (t talker) Run(_ context.Context, input assembly.Input, emit func(stream.Message) error) error {
	t.sessions <- input.Session
	if err := input.KeepSession(input.Session+"+", false); err != nil {
		return err
	}
	return emit(stream.Message{Type: stream.Answer, Text: "ok"})
}

func (talker) KeepsSessions() {}

var _ turn.KeepsSessions = talker{}

// stayer is an agent that waits for its people after its run.
type stayer struct {
	talker
	leaves chan func()
}

func (s stayer) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	s.leaves <- input.Stay()
	return s.talker.Run(ctx, input, emit)
}

// TestAThreadStaysWithAnAgentThatWaits proves that no other node can claim the thread until the agent leaves it.
func TestAThreadStaysWithAnAgentThatWaits(t *testing.T) {
	agent := stayer{talker: talker{sessions: make(chan string, 1)}, leaves: make(chan func(), 1)}
	inBubble(t, func(d *fixture) { d.profile.Agent, d.lease = agent, 8*time.Second }, func(d *fixture) {
		isClaimed := func() (claimed bool) {
			d.must(d.engine.ReadOne(d.Context(), func(tx storage.Tx) (err error) {
				claimed, err = tx.Row([]any{new(int64)}, `SELECT id FROM threads WHERE owner <> '' AND lease_until > $1`, time.Now().UnixMilli())
				return err
			}))
			return claimed
		}
		d.asks("1", "one")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		pass(time.Minute)
		same(t, "the claim while the agent waits", isClaimed(), true)
		(<-agent.leaves)()
		pass(time.Minute)
		same(t, "the claim after that", isClaimed(), false)
	})
}

// queued is an agent that waits for a place before it works.
type queued struct{ waits, works time.Duration }

func (q queued) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	pass(q.waits)
	input.Began()
	return thinks(q.works, "ok")(ctx, emit)
}

// TestTheTimeOfARunBeginsWithItsPlace proves that the wait for a place takes nothing from the time of the run, which stays bounded.
func TestTheTimeOfARunBeginsWithItsPlace(t *testing.T) {
	for works, want := range map[time.Duration]turn.Outcome{50 * time.Second: turn.Answered, 70 * time.Second: turn.Failed} {
		inBubble(t, func(d *fixture) {
			d.profile.Agent, d.settings.MaxAttempts = queued{waits: 40 * time.Second, works: works}, 1
		}, func(d *fixture) {
			d.asks("1", "one")
			pass(5 * time.Minute)
			same(t, "outcomes", d.outcomes(), []turn.Outcome{want})
		})
	}
}

// TestSessionsStay proves that an agent gets back what it has kept of its conversation about a thread, also after a restart, and that
// another agent has no such thing.
func TestSessionsStay(t *testing.T) {
	agent := talker{sessions: make(chan string, 4)}
	inBubble(t, func(d *fixture) { d.profile.Agent = agent }, func(d *fixture) {
		d.asks("1", "one")
		pass(time.Second)
		d.asks("2", "two")
		pass(time.Second)
		d.stop()
		d.work()
		d.asks("3", "three")
		pass(time.Second)
		same(t, "sessions", []string{<-agent.sessions, <-agent.sessions, <-agent.sessions}, []string{"", "+", "++"})
	})
	inBubble(t, nil, func(d *fixture) {
		d.asks("1", "one")
		pass(time.Second)
		same(t, "an agent without sessions can keep one", d.agent.inputs[0].KeepSession != nil, false)
	})
}
