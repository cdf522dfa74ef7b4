package turn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/assembly"
	"parley/ingest/journal"
	"parley/ingest/work"
)

// Steerer is an Agent that takes messages while it works on a run.
type Steerer interface {
	Agent
	// Steer hands further messages to a run that the agent has taken (see assembly.Input.Take).
	// The agent must recognise a repeated message by its id. An error means that it did not take
	// them. Steer is called concurrently with Run.
	Steer(ctx context.Context, input assembly.Input, messages []assembly.Message) error
}

// steerTimeout bounds one call of Steer.
const steerTimeout = 10 * time.Second

// steering hands messages to a run while its agent works.
type steering struct {
	attempt *attempt
	agent   Steerer
	begin   func() // begins to hand over; called once the agent has taken the run
	stop    chan struct{}
	ended   sync.WaitGroup
}

// steer prepares to hand over the messages that arrive, if the mode asks for that and the agent
// can take them. It returns nil otherwise.
func (a *attempt) steer(ctx context.Context, input assembly.Input) *steering {
	agent, ok := a.profile.Agent.(Steerer)
	if !ok || a.settings.Mode != ModeSteer {
		return nil
	}
	s := &steering{attempt: a, agent: agent, stop: make(chan struct{})}
	s.begin = sync.OnceFunc(func() {
		s.ended.Go(func() { s.run(ctx, input) })
	})
	if a.run.Taken {
		s.begin()
	}
	return s
}

// end waits for the call in progress: after it, each message belongs to the run or waits.
func (s *steering) end() {
	if s != nil {
		close(s.stop)
		s.ended.Wait()
	}
}

// run hands over messages until the run ends, also those that an earlier attempt has joined to
// the run: the process may have ended before the agent took them.
func (s *steering) run(ctx context.Context, input assembly.Input) {
	handed := map[int64]bool{} // by thread_seq
	for {
		s.join(ctx, input, handed)
		select {
		case <-s.stop:
			return
		case <-s.attempt.arrived:
		}
	}
}

// join gives the run the messages that wait, and hands over those that the agent has not been
// given. If the agent does not take them, they wait for the next turn.
func (s *steering) join(ctx context.Context, input assembly.Input, handed map[int64]bool) {
	a := s.attempt
	var messages []journal.Message
	s.insist(ctx, func(ctx context.Context) (err error) {
		messages, err = a.Journal.JoinRun(ctx, &a.claim.Claim, a.run)
		return err
	})
	messages = slices.DeleteFunc(messages, func(m journal.Message) bool { return handed[m.Seq] })
	if len(messages) == 0 {
		return
	}
	err := a.guard("steering", func() error {
		l := lines{agent: a.run.Agent}
		turn := assembly.Turn{Messages: l.many(messages)}
		if l.err != nil {
			return l.err
		}
		calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), steerTimeout)
		defer cancel()
		return s.agent.Steer(calling, input, assembly.Assemble(a.profile.ID, []assembly.Turn{turn}, assembly.Window{}, a.Mentions))
	})
	if err == nil {
		for _, m := range messages {
			handed[m.Seq] = true
		}
		return
	}
	a.Log.Warn("the agent takes no messages during its run; they wait for the next turn", "agent", a.profile.ID, "run", a.run.ID, "err", err)
	s.insist(ctx, func(ctx context.Context) error { return a.Journal.LeaveRun(ctx, &a.claim.Claim, a.run, messages) })
}

// insist repeats a write while the store is unavailable: a message must not be left between the
// run and the next turn.
func (s *steering) insist(ctx context.Context, write func(context.Context) error) {
	a := s.attempt
	if err := work.Insist(ctx, commitTime, func() error { return write(context.WithoutCancel(ctx)) }); err != nil && !errors.Is(err, journal.ErrFenced) {
		a.Log.Error("messages to a working agent are not recorded", "run", a.run.ID, "err", err)
	}
}
