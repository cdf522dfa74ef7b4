package turn_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/stream"
)

// steered is an agent that takes its runs, and messages during them.
type steered struct {
	*agent
	mu    sync.Mutex
	given []string // "run text", in order
	fails error
	proof func(ctx context.Context) error // is called by Steer; nil for none
	store *engine                         // is down while the agent takes its first run; nil if it works
}

func (s *steered) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if !input.Taken {
		if s.store != nil {
			s.store.down.Store(true)
			_ = input.Take() // the agent works on regardless
			s.store.down.Store(false)
			s.store = nil
		} else if err := input.Take(); err != nil {
			return err
		}
	}
	return s.agent.Run(ctx, input, emit)
}

func (s *steered) Steer(ctx context.Context, input assembly.Input, messages []assembly.Message) error {
	if s.proof != nil {
		if err := s.proof(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(messages) == 0 {
		s.given = append(s.given, "nothing")
	}
	for _, m := range messages {
		s.given = append(s.given, input.RunID+" "+m.Text())
	}
	return s.fails
}

// refuses sets the error of the next calls of Steer.
func (s *steered) refuses(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func steering(s *steered) func(d *fixture) {
	return func(d *fixture) {
		s.agent = d.agent
		d.settings.Mode, d.profile.Agent = turn.ModeSteer, s
	}
}

// TestSteer hands the messages that arrive during a run to the agent. They are answered by the
// run, and no reply is stale for them.
func TestSteer(t *testing.T) {
	s := &steered{}
	inBubble(t, steering(s), func(d *fixture) {
		d.settings.Stale = turn.StaleDrop
		d.agent.does = []script{thinks(10*time.Second, "both done")}
		d.asks("1", "one")
		pass(time.Second)
		run := d.running()
		d.asks("2", "and two")
		d.asks("3", "and three")
		pass(time.Second)
		same(t, "given", s.given, []string{run + " [Olivia]: and two", run + " [Olivia]: and three"})
		pass(10 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		d.asks("4", "four")
		d.outcomes()
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"four"}})
		same(t, "the next input", d.assembled(1), "user: [Olivia]: one\nuser: [Olivia]: and two\nuser: [Olivia]: and three\nassistant: both done\nuser: [Olivia]: four\n")
	})
}

// TestSteerWithAnUnclearCommit hands a message over although the store does not say whether the
// message has joined the run. A message with an id for its run waits.
func TestSteerWithAnUnclearCommit(t *testing.T) {
	s := &steered{}
	inBubble(t, steering(s), func(d *fixture) {
		d.agent.does = []script{thinks(10*time.Second, "both done")}
		d.asks("1", "one")
		pass(time.Second)
		run := d.running()
		d.recorded = func() { d.engine.unclear.Store(true) }
		d.asks("2", "and two")
		d.recorded = nil
		m := human("3", "another run")
		m.RunID = "run-of-a-client"
		d.record("run", m)
		pass(time.Second)
		synctest.Wait()
		same(t, "given", s.given, []string{run + " [Olivia]: and two"})
		pass(10 * time.Second)
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"another run"}})
	})
}

// says records a message of Parley about a workstream.
func (d *fixture) says(trigger messages.Trigger, id, text string) {
	m := human(id, text)
	m.Metadata.SenderID, m.Metadata.SenderDisplayName, m.Metadata.SenderType = messages.SystemSender, "Parley", event.Bot
	m.Internal = &event.Internal{}
	d.reason = event.ReasonWorkstream
	d.accept(trigger, event.Event{Kind: event.KindMessage, Message: m})
	d.reason = ""
	pass(time.Second)
}

