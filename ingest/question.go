package ingest

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/work"
)

// The sentences about questions of agents.
const (
	closedText     = "This question is closed."
	notAllowedText = "Sorry, only the approvers of this agent can answer this question."
	goneText       = "This button does nothing any more."
	notPressedText = "Sorry, only the approvers of this agent can press this button."
	chooseText     = "Please choose one of the answers:"
	expiredText    = "Nobody answered the question in time, so it is closed."
)

// answers decides about a message, or an edit or reaction that triggers a run, in a thread with an
// open question of an agent, or about a pressed button of one. d is the decision without the
// question, which it returns if the message is no answer.
func (g gate) answers(m *event.Message, d record.Decision, look record.Look) record.Decision {
	pressed := m.Pressed != "" && g.kind == event.KindAction
	human := m.Metadata.SenderType == event.Human
	if d.Trigger != messages.TriggerRun && !(pressed && human) {
		return d
	}
	if pressed && human && runs.CardOf(m.Pressed) != "" {
		return g.presses(m, look)
	}
	q, option := g.question(look), -1
	switch {
	case q != nil && q.Approval && !isPerson(m): // its run would cancel the approval
		return passive(event.ReasonNoAnswer)
	case q != nil && (!human || m.Injected != nil): // a question is for people
		d.Waits = true
		return d
	case q == nil && !pressed, !human:
		return d
	case pressed:
		option = pressedOption(m.Pressed, q)
	default:
		option = g.option(m, q)
	}
	switch {
	case pressed && option < 0:
		return g.private(m, event.ReasonAction, closedText)
	case q.Approval && !g.approves(q.Agent, m) && pressed:
		return g.private(m, event.ReasonAction, notAllowedText)
	case q.Approval && !g.approves(q.Agent, m):
		return g.private(m, event.ReasonNoAnswer, notAllowedText)
	case q.Approval && option < 0 && len(q.Options) > 0:
		return g.private(m, event.ReasonNoAnswer, q.Numbered(chooseText))
	case pressed && g.over:
		return g.private(m, event.ReasonLimit, g.overText())
	case pressed:
		d = record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonAction}
	}
	d.Answer = &runs.Answer{Text: m.Content}
	if option >= 0 {
		d.Answer.Option = q.Options[option].ID
	}
	return d
}

// presses decides about a pressed button of a card. The press is a message to the agent. While a question waits for an approver's
// answer, it is none.
func (g gate) presses(m *event.Message, look record.Look) record.Decision {
	b, agent := look.CardButton(m.Pressed)
	q := g.question(look)
	switch {
	case b == nil, agent != g.Agent: // or another agent answers here now
		return g.private(m, event.ReasonAction, goneText)
	case b.Action.Approval && !g.approves(agent, m):
		return g.private(m, event.ReasonAction, notPressedText)
	case q != nil && q.Approval:
		return g.private(m, event.ReasonNoAnswer, q.Numbered(chooseText))
	case g.over:
		return g.private(m, event.ReasonLimit, g.overText())
	}
	d := record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonAction}
	d.Action, _ = json.Marshal(struct { // a stored action always encodes
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	}{b.Action.ID, b.Action.Value})
	if q != nil {
		d.Answer = &runs.Answer{Text: m.Content}
	}
	return d
}

// refusesPress reports whether a message claims the press of a button that no card of the thread has, or that its sender may not
// press. On a chat platform, the platform proves a press; see presses.
func (g gate) refusesPress(m *event.Message, look record.Look) bool {
	for _, extra := range m.Metadata.Extra {
		if extra.Key != event.KeyAction || string(extra.Value) == "null" {
			continue
		}
		b, agent := look.Pressed(extra.Value)
		if b == nil || m.Injected != nil || b.Action.Approval && !g.approves(agent, m) {
			return true
		}
	}
	return false
}

// question returns the open question of the thread; nil for none. If its agent does not answer here any more, it is
// none.
func (g gate) question(look record.Look) *runs.Question {
	q := look.Question()
	if q != nil && q.Agent != g.Agent && (g.Asks == nil || !g.Asks(q.Agent)) {
		return nil
	}
	return q
}

// private returns the decision about a message that answers nothing. Its sender is told: of a
// message in the room if the platform shows no post to one person, of a press only alone.
func (g gate) private(m *event.Message, reason, text string) record.Decision {
	d := passive(reason)
	d.Tell = tell(m, text)
	d.Tell.Private = g.kind == event.KindAction && m.Channel.Type != event.ChannelDirect
	return d
}

// pressedOption returns the option of a button; -1 if it is not the question's.
func pressedOption(button string, q *runs.Question) int {
	if q == nil {
		return -1
	}
	for i := range q.Options {
		if runs.Button(q.Run, i) == button {
			return i
		}
	}
	return -1
}

// option returns the option that a message names by its label, by its number, or else by its id,
// which people do not see; -1 for none.
func (g gate) option(m *event.Message, q *runs.Question) int {
	text := g.said(m, math.MaxInt)
	if i := slices.IndexFunc(q.Options, func(o stream.Option) bool { return strings.EqualFold(text, o.Label) }); i >= 0 {
		return i
	}
	for i := range q.Options {
		if strings.TrimSuffix(text, ".") == strconv.Itoa(i+1) {
			return i
		}
	}
	return slices.IndexFunc(q.Options, func(o stream.Option) bool { return text == o.ID })
}

// ExpireQuestions ends the questions of agents that nobody answered in time. It may run on
// every node.
func (in *Ingest) ExpireQuestions(ctx context.Context) error {
	closed := func(run *runs.Run) outbox.Notice { return in.notice(run, expiredText) } // for all people of the thread
	return in.Journal.Runs.ExpireQuestions(ctx, closed, func(run *runs.Run) {
		in.Turns.Unasked(run.Agent, run.Thread, run.Question)
		in.Work.Wake(work.Deliveries, "", run.Thread)
	})
}
