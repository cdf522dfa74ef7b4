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

// OperatorAnswer is an operator's answer to the open question of a thread. It is the body of an envelope, so that any
// node can record it.
type OperatorAnswer struct {
	// ID makes the answer the same as an earlier one with the ID.
	ID      string          `json:"id"`
	By      string          `json:"by"` // the operator's id
	Run     string          `json:"run"`
	Thread  event.ThreadKey `json:"thread"`
	Channel string          `json:"channel"`
	Parent  string          `json:"parent,omitempty"` // of the channel
	Agent   string          `json:"agent,omitempty"`  // that asks, if it works in a workstream
	// Option is the number of the chosen option, from 0; -1 for other words. Text is its label, or the words.
	Option int    `json:"option"`
	Text   string `json:"text"`
}

// AnswerQuestion gives an operator's answer to intake as the message of a person, and returns its envelope. The
// envelope is ignored if the question is closed by then. Wait waits for its result.
func (in *Ingest) AnswerQuestion(ctx context.Context, platform event.Platform, workspace string, a OperatorAnswer) (envelope int64, err error) {
	body, err := json.Marshal(a)
	if err != nil {
		return 0, err
	}
	receipt, err := in.Accept(ctx, event.Envelope{Workspace: workspace, Platform: platform, Transport: event.ByOperator, ReceivedAt: in.Now(), Body: body})
	return receipt.ID, err
}

// keys implements ours.
func (a *OperatorAnswer) keys() (keys event.Keys, err error) {
	if a.ID == "" || a.By == "" || a.Run == "" || a.Thread == "" {
		return keys, errors.New("an operator's answer needs id, by, run and thread")
	}
	return event.Keys{
		Kind: event.KindAction, Dedupe: a.externalID(), Thread: a.Thread, Channel: event.Channel{ID: a.Channel, Parent: a.Parent}, MessageID: a.externalID(),
	}, nil
}

// event implements ours.
func (a *OperatorAnswer) event(envelope event.Envelope) event.Event {
	m := &event.Message{
		ExternalID: a.externalID(), Thread: a.Thread, Channel: event.Channel{ID: a.Channel, Parent: a.Parent}, Content: a.Text, SentAt: envelope.ReceivedAt,
		Addressed: event.AddressedAction, Answers: a.Run, Metadata: event.Metadata{
			Source: string(envelope.Platform), SenderID: event.OperatorSender(a.By), SenderDisplayName: a.By[strings.LastIndexByte(a.By, ':')+1:],
			SenderType: event.Human, ChannelExternalID: a.Channel,
		},
	}
	if a.Agent != "" {
		m.Metadata.RecipientID = "bot:" + a.Agent
	}
	if a.Option >= 0 {
		m.Pressed = runs.Button(a.Run, a.Option)
	}
	return event.Event{Kind: event.KindAction, Message: m}
}

// externalID is the id of the answer's message in its workspace.
func (a *OperatorAnswer) externalID() string { return event.OperatorSender(a.ID) }

// byOperator decides about an operator's answer. The policy is about people of the platform, so an operator's role
// takes its place. The answer is ignored unless it is to the open question.
func (g gate) byOperator(m *event.Message, look record.Look) record.Decision {
	q, option := g.question(look), -1
	if q != nil {
		option = pressedOption(m.Pressed, q)
	}
	if q == nil || q.Run != m.Answers || option < 0 && m.Pressed != "" {
		return record.Decision{Ignore: true, Trigger: messages.TriggerNone, Reason: event.ReasonNoAnswer}
	}
	d := record.Decision{Trigger: messages.TriggerRun, Reason: event.ReasonAction, Answer: &runs.Answer{Text: m.Content}}
	if option >= 0 {
		d.Answer.Option = q.Options[option].ID
	}
	d.Metadata = g.metadata(m, d, m.Addressed)
	return d
}
