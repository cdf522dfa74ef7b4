package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
)

// Put gives a message of Parley itself to intake. A repetition changes nothing.
func (in *Ingest) Put(ctx context.Context, platform event.Platform, workspace string, m event.Internal) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = in.Accept(ctx, event.Envelope{Workspace: workspace, Platform: platform, Transport: event.ByParley, ReceivedAt: in.Now(), Body: body})
	return err
}

// internal is the body of a message of Parley itself.
type internal struct{ event.Internal }

// keys implements ours.
func (m *internal) keys() (keys event.Keys, err error) {
	if m.ID == "" || m.Thread == "" || m.Agent == "" {
		return keys, errors.New("a message of Parley needs id, thread and agent")
	}
	return event.Keys{Kind: event.KindMessage, Dedupe: m.ID, Thread: m.Thread, Channel: event.Channel{ID: m.Channel, Parent: m.Parent}, MessageID: m.ID}, nil
}

// event implements ours.
func (m *internal) event(envelope event.Envelope) event.Event {
	metadata := event.Metadata{
		Source: string(envelope.Platform), SenderID: messages.SystemSender, SenderDisplayName: "Parley", SenderType: event.Bot, ChannelExternalID: m.Channel,
	}
	if m.From != "" {
		metadata.SenderID, metadata.SenderDisplayName = "agent:"+m.From, m.From
	}
	if m.Sender != "" {
		metadata.SenderID, metadata.SenderDisplayName = m.Sender, m.Name
		if !strings.HasPrefix(m.Sender, "agent:") { // an agent outside Parley
			metadata.SenderType = event.Human
		}
	}
	run := ""
	if m.Schedule != "" {
		run, metadata.SenderID, metadata.SenderDisplayName = m.ID, event.ScheduleSender(m.Schedule), "Schedule "+m.Schedule
		planned, _ := json.Marshal(m.PlannedAt.UTC()) // a time always encodes
		metadata.Extra = []event.Extra{{Key: event.KeyPlannedAt, Value: planned}}
	}
	return event.Event{Kind: event.KindMessage, Message: &event.Message{
		ExternalID: m.ID, RunID: run, Thread: m.Thread, Channel: event.Channel{ID: m.Channel, Parent: m.Parent}, Content: m.Text, SentAt: envelope.ReceivedAt,
		Metadata: metadata, Internal: &m.Internal,
	}}
}

// byParley decides about a message of Parley itself. The policy is about people and bots of the platform. While people are asked
// in the thread, the run that the message asks for waits: it would take the question from them. Only the question of a
// workstream that is no approval is one to its parent.
func (g gate) byParley(m *event.Message, look record.Look) record.Decision {
	d := record.Decision{Trigger: messages.TriggerPassive, Reason: event.ReasonWorkstream}
	q := g.asked(look)
	switch {
	case m.Internal.Schedule != "":
		d.Trigger, d.Reason = messages.TriggerRun, event.ReasonSchedule
	case m.Internal.Stops:
		d.Trigger, d.Command, d.NoMemory = messages.TriggerNone, record.CommandStop, true
	case m.Internal.Runs:
		d.Trigger = messages.TriggerRun
		if q != nil && !q.Approval && m.Internal.Answers {
			d.Answer = &runs.Answer{Text: m.Content}
		}
	}
	metadata := m.Metadata
	if d.Trigger == messages.TriggerRun {
		cause, alone := m.Internal.Cause, m.Internal.Alone
		if m.Internal.CausedIn != "" {
			cause, alone = look.Cause(m.Internal.CausedIn)
		}
		metadata.SetCause(cause)
		g.bound(&d, m, look, cause, alone)
	}
	d.Waits = d.Trigger == messages.TriggerRun && q != nil && d.Answer == nil
	runs := d.Trigger == messages.TriggerRun
	metadata.Passive, metadata.TriggerRAG = new(!runs), new(runs)
	metadata.RecipientID = "bot:" + m.Internal.Agent
	d.Metadata = metadata.Bytes()
	return d
}

// loopingText ends the runs that an agent causes itself.
const loopingText = "I have gone on by myself many times, so I stop here. Write to me if I should go on."

// bound bounds the runs that an agent causes itself. They count to the limits of the sender whose run was their cause, and of the
// workspace. Those that no person and no bot has asked for directly are bounded as those of bots. Runs of a workstream are bounded
// by its parent's. The schedule of an operator has no such sender: its run needs tokens of the workspace alone. If there are none, it does not
// run, without words.
func (g gate) bound(d *record.Decision, m *event.Message, look record.Look, cause string, alone bool) {
	if event.IsWorkstream(m.Internal.Thread) {
		return
	}
	guard := g.Policy.LoopGuard
	own, refused := 0, 0
	if alone {
		own, refused = look.OwnRuns(g.now().Add(-guard.Per))
	}
	if cause != "" {
		paying := *m
		paying.LimitedAs = cause
		d.Budgets = g.budgets(&paying, g.now())
	} else {
		_, d.Budgets = g.Tokens.Of("", g.now())
	}
	switch {
	case alone && own >= guard.Runs:
		*d = passive(event.ReasonLoopGuard)
		if refused == 0 {
			d.Tell = &record.Tell{Text: loopingText}
		}
	case g.over:
		budgets := d.Budgets
		*d = passive(event.ReasonLimit)
		if d.Budgets = budgets; cause != "" {
			d.Tell = &record.Tell{Text: g.unpaidText()}
		}
	}
}

// asked returns the open question of the thread, whichever agent of the workspace has asked it; nil for none.
func (g gate) asked(look record.Look) *runs.Question {
	q := look.Question()
	if q != nil && q.Agent != g.Agent && g.HasAgent != nil && !g.HasAgent(q.Agent) {
		return nil
	}
	return q
}
