package turn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/assembly"
	"parley/ingest/journal"
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
	taken   chan struct{} // closed once the agent has taken the run
	take    func()        // closes it
	stop    chan struct{}
	ended   sync.WaitGroup
}

// steer begins to hand over the messages that arrive, if the mode asks for that and the agent
// can take them. It returns nil otherwise.
func (a *attempt) steer(ctx context.Context, input assembly.Input) *steering {
	agent, ok := a.profile.Agent.(Steerer)
	if !ok || a.settings.Mode != ModeSteer {
		return nil
	}
	s := &steering{attempt: a, agent: agent, taken: make(chan struct{}), stop: make(chan struct{})}
	s.take = sync.OnceFunc(func() { close(s.taken) })
	s.ended.Go(func() { s.run(ctx, input) })
	if a.run.Taken {
		s.take()
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

// run hands over messages until the run ends. It begins with those that an earlier attempt has
// joined to the run: the process may have ended before the agent took them.
func (s *steering) run(ctx context.Context, input assembly.Input) {
	select {
	case <-s.taken:
	case <-s.stop:
		return
	}
	a := s.attempt
	s.hand(ctx, input, slices.DeleteFunc(slices.Clone(a.run.Messages), func(m journal.Message) bool { return m.Seq <= a.run.BaseSeq }))
	for {
		s.join(ctx, input)
		select {
		case <-s.stop:
			return
		case <-a.arrived:
		}
	}
}

// join gives the run the messages that wait, and hands them over.
func (s *steering) join(ctx context.Context, input assembly.Input) {
	a := s.attempt
	joined, err := a.Journal.JoinRun(context.WithoutCancel(ctx), &a.claim.Claim, a.run)
	if err != nil && !errors.Is(err, journal.ErrFenced) {
		a.Log.Warn("messages wait for the next turn", "run", a.run.ID, "err", err)
	}
	s.hand(ctx, input, joined)
}

// hand gives messages of the run to the agent. If the agent does not take them, they wait for
// the next turn.
func (s *steering) hand(ctx context.Context, input assembly.Input, messages []journal.Message) {
	if len(messages) == 0 {
		return
	}
	a := s.attempt
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
		return
	}
	a.Log.Warn("the agent takes no messages during its run; they wait for the next turn", "agent", a.profile.ID, "run", a.run.ID, "err", err)
	if err := a.Journal.LeaveRun(context.WithoutCancel(ctx), &a.claim.Claim, a.run, messages); err != nil && !errors.Is(err, journal.ErrFenced) {
		a.Log.Error("messages stay with the run", "run", a.run.ID, "err", err)
	}
}
