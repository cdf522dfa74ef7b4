package workstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal/workstreams"
)

// The bounds of a workstream.
const (
	DefaultDeadline = 5 * time.Minute
	MinDeadline     = 30 * time.Second
	MaxDeadline     = 30 * time.Minute
	maxTask         = 32_000 // characters of a task, a message or a directive
	maxName         = 80     // characters
)

// Task is the work that a run gives to an agent.
type Task struct {
	Task        string
	Agent       string
	Name        string
	Interactive bool
	Deadline    time.Duration // see DeadlineOf
	Apart       bool          // its files are not among those of the run
	// Key makes the launch the same as an earlier one of the run with the key; empty for none.
	Key string
	By  Client
}

// Client is a client of our API that may write in the thread of a run. Its words reach a workstream in its own name. It is empty
// for the run's agent.
type Client struct {
	ID   string // a sender_id
	Name string
}

// author returns a message of the client, or of the run's agent.
func (c Client) author(asker string, m event.Internal) event.Internal {
	m.From, m.Sender, m.Name = asker, c.ID, cmp.Or(c.Name, c.ID)
	return m
}

// DeadlineOf returns a deadline that a request gives in seconds; DefaultDeadline for none.
func DeadlineOf(seconds *int64) time.Duration {
	if seconds == nil {
		return DefaultDeadline
	}
	return time.Duration(min(max(*seconds, 0), 1e6)) * time.Second
}

// Fault is an error in a request, for its sender.
type Fault struct {
	Field string // empty for the request as a whole
	Words string
}

// Error implements error.
func (f Fault) Error() string {
	if f.Field == "" {
		return f.Words
	}
	return f.Field + ": " + f.Words
}

// namespace is the namespace of the ids of launches with a key.
var namespace = uuid.MustParse("5e0f5b39-6a5c-4c6e-9a1c-0a7d41c1d1c4")

// Launch launches a workstream of an unfinished run, whose agent is asker. It returns a Fault if the task is not
// allowed, workstreams.ErrTooMany and ErrTooDeep, and storage.ErrNotFound if the run has ended or is unknown.
func (s *Service) Launch(ctx context.Context, run, asker string, t Task) (w workstreams.Workstream, err error) {
	config, _ := s.Config(asker)
	if err := t.check(asker, config); err != nil {
		return w, err
	}
	if s.Paused != nil && s.Paused(t.Agent) {
		return w, Fault{"agent", fmt.Sprintf("%s is paused by an operator: launch it later", t.Agent)}
	}
	w = workstreams.Workstream{
		ID: uuid.Must(uuid.NewV7()).String(), Run: run, Agent: t.Agent, Name: t.Name, Task: t.Task, Interactive: t.Interactive, Apart: t.Apart,
		DeadlineAt: s.Now().Add(t.Deadline),
	}
	if t.Key != "" {
		w.ID = uuid.NewSHA1(namespace, []byte(run+"\n"+t.Key+t.By.ID)).String()
	}
	if t.By.ID != "" {
		w.Said = saidTask // tellTask sends it below in the client's name; a step does not know that name
	}
	w, err = s.Workstreams.Launch(ctx, w, workstreams.Bounds{Max: int64(config.Max), Depth: int64(config.Depth)})
	if err == nil && t.By.ID != "" {
		err = s.tellTask(ctx, &w, t.By)
	}
	switch {
	case err == nil:
		s.due.Set()
	case errors.Is(err, workstreams.ErrTooMany):
		err = fmt.Errorf("%w: workstreams.max of the agent %s is %d", err, asker, config.Max)
	case errors.Is(err, workstreams.ErrTooDeep):
		err = fmt.Errorf("%w: workstreams.depth of the agent %s is %d", err, asker, config.Depth)
	}
	return w, err
}

// tellTask gives a workstream its task in the name of the client that has launched it. If the process ends before, the client has no
// answer: a repetition with the same key tells it then, and without one the workstream ends at its deadline.
func (s *Service) tellTask(ctx context.Context, w *workstreams.Workstream, by Client) error {
	d := workstreams.Due{Workstream: *w}
	d.Said = 0
	if err := s.tellReaders(ctx, &d, workstreams.Step{State: w.State, Said: saidTask}); err != nil {
		return err
	}
	return s.Inbox.Put(ctx, w.Of.Platform, w.Of.Workspace, toChild(w, taskName, by.author(w.Asker, event.Internal{Runs: true, Text: w.Task})))
}

