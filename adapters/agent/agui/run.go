package agui

import (
	"cmp"
	"encoding/json"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/stream"
)

// run is one run's answer.
type run struct {
	client *remote.Client
	answer *remote.Answer
	order  order
	chunk  streamEvent // the open message or tool call of chunk events; no type if none is open
	asked  map[string]bool

	halves map[string]*remote.Halves // of deltas, by the id of their message
	shown  string                    // the id of the text message that was written last
	others map[string]bool           // open text messages that are no answer: of other roles and of subagents
	calls  map[string]*call
	state  json.RawMessage
	usage  json.RawMessage
	snaps  []snapshot // of the last MESSAGES_SNAPSHOT
	asks   []json.RawMessage
}

// call is a tool call.
type call struct {
	name string
	args strings.Builder
}

func newRun(client *remote.Client, answer *remote.Answer, input assembly.Input) *run {
	r := &run{
		client: client, answer: answer, asked: map[string]bool{}, state: json.RawMessage(`{}`),
		halves: map[string]*remote.Halves{}, others: map[string]bool{}, calls: map[string]*call{},
	}
	for _, m := range input.Messages {
		r.asked[m.ID] = true
	}
	return r
}

// take reads one event of the stream. It ignores events after RUN_FINISHED and RUN_ERROR.
func (r *run) take(event remote.Event) error {
	if r.order.ended {
		return nil
	}
	e, err := decode(event.Data)
	if err != nil {
		return r.client.Invalid("the stream contains an invalid event", err)
	}
	events, err := r.expand(e)
	if err != nil {
		return r.client.Invalid("the stream contains an invalid event", err)
	}
	for _, e := range events {
		if err := r.order.check(e); err != nil {
			return r.client.Invalid("the order of the events is wrong", err)
		}
		if err := r.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// transparent are the events that end no open chunk.
var transparent = map[string]bool{"RAW": true, "ACTIVITY_SNAPSHOT": true, "ACTIVITY_DELTA": true, "REASONING_ENCRYPTED_VALUE": true}

// expand turns a chunk event into the events that begin, continue and end its message or
// tool call. Any other event ends the open one before it.
func (r *run) expand(e streamEvent) (events []streamEvent, err error) {
	kind, isChunk := strings.CutSuffix(e.Type, "_CHUNK")
	if !isChunk {
		if r.chunk.Type != "" && !transparent[e.Type] {
			events = append(events, r.endChunk())
		}
		return append(events, e), nil
	}
	e.MessageID = cmp.Or(e.MessageID, r.chunk.MessageID)
	e.ToolCallID = cmp.Or(e.ToolCallID, r.chunk.ToolCallID)
	if r.chunk.Type != "" && (kind != r.chunk.Type || e.MessageID != r.chunk.MessageID || e.ToolCallID != r.chunk.ToolCallID) {
		events = append(events, r.endChunk())
	}
	if r.chunk.Type == "" {
		if err := e.mustBegin(kind); err != nil {
			return nil, err
		}
		begin := e
		begin.Type = kind + "_START"
		events = append(events, begin)
		r.chunk = e
		r.chunk.Type = kind
	}
	if len(e.Delta) > 0 && string(e.Delta) != "null" {
		e.Type = kind + "_CONTENT"
		if kind == "TOOL_CALL" {
			e.Type = kind + "_ARGS"
		}
		events = append(events, e)
	}
	return events, nil
}

func (r *run) endChunk() streamEvent {
	e := r.chunk
	e.Type += "_END"
	r.chunk = streamEvent{}
	return e
}

// apply takes the effect of one event.
func (r *run) apply(e streamEvent) error {
	switch e.Type {
	case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END":
		return r.text(e)
	case "REASONING_MESSAGE_CONTENT":
		delta, err := r.delta(e)
		if err != nil {
			return err
		}
		return r.answer.Thought(delta)
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT":
		return r.tool(e)
	case "STEP_STARTED":
		return r.answer.Say(stream.Message{Type: stream.Update, Text: e.StepName, Details: e.raw})
	case "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA":
		return r.answer.Say(stream.Message{Type: stream.Update, Details: e.raw, ActivityID: e.MessageID})
	case "STATE_SNAPSHOT", "STATE_DELTA":
		return r.change(e)
	case "MESSAGES_SNAPSHOT":
		r.snaps = e.Messages
	case "RUN_FINISHED":
		return r.finished(e)
	case "RUN_ERROR":
		return r.client.Failure("the agent reports: "+strings.TrimSpace(e.Message+" "+e.Code), 0)
	case "RUN_STARTED", "STEP_FINISHED", "REASONING_START", "REASONING_END", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END":
	default: // an event that only the agent's own clients know
		return r.answer.Say(stream.Message{Type: stream.System, Details: e.raw})
	}
	return nil
}

// delta returns the text of a delta, joined with the half of a character before it.
func (r *run) delta(e streamEvent) (string, error) {
	id := e.MessageID + e.ToolCallID
	if r.halves[id] == nil {
		r.halves[id] = new(remote.Halves)
	}
	delta, err := r.halves[id].Join(e.Delta)
	if err != nil {
		return "", r.client.Invalid("the stream contains an invalid event: "+e.Type+".delta", err)
	}
	return delta, nil
}

// text takes an event of a text message. The messages of the assistant itself are the
// answer, each a paragraph of its own.
func (r *run) text(e streamEvent) error {
	switch e.Type {
	case "TEXT_MESSAGE_START":
		if e.SubagentRunID != "" || e.Role != "" && e.Role != "assistant" {
			r.others[e.MessageID] = true
		}
		return nil
	case "TEXT_MESSAGE_END":
		delete(r.others, e.MessageID)
		delete(r.halves, e.MessageID)
		return nil
	}
	delta, err := r.delta(e)
	if err != nil || delta == "" || r.others[e.MessageID] {
		return err
	}
	if r.shown != "" && r.shown != e.MessageID {
		delta = "\n\n" + delta
	}
	r.shown = e.MessageID
	return r.answer.Text(delta)
}

// tool takes an event of a tool call, which is shown as progress.
func (r *run) tool(e streamEvent) error {
	said := stream.Message{Type: stream.Update, ActivityID: e.ToolCallID}
	details := map[string]any{"tool_use_id": e.ToolCallID}
	switch e.Type {
	case "TOOL_CALL_START":
		r.calls[e.ToolCallID] = &call{name: e.ToolCallName}
		said.Text = e.ToolCallName
		details["tool"], details["tool_event"] = e.ToolCallName, "started"
	case "TOOL_CALL_ARGS":
		delta, err := r.delta(e)
		r.calls[e.ToolCallID].args.WriteString(delta)
		return err
	case "TOOL_CALL_END":
		c := r.calls[e.ToolCallID]
		said.Text = c.name
		details["tool"], details["tool_event"], details["arguments"] = c.name, "progress", c.args.String()
	case "TOOL_CALL_RESULT":
		if c := r.calls[e.ToolCallID]; c != nil {
			said.Text, details["tool"] = c.name, c.name
			delete(r.calls, e.ToolCallID)
		}
		details["tool_event"], details["result"] = "completed", e.Content
	}
	var err error
	if said.Details, err = json.Marshal(details); err != nil {
		return err
	}
	return r.answer.Say(said)
}

// change applies a snapshot or a JSON Patch (RFC 6902) to the agent's state.
func (r *run) change(e streamEvent) error {
	if e.Type == "STATE_SNAPSHOT" {
		r.state = e.Snapshot
		return nil
	}
	patch, err := jsonpatch.DecodePatch(e.Delta)
	if err == nil {
		r.state, err = patch.Apply(r.state)
	}
	if err != nil {
		return r.client.Invalid("the stream contains an invalid event: STATE_DELTA.delta", err)
	}
	return nil
}

func (r *run) finished(e streamEvent) error {
	r.answer.Done()
	r.usage = e.Usage
	if e.Outcome == nil {
		return nil
	}
	r.asks = e.Outcome.Interrupts
	if e.Outcome.Type == "cancelled" {
		return r.client.Failure("the agent cancelled the run", 0)
	}
	return nil
}

// end ends the answer after the stream. The state and the token counts become keys of the
// reply. A run that was interrupted asks the people in the thread.
func (r *run) end() error {
	if r.shown == "" {
		if err := r.answer.Text(r.fromSnapshot()); err != nil {
			return err
		}
	}
	own := map[string]json.RawMessage{}
	if string(r.state) != "{}" {
		own["state"] = r.state
	}
	if len(r.usage) > 0 && string(r.usage) != "null" {
		own["usage"] = r.usage
	}
	var details json.RawMessage
	var err error
	if len(own) > 0 {
		if details, err = json.Marshal(own); err != nil {
			return err
		}
	}
	if len(r.asks) == 0 {
		return r.answer.Finish("", details)
	}
	if details, err = json.Marshal(map[string]any{"interrupts": r.asks}); err != nil {
		return err
	}
	return r.answer.Ask(r.question(), details)
}

// question returns the messages of the interrupts.
func (r *run) question() string {
	var lines []string
	for _, raw := range r.asks {
		var i struct{ Reason, Message string }
		_ = json.Unmarshal(raw, &i) // an interrupt without words has none
		lines = append(lines, cmp.Or(i.Message, i.Reason, "The agent needs an answer to go on."))
	}
	return strings.Join(lines, "\n")
}

// fromSnapshot returns the answer of an agent that sends whole messages only: the
// assistant's messages that the input did not contain.
func (r *run) fromSnapshot() string {
	var texts []string
	for _, m := range r.snaps {
		if m.Role == "assistant" && !r.asked[m.ID] {
			if t := text(m.Content); t != "" {
				texts = append(texts, t)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