// TestAgentHearsOfItsWorkstreams hands over what Parley says about the workstreams of a run, in each mode and once, also to another
// attempt. The run's reply is not stale for it. Messages of people wait, unless the mode is steer.
func TestAgentHearsOfItsWorkstreams(t *testing.T) {
	for _, mode := range []string{turn.ModeQueue, turn.ModeSteer} {
		s := &steered{}
		inBubble(t, func(d *fixture) {
			steering(s)(d)
			d.settings.Mode, d.settings.Stale, d.tools = mode, turn.StaleDrop, &toolbox{}
		}, func(d *fixture) {
			d.agent.does = []script{thinks(10*time.Second, "all done")}
			d.asks("1", "one")
			pass(time.Second)
			run := d.running()
			d.says(messages.TriggerPassive, "w", "It is late.")
			d.says(messages.TriggerRun, "r", "It is done.")
			d.says(messages.TriggerPassive, "v", "It is very late.")
			want := []string{run + " It is late.", run + " It is done.", run + " It is very late."}
			if mode == turn.ModeSteer {
				d.asks("2", "two")
				pass(time.Second)
				want = append(want, run+" [Olivia]: two")
			}
			pass(20 * time.Second)
			same(t, mode+": given", s.given, want)
			same(t, mode+": outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		})
	}
}

// TestAnAgentThatTakesNoMessages leaves them to the next turn: an agent that refuses them, and one
// that cannot take any.
func TestAnAgentThatTakesNoMessages(t *testing.T) {
	for _, s := range []*steered{{fails: errors.New("too late")}, nil} {
		set := func(d *fixture) { d.settings.Mode = turn.ModeSteer }
		if s != nil {
			set = steering(s)
		}
		inBubble(t, set, func(d *fixture) {
			d.agent.does = []script{thinks(10*time.Second, "done")}
			d.asks("1", "one")
			pass(time.Second)
			d.asks("2", "two")
			pass(20 * time.Second)
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered})
			same(t, "turns", d.agent.said(), [][]string{{"one"}, {"two"}})
		})
	}
}

// TestOnlyASteeredRunTakesMessages leaves them to the next turn with another mode, and if the store
// has not noted that the agent took the run.
func TestOnlyASteeredRunTakesMessages(t *testing.T) {
	for _, mode := range []string{turn.ModeQueue, turn.ModeSteer} {
		s := &steered{}
		inBubble(t, func(d *fixture) {
			steering(s)(d)
			if d.settings.Mode = mode; mode == turn.ModeSteer {
				s.store = d.engine
			}
		}, func(d *fixture) {
			d.agent.does = []script{thinks(10*time.Second, "done")}
			d.asks("1", "one")
			pass(time.Second)
			d.asks("2", "two")
			pass(20 * time.Second)
			same(t, "given", s.given, nil)
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered, turn.Answered})
		})
	}
}

// TestSteerAfterARestart checks that the agent gets a message again if the store has not noted
// before the restart that the agent took it, and that no message is answered twice.
func TestSteerAfterARestart(t *testing.T) {
	s := &steered{}
	inBubble(t, steering(s), func(d *fixture) {
		d.agent.does = []script{thinks(50*time.Second, "never"), thinks(10*time.Second, "all done")}
		d.asks("1", "one")
		pass(time.Second)
		run := d.running()
		d.asks("2", "two")
		pass(time.Second)
		d.recorded = func() { d.engine.down.Store(true) }
		d.asks("3", "three")
		d.recorded = nil
		pass(time.Second)
		d.kill()
		d.engine.down.Store(false)
		d.work()
		pass(20 * time.Second)
		three := run + " [Olivia]: three"
		same(t, "given", s.given, []string{run + " [Olivia]: two", three, three})
		same(t, "posts", d.deliveries(), []string{"all done"})
		for _, m := range d.all() {
			if m.Author == messages.ByHuman && m.Run != run {
				t.Errorf("%s belongs to run %s", m.Content, m.Run)
			}
		}
	})
}

// TestAHandedMessageStaysWithItsRun checks that a message is answered by the run whose agent took
// it in an earlier attempt, and by no other, although the agent takes no message any more.
func TestAHandedMessageStaysWithItsRun(t *testing.T) {
	s := &steered{}
	inBubble(t, steering(s), func(d *fixture) {
		d.agent.does = []script{
			func(context.Context, func(stream.Message) error) error {
				pass(10 * time.Second)
				s.refuses(errors.New("the run has ended"))
				return errors.New("the stream is lost")
			},
			thinks(10*time.Second, "both done"),
		}
		d.asks("1", "one")
		pass(time.Second)
		run := d.running()
		d.asks("2", "two")
		pass(12 * time.Second) // the second attempt works
		d.asks("3", "three")
		pass(20 * time.Second)
		same(t, "given", s.given, []string{run + " [Olivia]: two", run + " [Olivia]: three"})
		same(t, "posts", d.deliveries(), []string{"both done", "ok"})
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"one", "two"}, {"three"}})
	})
}
