package turn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// Steerer is an Agent that takes messages while it works on a run.
type Steerer interface {
	Agent
	// Steer hands a further message, and the context that it quotes, to a run that the agent has
	// taken (see assembly.Input.Take). The agent must recognise a repeated message by its id. An
	// error means that it did not take the message. Steer is called concurrently with Run.
	Steer(ctx context.Context, input assembly.Input, messages []assembly.Message) error
}

const (
	// steerTimeout bounds one call of Steer.
	steerTimeout = 10 * time.Second
	// readAgain is the pause before messages are read again that have changed.
	readAgain = 100 * time.Millisecond
)

// steering hands messages to a run while its agent works.
type steering struct {
	attempt *attempt
	agent   Steerer
	begin   func() // begins to hand over; called once the agent has taken the run
	stop    chan struct{}
	ended   sync.WaitGroup
	upTo    int64 // thread_seq of the last passive message of Parley that was handed over by this attempt
}

// steer prepares to hand over the messages that arrive, if the agent can take them, and if the mode asks for that or the run
// may have workstreams or is one. It returns nil otherwise.
func (a *attempt) steer(ctx context.Context, input assembly.Input) *steering {
	agent, ok := a.profile.Agent.(Steerer)
	if !ok || a.settings.Mode != ModeSteer && len(a.tools) == 0 && !event.IsWorkstream(a.run.ThreadKey) {
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

// run hands over messages until the run ends, also those that wait since an earlier attempt.
func (s *steering) run(ctx context.Context, input assembly.Input) {
	for {
		s.join(ctx, input, s.attempt.Now())
		select {
		case <-s.stop:
			return
		case <-s.attempt.arrived:
		}
	}
}

// join hands over the messages that wait. Each joins the run after the agent has taken it, so that
// a message of the run is never handed over again, and one that the agent refuses waits for the
// next turn. They are read at a time or later; zero lets the store tell whether each is current.
func (s *steering) join(ctx context.Context, input assembly.Input, read time.Time) {
	a := s.attempt
	var told, joins []messages.Message
	s.insist(ctx, func(ctx context.Context) (err error) {
		told, joins, err = a.news(ctx, s.upTo)
		return err
	})
	waiting := slices.Concat(told, joins)
	for i := range waiting {
		switch err := s.hand(a.provedMessage(ctx, &waiting[i], read), input, waiting[i:i+1]); {
		case errors.Is(err, errOutdated):
			if wake.After(ctx, readAgain) {
				s.join(ctx, input, time.Time{})
			}
			return
		case err != nil:
			a.Log.Warn("the agent takes no messages during its run; they wait for the next turn", "agent", a.profile.ID, "run", a.run.ID, "err", err)
			return
		case i < len(told):
			s.upTo = waiting[i].Seq
			continue
		}
		s.insist(ctx, func(ctx context.Context) error { return a.Runs.JoinRun(ctx, &a.claim.Claim, a.run, &waiting[i]) })
	}
}

// hand hands a message to the agent.
func (s *steering) hand(ctx context.Context, input assembly.Input, message []messages.Message) error {
	a := s.attempt
	return a.guard("steering", func() error {
		l := lines{agent: a.run.Agent, documents: a.takesDocuments()}
		turn := assembly.Turn{Messages: l.many(message)}
		if l.err != nil {
			return l.err
		}
		calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), steerTimeout)
		defer cancel()
		return s.agent.Steer(calling, input, assembly.Assemble(a.profile.ID, []assembly.Turn{turn}, assembly.Window{}, a.Mentions, a.Agents.AgentIDs()...))
	})
}

// insist repeats a call while the store is unavailable: a message must not be left between the
// run and the next turn.
func (s *steering) insist(ctx context.Context, call func(context.Context) error) {
	a := s.attempt
	if err := work.Insist(ctx, commitTime, func() error { return call(context.WithoutCancel(ctx)) }); err != nil && !errors.Is(err, storage.ErrFenced) {
		a.Log.Error("messages to a working agent are not recorded", "run", a.run.ID, "err", err)
	}
}
