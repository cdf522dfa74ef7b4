// Package schedule has agents asked at a time: it takes the ticks of schedules, and gives the question of each to intake.
//
// A tick's question is a message of Parley itself under an id of the tick, so a repetition changes nothing, and its
// run has that id. The run is an ordinary one, except that people see neither its work nor its failure. A process that
// ends in between leaves the tick due.
package schedule

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/places"
	"parley/ingest/journal/schedules"
	"parley/ingest/wake"
)

// Inbox takes the messages of Parley itself.
type Inbox interface {
	// Put makes a message durable. A repetition with the same id changes nothing.
	Put(ctx context.Context, platform event.Platform, workspace string, m event.Internal) error
}

// Places finds the places of schedules. Package deliver implements it.
type Places interface {
	// Spot returns where a schedule asks; see deliver.Outbox. event.FieldErrors means that there is no such place, any
	// other error that the place may be found later.
	Spot(ctx context.Context, workspace string, to adapters.Target, post string) (adapters.Spot, error)
	// People returns the key of the thread in which people read what an agent answers in a thread.
	People(ctx context.Context, workspace string, thread places.Thread) (event.ThreadKey, error)
}

// Observer sees the ticks that end without a run, for metrics. It is called concurrently.
type Observer interface {
	TickEnded(workspace string, result schedules.Result)
}

// Parts are the components that a Service uses.
type Parts struct {
	Journal  *journal.Journal
	Inbox    Inbox
	Places   Places
	Observer Observer
	// Serves returns the ids of the configured workspaces.
	Serves func() []string
	// Zone returns the name of the time zone of a workspace.
	Zone func(workspace string) string
	Log  *slog.Logger
	Now  func() time.Time
}

// Service takes the ticks of schedules.
type Service struct {
	Parts
	due     wake.Signal
	slots   chan struct{}
	working sync.WaitGroup
}

const (
	// lookEvery is the greatest time between two looks for ticks that are due.
	lookEvery = time.Second
	// most is the number of ticks that one transaction takes.
	most = 200
	// atOnce bounds the ticks whose places are looked up at one time. A platform that hangs delays the further ones by
	// findTime at most.
	atOnce = 64
	// findTime bounds the search for a place.
	findTime = 5 * time.Second
	// lease is the time after which another try of a tick may begin.
	lease = time.Minute
	// mostTries bounds the tries of a place: with their pauses of at most a minute, they take an hour. A tick that was missed has
	// its hour from its own first try on, whatever its planned time.
	mostTries = 62
)

// New returns a service whose ticks are taken by Serve.
func New(p Parts) *Service {
	return &Service{Parts: p, due: wake.NewSignal(), slots: make(chan struct{}, atOnce)}
}

// Serve takes the ticks that are due until ctx ends. It may run on every node.
func (s *Service) Serve(ctx context.Context) error {
	defer s.working.Wait()
	s.due.Loop(ctx, lookEvery, s.Tend)
	return nil
}

// Configure makes the schedules of a workspace's file those of a list; zone is the time zone of the workspace.
func (s *Service) Configure(ctx context.Context, workspace, zone string, list []Config) error {
	stored := make([]schedules.Schedule, len(list))
	for i := range list {
		stored[i] = list[i].stored(workspace, zone)
	}
	return s.Journal.Sync(ctx, workspace, stored)
}

// Look makes Serve look for ticks now.
func (s *Service) Look() { s.due.Set() }

// Tend takes the ticks that are due now, and begins to ask their questions; see Wait.
func (s *Service) Tend(ctx context.Context) {
	if err := s.tend(ctx); err != nil && ctx.Err() == nil {
		s.Log.Warn("the ticks of schedules wait for the store", "err", err)
	}
}

// Wait waits for the questions that Tend has begun to ask.
func (s *Service) Wait() { s.working.Wait() }

