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
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/threads"
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
	// People returns the key of the thread in which people read the agent's answers of a thread.
	People(ctx context.Context, workspace string, thread threads.Thread) (event.ThreadKey, error)
}

// Observer sees the ticks that end without a run, for metrics. It is called concurrently.
type Observer interface {
	TickEnded(workspace string, result schedules.Result)
}

// Parts are the components that a Service uses.
type Parts struct {
	Schedules *schedules.Schedules
	Threads   *threads.Threads
	Inbox     Inbox
	Places    Places
	Observer  Observer
	// Serves returns the ids of the configured workspaces.
	Serves func() []string
	// Paused reports whether an operator has paused the agent of a channel; the ticks there count as missed. It is nil if it never is.
	Paused func(workspace, channel, parent, agent string) bool
	// Zone returns the name of the time zone of a workspace.
	Zone func(workspace string) string
	Log  *slog.Logger
	Now  func() time.Time // by which schedules tick
}

// Service takes the ticks of schedules.
type Service struct {
	Parts
	due     wake.Signal
	looked  time.Time // when the plans were last right by the clock; zero at first
	working sync.WaitGroup

	mu    sync.Mutex
	asked map[string]schedules.Room // the ticks that are being asked, by workspace
}

const (
	// lookEvery is the greatest time between two looks for ticks that are due.
	lookEvery = time.Second
	// most is the number of ticks that one transaction takes.
	most = 200
	// atOnce bounds the ticks of a workspace that are asked at one time for the first time, and againAtOnce those whose place
	// was not found at once: places that hang delay neither another workspace nor what was not tried yet.
	atOnce, againAtOnce = 64, 16
	// findTime bounds the search for a place.
	findTime = 5 * time.Second
	// lease is the time after which another try of a tick may begin, because the process that has taken it may have ended. A second
	// try beside the first one adds no second message.
	lease = 3 * findTime
	// mostTries bounds the tries of a place: with their pauses of at most a minute, they take an hour. A tick that was missed has
	// its hour from its own first try on, whatever its planned time.
	mostTries = 62
)

// New returns a service whose ticks are taken by Serve.
func New(p Parts) *Service {
	return &Service{Parts: p, due: wake.NewSignal(), asked: map[string]schedules.Room{}}
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
	return s.Schedules.Sync(ctx, workspace, stored)
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
	if s.looked.IsZero() || s.Now().Before(s.looked) { // the clock was set back, perhaps before this process began
		if err := s.Schedules.CorrectPlans(ctx); err != nil {
			return err
		}
	}
	s.looked = s.Now()
	workspaces := s.Serves()
	if due, err := s.Schedules.SchedulesDue(ctx, workspaces); err != nil || !due {
		return err
	}
	for full := true; full && ctx.Err() == nil; { // each time gets its row before any place is asked
		var skipped schedules.Skipped
		var err error
		if full, skipped, err = s.Schedules.TakeTicks(ctx, workspaces, most); err != nil {
			return err
		}
		for workspace, n := range skipped {
			s.Log.Info("ticks of schedules are skipped", "workspace", workspace, "ticks", n)
			for range n {
				s.Observer.TickEnded(workspace, schedules.SkippedTick)
			}
		}
	}
	list, err := s.Schedules.DueTicks(ctx, s.room(workspaces), lease)
	for i := range list {
		s.begin(ctx, &list[i])
	}
	return err
}

// room returns how many more ticks of each workspace may be asked now. A workspace without room is not in it.
func (s *Service) room(workspaces []string) map[string]schedules.Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := map[string]schedules.Room{}
	for _, workspace := range workspaces {
		asked := s.asked[workspace]
		if left := (schedules.Room{First: atOnce - asked.First, Again: againAtOnce - asked.Again}); left != (schedules.Room{}) {
			room[workspace] = left
		}
	}
	return room
}

// count changes the number of the ticks that are being asked by n, and reports whether there was no room for another one.
func (s *Service) count(t *schedules.DueTick, n int) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked[t.Workspace]
	if full = asked.First >= atOnce || asked.Again >= againAtOnce; t.Tries > 1 {
		asked.Again += n
	} else {
		asked.First += n
	}
	if s.asked[t.Workspace] = asked; asked == (schedules.Room{}) {
		delete(s.asked, t.Workspace)
	}
	return full
}

// begin asks the question of a tick in a goroutine of its own.
func (s *Service) begin(ctx context.Context, t *schedules.DueTick) {
	s.count(t, 1)
	s.working.Go(func() {
		defer func() {
			if s.count(t, -1) {
				s.due.Set()
			}
		}()
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
	if s.Paused != nil && s.Paused(t.Workspace, m.Channel, m.Parent, m.Agent) {
		err := s.Schedules.SkipTick(ctx, &t.Tick, "the agent is paused")
		if err == nil {
			s.Observer.TickEnded(t.Workspace, schedules.SkippedTick)
		}
		return err
	}
	if err := s.Inbox.Put(ctx, platform, t.Workspace, m); err != nil {
		return err
	}
	return s.Schedules.Asked(ctx, &t.Tick, root)
}

// errAway means that the platform was asked for a place and does not answer.
var errAway = errors.New("the platform does not answer now")

// errSending means that a thread does not begin before its first post is on the platform.
var errSending = errors.New("the post that begins its thread is on its way")

// find returns the place of a tick. A further try may find another one, and its question is where the first one was.
func (s *Service) find(ctx context.Context, t *schedules.DueTick) (spot adapters.Spot, err error) {
	post := ""
	if t.Of.Same && t.Of.Root != "" {
		var sending bool
		if post, sending, err = s.Schedules.TickPost(ctx, t.Workspace, t.Of.Root); err != nil {
			return spot, err
		}
		if sending {
			return spot, errSending
		}
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if spot, err = s.Places.Spot(ctx, t.Workspace, adapters.Target{Channel: t.Of.Channel, User: t.Of.User}, post); err == adapters.ErrBusy {
		err = errAway
	}
	return spot, err
}

// later looks for the place of a tick again, or fails the tick.
func (s *Service) later(ctx context.Context, t *schedules.DueTick, cause error) error {
	if t.Tries > mostTries {
		return s.fail(ctx, t, "its place could not be reached: "+cause.Error())
	}
	if err := s.Schedules.PostponeTick(ctx, &t.Tick, s.Now().Add(wake.Backoff(5*time.Second, time.Minute, int(t.Tries)-1)), cause.Error()); err != nil {
		return err
	}
	return cause
}

// fail ends a tick without a run.
func (s *Service) fail(ctx context.Context, t *schedules.DueTick, cause string) error {
	s.Log.Error("a tick of a schedule has failed", "workspace", t.Workspace, "schedule", t.Schedule, "err", cause)
	err := s.Schedules.FailTick(ctx, &t.Tick, cause)
	if err == nil {
		s.Observer.TickEnded(t.Workspace, schedules.Failed)
	}
	return err
}
