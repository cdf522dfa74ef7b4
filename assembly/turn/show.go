package turn

import (
	"slices"

	"parley/assembly/stream"
)

// The messages of an agent that people can see during a run.
const (
	ShowAnswer  = "answer" // the growing answer
	ShowThought = "thought"
	ShowPlan    = "plan"
	ShowUpdate  = "update"
	ShowTool    = "tool"
)

// Shown returns the names of the messages that people can see.
func Shown() []string { return []string{ShowAnswer, ShowThought, ShowPlan, ShowUpdate, ShowTool} }

// DefaultShow returns the messages that people see if nothing else is configured.
func DefaultShow() []string { return []string{ShowAnswer} }

// DefaultQuietReply is the quiet reply if nothing else is configured.
const DefaultQuietReply = "NO_REPLY"

// shownAs returns the name under which people can see a whole message; empty for none.
func shownAs(m stream.Message) string {
	switch {
	case m.Type == stream.Answer:
		return ""
	case m.Stage() == stream.StageToolExecution:
		return ShowTool
	case m.Type == stream.Thought:
		return ShowThought
	case m.Type == stream.Plan:
		return ShowPlan
	case m.Type == stream.Update:
		return ShowUpdate
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
	shows := func(name string) bool { return slices.Contains(a.profile.Show, name) }
	hides, ok := a.profile.Agent.(HidesTokens)
	if shows(ShowAnswer) && !(ok && hides.HidesTokens()) {
		a.said.grow = a.preview.Grow
	}
	a.said.note = func(m stream.Message) {
		if name := shownAs(m); m.Text != "" && shows(name) {
			a.preview.Note(m.Text)
		}
	}
}
