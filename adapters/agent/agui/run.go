package agui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/stream"
)

// run is one run's answer.
type run struct {
	client *remote.Client
	answer *remote.Answer
	order  order
	chunks chunks
	asked  map[string]bool

	halves map[string]*remote.Halves // of deltas, by the id of their message
	shown  string                    // the id of the text message that was written last
	others map[string]bool           // open text messages that are no answer: of other roles and of subagents
	calls  map[string]*call
	given  json.RawMessage // the client's state, with which the agent's begins; nil after a patch that did not fit
	tools  bool            // the client has tools of its own
	limit  int             // of the state, in bytes
	state  *document       // nil if no event was about it, or if it is unknown
	usage  json.RawMessage
	result json.RawMessage
	snaps  []snapshot // of the last MESSAGES_SNAPSHOT
	asks   []json.RawMessage
}

// call is a tool call.
type call struct {
	name string
	args strings.Builder
	done bool // it has a result
}

func newRun(client *remote.Client, answer *remote.Answer, limit int, input assembly.Input) *run {
	r := &run{
		client: client, answer: answer, chunks: chunks{}, asked: map[string]bool{}, given: runinput.Or(input.Given.State, `{}`), limit: limit,
		halves: map[string]*remote.Halves{}, others: map[string]bool{}, calls: map[string]*call{},
	}
	for _, m := range input.Messages {
		r.asked[m.ID] = true
	}
	var tools []json.RawMessage
	r.tools = json.Unmarshal(runinput.Or(input.Given.Tools, `[]`), &tools) == nil && len(tools) > 0
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
	events, err := r.chunks.expand(e)
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
	case "REASONING_MESSAGE_END":
		return r.answer.EndThought()
	case "RUN_STARTED", "STEP_FINISHED", "REASONING_START", "REASONING_END", "REASONING_MESSAGE_START":
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
			said.Text, details["tool"], c.done = c.name, c.name, true
		}
		details["tool_event"], details["result"] = "completed", e.Content
	}
	var err error
	if said.Details, err = json.Marshal(details); err != nil {
		return err
	}
	return r.answer.Say(said)
}

// change applies a snapshot or a JSON Patch to the agent's state. A patch that does not fit is no
// fault of the answer, as in the protocol's own client: the state is unknown until the next snapshot.
func (r *run) change(e streamEvent) (err error) {
	switch {
	case e.Type == "STATE_SNAPSHOT":
		if r.state, err = newDocument(e.Snapshot, r.limit); err != nil {
			return r.client.Invalid("the stream contains an invalid event: "+e.Type, err)
		}
		return nil
	case r.state == nil && r.given == nil:
		return nil
	case r.state == nil:
		r.state, err = newDocument(r.given, r.limit)
	}
	if err == nil {
		err = r.state.patch(e.Delta)
	}
	if err == nil {
		return nil
	}
	r.state, r.given = nil, nil
	return r.answer.Say(stream.Message{Type: stream.Warning, Text: r.client.Clean("the agent's state is unknown: " + e.Type + ": " + err.Error())})
}

func (r *run) finished(e streamEvent) error {
	r.answer.Done()
	r.usage, r.result = e.Usage, e.Result
	if e.Outcome == nil {
		return nil
	}
	r.asks = e.Outcome.Interrupts
	if e.Outcome.Type == "cancelled" {
		return r.client.Failure("the agent cancelled the run", 0)
	}
	return nil
}

// end ends the answer after the stream. The state, the result and the token counts become keys
// of the reply. A run that was interrupted asks the people in the thread.
func (r *run) end() error {
	if r.shown == "" {
		if err := r.answer.Text(r.fromSnapshot()); err != nil {
			return err
		}
	}
	details, err := r.own()
	if err != nil {
		return err
	}
	if len(r.asks) == 0 {
		if err := r.unanswered(); err != nil {
			return err
		}
		return r.answer.Finish("", details)
	}
	text, asked := ask(r.asks)
	if details, err = json.Marshal(asked); err != nil {
		return err
	}
	return r.answer.Ask(text, details)
}

// unanswered returns an error if the run has no text and ended with a tool call for the client, and
// the client has no tools: people would wait for an answer in vain.
func (r *run) unanswered() error {
	if r.tools || strings.TrimSpace(r.answer.String()) != "" {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(r.calls)) {
		if c := r.calls[id]; !c.done {
			fault := r.client.Invalid(fmt.Sprintf("the agent called the tool %q instead of answering, and it was offered none", c.name), nil)
			fault.Permanent = true // a repetition would call the agent's own tools again
			return fault
		}
	}
	return nil
}

// own returns the agent's own keys of the reply; nil for none.
func (r *run) own() (json.RawMessage, error) {
	own := map[string]any{}
	if r.state != nil {
		own["state"] = r.state.value
	}
	for key, value := range map[string]json.RawMessage{"usage": r.usage, "result": r.result} {
		if len(value) > 0 && string(value) != "null" {
			own[key] = value
		}
	}
	if len(own) == 0 {
		return nil, nil
	}
	raw, err := encode(own)
	if err != nil {
		return nil, r.client.Invalid("the agent's state cannot be stored", err)
	}
	return raw, nil
}

// fromSnapshot returns the answer of an agent that sends whole messages only: the
// assistant's messages after the last user's that the input did not contain. An agent that keeps
// the thread itself has earlier answers under ids of its own.
func (r *run) fromSnapshot() string {
	var texts []string
	for _, m := range r.snaps {
		if m.Role == "user" {
			texts = nil
		}
		if m.Role == "assistant" && !r.asked[m.ID] {
			if t := text(m.Content); t != "" {
				texts = append(texts, t)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