// check returns the first fault of a task.
func (t *Task) check(asker string, config Config) error {
	switch {
	case len(config.Agents) == 0:
		return Fault{"", fmt.Sprintf("the agent %s may launch no workstreams: its workstreams.agents is empty", asker)}
	case t.Task == "" || utf8.RuneCountInString(t.Task) > maxTask:
		return Fault{"task", fmt.Sprintf("must have 1 to %d characters", maxTask)}
	case !slices.Contains(config.Agents, t.Agent):
		return Fault{"agent", fmt.Sprintf("must be one of %q", config.Agents)}
	case utf8.RuneCountInString(t.Name) > maxName:
		return Fault{"name", fmt.Sprintf("must have at most %d characters", maxName)}
	case t.Deadline < MinDeadline || t.Deadline > MaxDeadline:
		return Fault{"deadline_seconds", fmt.Sprintf("must be from %d to %d", int(MinDeadline.Seconds()), int(MaxDeadline.Seconds()))}
	}
	return nil
}

// Telling is a message or a directive to a workstream.
type Telling struct {
	// Command is one of commands for a directive; empty for a message, which the agent answers. The agent gets a directive during
	// its run if it can, and otherwise with its next input. One that ends with its answer is asked again with the directive, unless that
	// is about a pause.
	Command string
	Text    string
	// Key makes it the same as an earlier one of the workstream with the key; empty for none.
	Key string
	By  Client
}

// commands are the words of directives.
var commands = []string{"add_instruction", "set_priority", "add_constraint", "pause_requested", "resume_requested"}

// pauses are the directives without words of their own, with the words for the agent.
var pauses = map[string]string{
	"pause_requested": "Do not go on with the work until resume_requested comes.", "resume_requested": "Go on with the work.",
}

// Tell gives a workstream a message or a directive. It returns a Fault, workstreams.ErrEnded if the workstream does not
// work any more, and storage.ErrNotFound if there is none.
func (s *Service) Tell(ctx context.Context, workstream string, t Telling) error {
	if err := t.check(); err != nil {
		return err
	}
	w, err := s.Workstreams.Workstream(ctx, workstream)
	switch {
	case err != nil:
		return err
	case w.State != workstreams.Running:
		return workstreams.ErrEnded
	}
	name, text, runs := "message/", t.Text, true
	if t.Command != "" {
		name, text = "steer/", t.Command+": "+cmp.Or(t.Text, pauses[t.Command])
		// A child that ends with its answer has no further input, unless the directive asks for one.
		runs = pauses[t.Command] == "" && !w.Interactive && w.Phase != workstreams.Blocked
	}
	if w.Said&saidTask == 0 {
		if err := s.Inbox.Put(ctx, w.Of.Platform, w.Of.Workspace, task(&w)); err != nil {
			return err
		}
	}
	return s.Inbox.Put(ctx, w.Of.Platform, w.Of.Workspace, toChild(&w, name+cmp.Or(t.Key, uuid.NewString()), t.By.author(w.Asker, event.Internal{
		Runs: runs, Answers: t.Command == "", Text: text,
	})))
}

// check returns the first fault.
func (t *Telling) check() error {
	field, short := "message", pauses[t.Command] != ""
	if t.Command != "" {
		field = "text"
	}
	switch {
	case t.Command != "" && !slices.Contains(commands, t.Command):
		return Fault{"command", fmt.Sprintf("must be one of %q", commands)}
	case t.Text == "" && !short, utf8.RuneCountInString(t.Text) > maxTask:
		return Fault{field, fmt.Sprintf("must have 1 to %d characters", maxTask)}
	}
	return nil
}

// Terminate makes a workstream end.
func (s *Service) Terminate(ctx context.Context, id string) error {
	err := s.Workstreams.Terminate(ctx, id)
	if err == nil {
		s.due.Set()
	}
	return err
}

// Report stores the progress of a workstream. The message of a client's report begins with the client's name. Report returns a Fault,
// and the errors of Workstreams.Report.
func (s *Service) Report(ctx context.Context, id string, p workstreams.Progress, by Client) error {
	switch p.Phase {
	case workstreams.Planning, workstreams.ExecutingTool, workstreams.Synthesizing, workstreams.Blocked:
	default:
		return Fault{"phase", "must be planning, executing_tool, synthesizing or blocked"}
	}
	if p.Iteration < 0 || utf8.RuneCountInString(p.Tool) > workstreams.MaxTool || utf8.RuneCountInString(p.Message) > maxTask {
		return Fault{"", fmt.Sprintf("iteration must not be negative, tool has at most %d characters, and message %d", workstreams.MaxTool, maxTask)}
	}
	if by.ID != "" {
		name := assembly.CleanName(cmp.Or(by.Name, by.ID)) + " (" + assembly.CleanName(by.ID) + ")"
		p.Message = name + " reports: " + cmp.Or(p.Message, p.Tool, string(p.Phase))
		p.Tool = ""
	}
	return s.Workstreams.Report(ctx, id, p)
}
