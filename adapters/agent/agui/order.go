package agui

import (
	"fmt"
	"strings"
)

// order checks the order of a run's events. It is as strict as the protocol's own client, except that
// a content begins its message, and the end of the run ends what is open.
type order struct {
	begun, ended bool
	open         [6]map[string]bool   // by group
	owners       [6]map[string]string // the subagent of each id that has begun; empty for the agent itself
}

// group is a set of ids that begin and end.
type group int

const (
	steps group = iota
	textMessages
	reasoningMessages
	reasoningSpans
	toolCalls
	subagents
)

// marks are the events that begin an id of a group, continue it, or end it.
var marks = map[string]struct {
	group group
	mark  rune
}{
	"STEP_STARTED": {steps, 'b'}, "STEP_FINISHED": {steps, 'e'},
	"TEXT_MESSAGE_START": {textMessages, 'b'}, "TEXT_MESSAGE_CONTENT": {textMessages, 'c'}, "TEXT_MESSAGE_END": {textMessages, 'e'},
	"REASONING_MESSAGE_START": {reasoningMessages, 'b'}, "REASONING_MESSAGE_CONTENT": {reasoningMessages, 'c'}, "REASONING_MESSAGE_END": {reasoningMessages, 'e'},
	"REASONING_START": {reasoningSpans, 'b'}, "REASONING_END": {reasoningSpans, 'e'},
	"TOOL_CALL_START": {toolCalls, 'b'}, "TOOL_CALL_ARGS": {toolCalls, 'c'}, "TOOL_CALL_END": {toolCalls, 'e'},
	"SUBAGENT_STARTED": {subagents, 'b'}, "SUBAGENT_FINISHED": {subagents, 'e'}, "SUBAGENT_ERROR": {subagents, 'e'},
}

// id returns the id of an event in its group. A step's name is unique in its subagent.
func (e streamEvent) id(g group) string {
	switch g {
	case steps:
		return e.SubagentRunID + "/" + e.StepName
	case toolCalls:
		return e.ToolCallID
	case subagents:
		return e.SubagentRunID
	}
	return e.MessageID
}

// check returns an error if the event may not come now.
func (o *order) check(e streamEvent) error {
	switch {
	case !o.begun && e.Type != "RUN_STARTED" && e.Type != "RUN_ERROR":
		return fmt.Errorf("the first event is %s, not RUN_STARTED", e.Type)
	case o.ended && e.Type != "RUN_ERROR":
		return fmt.Errorf("%s came after the end of the run", e.Type)
	case o.begun && e.Type == "RUN_STARTED":
		return fmt.Errorf("RUN_STARTED came twice")
	}
	o.begun = true
	if m, ok := marks[e.Type]; ok {
		return o.move(e, m.group, m.mark)
	}
	o.ended = e.Type == "RUN_FINISHED" || e.Type == "RUN_ERROR" // it ends what is open
	return nil
}

// begins returns the event that begins the message of a content which came without it; ok is false
// for any other event.
func (o *order) begins(e streamEvent) (begin streamEvent, ok bool) {
	m, marked := marks[e.Type]
	if !marked || m.mark != 'c' || m.group == toolCalls || o.open[m.group][e.id(m.group)] {
		return e, false
	}
	e.Type = strings.TrimSuffix(e.Type, "_CONTENT") + "_START"
	return e, true
}

func (o *order) move(e streamEvent, g group, mark rune) error {
	id := e.id(g)
	if o.open[g] == nil {
		o.open[g] = map[string]bool{}
	}
	switch open := o.open[g][id]; {
	case mark == 'b' && open:
		return fmt.Errorf("%s came for %s, which is open already", e.Type, id)
	case mark != 'b' && !open:
		return fmt.Errorf("%s came for %s, which is not open", e.Type, id)
	}
	if err := o.own(e, g, id, mark); err != nil {
		return err
	}
	if mark == 'e' {
		delete(o.open[g], id)
	} else {
		o.open[g][id] = true
	}
	return nil
}

// own checks that one subagent, or the agent itself, sends all events of an id. An event
// without a subagent's id belongs to the owner. A reasoning message and its span are one.
func (o *order) own(e streamEvent, g group, id string, mark rune) error {
	if g == reasoningSpans {
		g = reasoningMessages
	}
	if o.owners[g] == nil {
		o.owners[g] = map[string]string{}
	}
	owner, begun := o.owners[g][id]
	parent, hasParent := o.owners[textMessages][e.ParentMessageID]
	switch {
	case g == subagents && mark == 'b' && begun:
		return fmt.Errorf("%s came for %s, which has ended", e.Type, id)
	case g == subagents && mark == 'b' && e.ParentSubagent != "" && o.owners[g][e.ParentSubagent] == "":
		return fmt.Errorf("%s came for %s, whose parent has not begun", e.Type, id)
	case begun && g != steps && e.SubagentRunID != "" && e.SubagentRunID != owner:
		return fmt.Errorf("%s came from the subagent %s for %s, which is not its own", e.Type, e.SubagentRunID, id)
	case g == toolCalls && mark == 'b' && hasParent && e.SubagentRunID != "" && e.SubagentRunID != parent:
		return fmt.Errorf("%s came from the subagent %s for a message that is not its own: %s", e.Type, e.SubagentRunID, e.ParentMessageID)
	case !begun && g == toolCalls && e.SubagentRunID == "":
		o.owners[g][id] = parent
	case !begun:
		o.owners[g][id] = e.SubagentRunID
	}
	return nil
}
