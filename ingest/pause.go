package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/threads"
	"parley/ingest/wake"
)

// Pause lets nobody in a scope ask an agent. Messages are stored as context, and commands and answers to questions go on.
type Pause struct {
	// Scope is empty for everything, or W for a workspace, W:CHANNEL for a channel, or agent:ID.
	Scope string    `json:"scope"`
	At    time.Time `json:"at"`
	By    string    `json:"by"`             // the operator
	Until time.Time `json:"until,omitzero"` // zero until it is resumed
	Say   string    `json:"say,omitempty"`  // the notice for an asker; empty for our own words
}

// agentScope begins the scope of an agent. No id of a workspace has a colon.
const agentScope = "agent:"

// Covers reports whether the scope has a channel with an agent. A channel is covered with its parent.
func (p *Pause) Covers(workspace, channel, parent, agent string) bool {
	return p.Scope == "" || p.Scope == workspace || p.Scope == agentScope+agent ||
		p.Scope == workspace+":"+channel || parent != "" && p.Scope == workspace+":"+parent
}

// Words are the notice for an asker.
func (p *Pause) Words() string {
	if p.Say != "" {
		return p.Say
	}
	return "I'm paused now, so I don't answer this. I keep what you write."
}

// Pauses are the pauses of an installation, which all nodes share.
type Pauses struct {
	state threads.AdapterState
	now   func() time.Time
	list  atomic.Pointer[[]Pause]
}

const (
	// pausesName is the name of the pauses in the state of no workspace.
	pausesName = "pauses"
	// pausesEvery is how often a node reads the pauses that another one may have changed.
	pausesEvery = 2 * time.Second
)

// NewPauses returns the pauses in a store. None is known before Read.
func NewPauses(t *threads.Threads, now func() time.Time) *Pauses {
	return &Pauses{state: t.AdapterState(""), now: now}
}

// Serve reads the pauses again and again until ctx ends, for a store that several nodes share.
func (p *Pauses) Serve(ctx context.Context, fails func(error)) {
	for wake.After(ctx, pausesEvery) {
		if err := p.Read(ctx); err != nil && ctx.Err() == nil {
			fails(err)
		}
	}
}

// Read reads the pauses.
func (p *Pauses) Read(ctx context.Context) error {
	value, err := p.state.Get(ctx, pausesName)
	var list []Pause
	if err == nil && value != "" {
		err = json.Unmarshal([]byte(value), &list)
	}
	if err == nil {
		p.list.Store(&list)
	}
	return err
}

// Begin stores a pause. It replaces one of the same scope.
func (p *Pauses) Begin(ctx context.Context, pause Pause) error {
	return p.change(ctx, func(list []Pause) []Pause { return append(without(list, pause.Scope), pause) })
}

// End ends the pause of exactly a scope, and reports whether there was one.
func (p *Pauses) End(ctx context.Context, scope string) (ended bool, err error) {
	err = p.change(ctx, func(list []Pause) []Pause {
		left := without(list, scope)
		ended = len(left) < len(list)
		return left
	})
	return ended, err
}

func without(list []Pause, scope string) []Pause {
	return slices.DeleteFunc(slices.Clone(list), func(p Pause) bool { return p.Scope == scope })
}

func (p *Pauses) change(ctx context.Context, change func([]Pause) []Pause) error {
	var unreadable error
	err := p.state.Update(ctx, pausesName, func(value string) string {
		var list []Pause
		if value != "" {
			unreadable = json.Unmarshal([]byte(value), &list)
		}
		raw, _ := json.Marshal(change(p.standing(list))) // texts and times always encode
		return string(raw)
	})
	if err == nil && unreadable != nil {
		err = fmt.Errorf("the stored pauses were unreadable and are replaced: %w", unreadable)
	}
	if err != nil {
		return err
	}
	return p.Read(ctx)
}

// standing returns the pauses of a list that are not over.
func (p *Pauses) standing(list []Pause) []Pause {
	now := p.now()
	return slices.DeleteFunc(slices.Clone(list), func(p Pause) bool { return !p.Until.IsZero() && !now.Before(p.Until) })
}

// List returns the pauses that are not over.
func (p *Pauses) List() []Pause {
	if p == nil || p.list.Load() == nil {
		return nil
	}
	return p.standing(*p.list.Load())
}

// Of returns the pause that covers a channel with an agent; nil for none.
func (p *Pauses) Of(workspace, channel, parent, agent string) *Pause {
	if p == nil || p.list.Load() == nil || len(*p.list.Load()) == 0 {
		return nil
	}
	for _, one := range p.List() {
		if one.Covers(workspace, channel, parent, agent) {
			return &one
		}
	}
	return nil
}

// HasAgent reports whether an agent itself is paused.
func (p *Pauses) HasAgent(agent string) bool {
	return slices.ContainsFunc(p.List(), func(one Pause) bool { return one.Scope == agentScope+agent })
}

// Refusal returns the error of a program that posts in a paused channel; nil if the channel is not paused.
func (p *Pauses) Refusal(workspace, channel, parent, agent string) error {
	if pause := p.Of(workspace, channel, parent, agent); pause != nil {
		return &PausedError{*pause}
	}
	return nil
}

// PausedError is the error of a caller who needs an agent that is paused.
type PausedError struct{ Pause }

func (e *PausedError) Error() string {
	words := "paused since " + e.At.UTC().Format(time.RFC3339)
	if !e.Until.IsZero() {
		words += " until " + e.Until.UTC().Format(time.RFC3339)
	}
	if e.Say != "" {
		words += ": " + strings.TrimSpace(e.Say)
	}
	return words
}

// pauses makes a message that asks for a run context if the gate is paused. Its sender is told once.
func (g gate) pauses(m *event.Message, d record.Decision, look record.Look) record.Decision {
	switch {
	case g.pause == nil || d.Trigger != messages.TriggerRun || d.Answer != nil:
		return d
	case m.RunID != "": // a client that waits for its run
		return record.Decision{Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonPaused}
	}
	d = passive(event.ReasonPaused)
	if isTold(m) && !look.Said(m.Metadata.SenderID, event.ReasonPaused, g.pause.At) {
		d.Tell = tell(m, g.pause.Words())
	}
	return d
}
