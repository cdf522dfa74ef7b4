// Package workstream has agents work for other agents: it launches workstreams, watches their deadlines, and tells
// parent and child what happens.
//
// A workstream is a thread of its own. Its task, the messages and directives of its parent, and the reports to the
// parent are envelopes of Parley itself, so they are durable, recorded once and in order, and any node works on them.
// Each step of a workstream's life puts such envelopes first, under ids that make a repetition harmless, and is
// then taken in the store. A process that ends in between repeats the step.
package workstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
	"parley/ingest/wake"
)

// Inbox takes the messages of Parley itself.
type Inbox interface {
	// Put makes a message durable. A repetition with the same id changes nothing.
	Put(ctx context.Context, platform event.Platform, workspace string, m event.Internal) error
}

// Config is the setting of an agent that may launch workstreams.
type Config struct {
	// Agents are the ids of the agents that may work for it; none if it may launch no workstream.
	Agents []string `yaml:"agents"`
	// Max bounds the workstreams of a run that work at once.
	Max int `yaml:"max"`
	// Depth is the number of generations below a run that a person asked for.
	Depth int `yaml:"depth"`
}

// DefaultConfig returns the settings that the configuration changes.
func DefaultConfig() Config { return Config{Max: 4, Depth: 1} }

// maxWorkstreams and maxDepth bound what a configuration may allow.
const maxWorkstreams, maxDepth = 100, 5

// Validate returns every fault by key.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(c.Max > 0 && c.Max <= maxWorkstreams, "max", "must be from 1 to 100")
	faults.Check(c.Depth > 0 && c.Depth <= maxDepth, "depth", "must be from 1 to 5")
	return faults
}

// Parts are the components that a Service uses.
type Parts struct {
	Runs        *runs.Runs
	Workstreams *workstreams.Workstreams
	Inbox       Inbox
	// Config returns the setting of an agent. It returns false if the agent is not configured.
	Config func(agent string) (Config, bool)
	// Paused reports whether an operator has paused an agent; it gets no task then. It is nil if none ever is.
	Paused func(agent string) bool
	Files  Files
	// Serves returns the ids of the configured workspaces. The steps of other ones wait.
	Serves func() []string
	Log    *slog.Logger
	Now    func() time.Time
}

// Service launches workstreams and takes their steps.
type Service struct {
	Parts
	due wake.Signal
}

// New returns a service whose steps are taken by Serve.
func New(p Parts) *Service { return &Service{Parts: p, due: wake.NewSignal()} }

const (
	// lookEvery is the greatest time between two looks for steps that are due.
	lookEvery = time.Second
	// most is the number of steps that one look takes.
	most = 100
	// failedAgain is the time after which a step is tried again that could not be taken, so that it keeps no other one
	// back.
	failedAgain = 5 * time.Second
)

// RunEnded reports that a run of a thread has ended, so that a step of a workstream may be due.
func (s *Service) RunEnded(thread event.ThreadKey) {
	if event.IsWorkstream(thread) {
		s.due.Set()
	}
}

// Serve takes the steps that are due until ctx ends. It may run on every node.
func (s *Service) Serve(ctx context.Context) error {
	s.due.Loop(ctx, lookEvery, s.Tend)
	return nil
}

// Tend takes the steps that are due now.
func (s *Service) Tend(ctx context.Context) {
	list, err := s.Workstreams.DueWorkstreams(ctx, s.Serves(), most)
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("the steps of workstreams wait for the store", "err", err)
	}
	for i := range list {
		if err := s.step(ctx, &list[i]); err != nil && ctx.Err() == nil {
			s.Log.Warn("a step of a workstream waits", "workstream", list[i].ID, "err", err)
			s.postpone(ctx, &list[i])
		}
	}
	if len(list) == most {
		s.due.Set()
	}
}

// step takes the next step of a workstream.
func (s *Service) step(ctx context.Context, d *workstreams.Due) error {
	told, err := s.facts(ctx, d)
	if err != nil {
		return err
	}
	puts, next := stepOf(d, told, s.Now())
	if err := s.tellReaders(ctx, d, next); err != nil { // before the child and its parent do anything about it
		return err
	}
	for _, m := range puts {
		if err := s.Inbox.Put(ctx, d.Of.Platform, d.Of.Workspace, m); err != nil {
			return err
		}
	}
	taken, err := s.Workstreams.Settle(ctx, d, next)
	if taken && next.State.Ended() && !d.State.Ended() {
		s.due.Set() // the parent is told next
	}
	return err
}

// facts reads the facts for the report of a workstream's end. If the workstream has not ended or was canceled, there are none.
func (s *Service) facts(ctx context.Context, d *workstreams.Due) (told facts, err error) {
	if !d.State.Ended() || d.State == workstreams.Canceled {
		return told, nil
	}
	below, err := s.Workstreams.WorkstreamsBelow(ctx, d.Of.Thread, d.Asker, maxListed)
	if err != nil {
		return told, err
	}
	for _, w := range below {
		if !w.State.Ended() && w.ID != d.ID {
			told.working = append(told.working, w)
		}
	}
	all, err := s.Runs.Artifacts(ctx, d.Run)
	for _, a := range all {
		if a.Child == d.ID || strings.HasPrefix(a.Child, d.ID+"/") {
			told.files = append(told.files, a)
		}
	}
	return told, err
}

// tellReaders adds messages to the run that launched a workstream, while that run goes on. The messages are about the
// workstream's start, time and end.
func (s *Service) tellReaders(ctx context.Context, d *workstreams.Due, next workstreams.Step) error {
	for _, m := range readable(d, next) {
		m.Workstream = d.ID
		m.Details, _ = json.Marshal(map[string]string{"workstream_name": cmp.Or(d.Name, d.Agent), "state": string(next.State)}) // strings
		err := s.Runs.AddEvents(ctx, d.Run, runs.Added{Messages: []stream.Message{m.Message}, Key: id(&d.Workstream, m.name)})
		if errors.Is(err, runs.ErrEnded) || errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readersMessage is a message for readers with the name under which it is added once.
type readersMessage struct {
	name string
	stream.Message
}

// readable returns what the readers of the run that launched a workstream get to know by a step.
func readable(d *workstreams.Due, next workstreams.Step) (list []readersMessage) {
	add := func(said int64, name string, kind stream.Type, text string) {
		if next.Said&^d.Said&said != 0 {
			list = append(list, readersMessage{name, stream.Message{Type: kind, Text: text}})
		}
	}
	add(saidTask, "begin", stream.System, d.Task)
	for _, m := range marks {
		if m.said != saidWrapUp {
			add(m.said, fmt.Sprint(m.percent), stream.Warning, used(d, m.percent))
		}
	}
	if next.State == workstreams.Completed {
		add(saidEnd, "end", stream.Complete, next.Summary)
	} else {
		add(saidEnd, "end", stream.Terminated, ended(d, &next))
	}
	return list
}

// postpone tries a step again later.
func (s *Service) postpone(ctx context.Context, d *workstreams.Due) {
	same := workstreams.Step{State: d.State, Phase: d.Phase, Said: d.Said, Summary: d.Summary, Error: d.Error, DueAt: s.Now().Add(failedAgain)}
	if _, err := s.Workstreams.Settle(ctx, d, same); err != nil && ctx.Err() == nil {
		s.Log.Warn("a step of a workstream is still due", "workstream", d.ID, "err", err)
	}
}