func (s *Service) tend(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		workspaces := s.Serves()
		if due, err := s.Journal.SchedulesDue(ctx, workspaces); err != nil || !due {
			return err
		}
		more = false
		full, skipped, err := s.Journal.TakeTicks(ctx, workspaces, most)
		if err != nil {
			return err
		}
		for workspace, n := range skipped {
			s.Log.Info("ticks of schedules are skipped", "workspace", workspace, "ticks", n)
			for range n {
				s.Observer.TickEnded(workspace, schedules.SkippedTick)
			}
		}
		list, err := s.Journal.DueTicks(ctx, workspaces, most, lease)
		if err != nil {
			return err
		}
		for i := range list {
			s.begin(ctx, &list[i])
		}
		more = full || len(list) == most
	}
	return nil
}

// begin asks the question of a tick in a goroutine of its own.
func (s *Service) begin(ctx context.Context, t *schedules.DueTick) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.working.Go(func() {
		defer func() { <-s.slots }()
		if err := s.ask(ctx, t); err != nil && ctx.Err() == nil {
			s.Log.Warn("a tick of a schedule waits", "workspace", t.Workspace, "schedule", t.Schedule, "err", err)
		}
	})
}

// ask makes the question of a tick durable. If the place of the tick cannot be found now, the service looks again.
func (s *Service) ask(ctx context.Context, t *schedules.DueTick) error {
	m := event.Internal{
		ID: t.Message, Thread: t.Of.Thread, Channel: t.Of.Place, Parent: t.Of.Parent, Agent: t.Of.Agent, Runs: true, Text: t.Of.Prompt,
		Schedule: t.Schedule, PlannedAt: t.PlannedAt, Cause: t.Of.Cause, Alone: t.Of.Alone,
	}
	platform, root := t.Of.Platform, false
	if t.Of.Thread == "" {
		spot, err := s.find(ctx, t)
		if faults, ok := errors.AsType[event.FieldErrors](err); ok {
			return s.fail(ctx, t, faults.Error())
		} else if err != nil {
			return s.later(ctx, t, err)
		}
		platform, m.Thread, m.Channel = spot.Platform, spot.Thread, spot.Channel
		if m.Agent == "" {
			m.Agent = spot.Agent
		}
		if m.Thread == "" {
			m.Thread, root = event.TickThread(t.Message), t.Of.Same
		}
	}
	if err := s.Inbox.Put(ctx, platform, t.Workspace, m); err != nil {
		return err
	}
	return s.Journal.Asked(ctx, &t.Tick, root)
}

// errSending means that a thread does not begin before its first post is on the platform.
var errSending = errors.New("the post that begins its thread is on its way")

// find returns the place of a tick. A further try may find another one, and its question is where the first one was.
func (s *Service) find(ctx context.Context, t *schedules.DueTick) (spot adapters.Spot, err error) {
	post := ""
	if t.Of.Same && t.Of.Root != "" {
		var sending bool
		if post, sending, err = s.Journal.TickPost(ctx, t.Workspace, t.Of.Root); err != nil {
			return spot, err
		}
		if sending {
			return spot, errSending
		}
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	return s.Places.Spot(ctx, t.Workspace, adapters.Target{Channel: t.Of.Channel, User: t.Of.User}, post)
}

// later looks for the place of a tick again, or fails the tick.
func (s *Service) later(ctx context.Context, t *schedules.DueTick, cause error) error {
	if t.Tries > mostTries {
		return s.fail(ctx, t, "its place could not be reached: "+cause.Error())
	}
	if err := s.Journal.PostponeTick(ctx, &t.Tick, s.Now().Add(min(5*time.Second<<min(t.Tries-1, 10), time.Minute)), cause.Error()); err != nil {
		return err
	}
	return cause
}

// fail ends a tick without a run.
func (s *Service) fail(ctx context.Context, t *schedules.DueTick, cause string) error {
	s.Log.Error("a tick of a schedule has failed", "workspace", t.Workspace, "schedule", t.Schedule, "err", cause)
	err := s.Journal.FailTick(ctx, &t.Tick, cause)
	if err == nil {
		s.Observer.TickEnded(t.Workspace, schedules.Failed)
	}
	return err
}
