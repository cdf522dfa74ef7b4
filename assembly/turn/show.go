package turn

import (
	"slices"

	"parley/assembly/plan"
	"parley/ingest/stream"
)

// The messages of an agent that people can see during a run.
const (
	ShowAnswer  = "answer" // the growing answer
	ShowThought = "thought"
	ShowPlan    = "plan"
	ShowUpdate  = "update"
	ShowTool    = "tool"

	ShowBatch      = "batch"
	ShowWarning    = "warning"
	ShowError      = "error"
	ShowSystem     = "system"
	ShowCard       = "card"       // of the answer, with it
	ShowWorkstream = "workstream" // the progress of the run's workstreams
)

// Shown returns the names of the messages that people can see.
func Shown() []string {
	return []string{ShowAnswer, ShowThought, ShowPlan, ShowUpdate, ShowTool, ShowBatch, ShowWarning, ShowError, ShowSystem, ShowWorkstream, ShowCard}
}

// DefaultShow returns the messages that people see if nothing else is configured, on a platform whose posts can be edited or on
// another one.
func DefaultShow(edits bool) []string {
	if edits {
		return []string{ShowAnswer, ShowPlan, ShowBatch, ShowWarning, ShowError, ShowCard}
	}
	return []string{ShowAnswer, ShowCard}
}

// DefaultQuietReply is the quiet reply if nothing else is configured.
const DefaultQuietReply = "NO_REPLY"

// shownAs returns the name under which people can see a whole message; empty for none.
func shownAs(m stream.Message) string {
	if m.Type != stream.Answer && m.Type != stream.BatchProgress && m.Stage() == stream.StageToolExecution {
		return ShowTool
	}
	return NameOf(m.Type)
}

// NameOf returns the name under which people can see messages of a type, whatever their stage; empty for none.
func NameOf(t stream.Type) string { return shownNames[t] }

var shownNames = map[stream.Type]string{
	stream.BatchProgress: ShowBatch, stream.Thought: ShowThought, stream.Plan: ShowPlan, stream.Update: ShowUpdate,
	stream.Warning: ShowWarning, stream.Error: ShowError, stream.System: ShowSystem,
}

// signed returns the text of the sign of work for a message; empty for none. Once the run has a plan, its state post has the lines that
// the sign had before.
func signed(m stream.Message, planned bool) string {
	switch m.Type {
	case stream.BatchProgress:
		if b := plan.ReadBatch(m.Text, m.Details); b != nil && !planned {
			return b.String()
		}
	case stream.Warning, stream.Error, stream.System:
		if !planned {
			return m.Text
		}
	default:
		return m.Text
	}
	return ""
}

// HidesTokens is implemented by an Agent whose tokens may turn out to be no part of the answer. If
// HidesTokens returns true, people see the whole answer alone.
type HidesTokens interface {
	HidesTokens() bool
}

// showSaid lets people see the agent's messages that the configuration names.
func (a *attempt) showSaid() {
	a.said.faulty = func(err error) {
		a.report.CardErr = err
		a.Log.Warn("a card of an agent is not shown", "agent", a.profile.ID, "run", a.run.ID, "err", err)
	}
	if a.run.IsScheduled() { // it may have nothing to say
		a.said.note = func(stream.Message) {}
		return
	}
	show, planned := a.profile.Show, false
	if show == nil {
		show = DefaultShow(true) // a platform without edits has no words in its sign
	}
	shows := func(name string) bool { return slices.Contains(show, name) }
	hides, ok := a.profile.Agent.(HidesTokens)
	if shows(ShowAnswer) && !(ok && hides.HidesTokens()) {
		a.said.grow = a.preview.Grow
	}
	a.said.note = func(m stream.Message) {
		if name := shownAs(m); name != "" && shows(name) {
			if text := signed(m, planned); text != "" {
				a.preview.Note(text)
			}
			planned = planned || name == ShowPlan && m.OfMain()
		}
	}
}
