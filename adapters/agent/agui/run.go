package agui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/ingest/card"
	"parley/ingest/stream"
)

// run is one run's answer.
type run struct {
	client *remote.Client
	answer *remote.Answer
	order  order
	chunks chunks
	asked  map[string]bool

	halves map[string]*remote.Halves // of deltas, by the id of their message
	texts  texts
	calls  map[string]*call
	begun  []*call         // in their order
	tools  map[string]bool // the names of the client's own tools
	input  assembly.Input
	limit  int  // of the answer, in bytes
	room   int  // for messages about the agent's work, in bytes
	lost   bool // a MESSAGES_SNAPSHOT was too long

	given  json.RawMessage // the client's state, with which the agent's begins; nil after a patch that did not fit
	state  *document       // nil if no event was about it, or if it is unknown
	work   int             // that patches may still do
	usage  json.RawMessage
	result json.RawMessage
	snaps  []snapshot // of the last MESSAGES_SNAPSHOT
	asks   []json.RawMessage
}

// call is a tool call.
type call struct {
	id, name string
	args     strings.Builder
	cut      bool // there was no room for all arguments
	done     bool // it has a result
}

func newRun(client *remote.Client, answer *remote.Answer, limit int, input assembly.Input) *run {
	r := &run{
		client: client, answer: answer, chunks: chunks{}, asked: map[string]bool{}, input: input, given: runinput.Or(input.Given.State, `{}`), limit: limit, room: limit / 2, work: maxWork,
		halves: map[string]*remote.Halves{}, texts: texts{open: map[string]*textMessage{}}, calls: map[string]*call{}, tools: map[string]bool{},
	}
	for _, m := range input.Messages {
		r.asked[m.ID] = true
	}
	var tools []runinput.Tool
	_ = json.Unmarshal(runinput.Or(input.Given.Tools, `[]`), &tools) // the reader has checked it
	for _, t := range tools {
		r.tools[t.Name] = !isOurs(input, t.Name)
	}
	return r
}

// take reads one event of the stream. It ignores events after RUN_FINISHED and RUN_ERROR. A fault of
// form or order is permanent: the agent has begun to work, and its tools have effects.
func (r *run) take(ctx context.Context, event remote.Event) error {
	if r.order.ended {
		return nil
	}
	if event.Cut {
		return r.skip(typeOf(event.Data))
	}
	e, err := decode(event.Data)
	if err != nil && e.Type == "" { // the connection may have broken it
		return r.client.Invalid("the stream contains an invalid event", err)
	}
	if err == nil && e.Type == "TEXT_MESSAGE_CONTENT" && len(r.chunks) == 0 { // it expands to itself: nearly all events do
		return r.step(ctx, e)
	}
	var events []streamEvent
	if err == nil {
		events, err = r.chunks.expand(e)
	}
	if err != nil {
		return r.disordered("the stream contains an invalid event", err)
	}
	for _, e := range events {
		if err := r.step(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// step checks the order of an event and takes its effect.
func (r *run) step(ctx context.Context, e streamEvent) error {
	if begin, ok := r.order.begins(e); ok {
		if err := r.step(ctx, begin); err != nil {
			return err
		}
	}
	if err := r.order.check(e); err != nil {
		return r.disordered("the order of the events is wrong", err)
	}
	return r.apply(ctx, e)
}

func (r *run) disordered(text string, cause error) error {
	fault := r.client.Invalid(text, cause)
	fault.Permanent = true
	return fault
}

// skip passes by an event of a type that is too long, unless the run cannot go on without it.
func (r *run) skip(kind string) error {
	switch kind {
	case "STATE_SNAPSHOT", "STATE_DELTA":
		return r.forget(kind, errors.New("the event is too long"))
	case "MESSAGES_SNAPSHOT":
		r.lost = true
	case "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "RAW", "CUSTOM", "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "TOOL_CALL_CHUNK", "REASONING_ENCRYPTED_VALUE":
	default:
		return r.client.LongEvent()
	}
	return nil
}

// apply takes the effect of one event.
func (r *run) apply(ctx context.Context, e streamEvent) error {
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
		return r.tell(stream.Message{Type: stream.Update, Text: e.StepName, Details: e.raw})
	case "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA":
		return r.tell(stream.Message{Type: stream.Update, Details: e.raw, ActivityID: e.MessageID})
	case "STATE_SNAPSHOT", "STATE_DELTA":
		return r.change(ctx, e)
	case "MESSAGES_SNAPSHOT":
		r.snaps, r.lost = e.Messages, false
	case "RUN_FINISHED":
		return r.finished(e)
	case "RUN_ERROR":
		return r.client.Failure("the agent reports: "+cmp.Or(strings.TrimSpace(e.Message+" "+e.Code), "an error without a message"), 0)
	case "REASONING_MESSAGE_END":
		return r.answer.EndThought()
	case "RUN_STARTED", "STEP_FINISHED", "REASONING_START", "REASONING_END", "REASONING_MESSAGE_START":
	default: // an event that only the agent's own clients know
		return r.tell(stream.Message{Type: stream.System, Details: e.raw})
	}
	return nil
}

// tell emits a message about the agent's work. If the run has no room left for such messages, it is
// left out: nobody needs it for the answer.
func (r *run) tell(m stream.Message) error {
	size := len(m.Text) + len(m.Details)
	if size > r.room {
		return nil
	}
	r.room -= size
	return r.answer.Say(m)
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

// tool takes an event of a tool call, which is shown as progress.
func (r *run) tool(e streamEvent) error {
	said := stream.Message{Type: stream.Update, ActivityID: e.ToolCallID}
	details := map[string]any{"tool_use_id": e.ToolCallID}
	switch e.Type {
	case "TOOL_CALL_START":
		r.calls[e.ToolCallID] = &call{id: e.ToolCallID, name: e.ToolCallName}
		r.begun = append(r.begun, r.calls[e.ToolCallID])
		said.Text = e.ToolCallName
		details["tool"], details["tool_event"] = e.ToolCallName, "started"
	case "TOOL_CALL_ARGS":
		delta, err := r.delta(e)
		if c := r.calls[e.ToolCallID]; c.args.Len()+len(delta) <= r.room {
			c.args.WriteString(delta)
		} else {
			c.cut = true
		}
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
		card.Lift(details, json.RawMessage(e.Content))
	}
	var err error
	if said.Details, err = json.Marshal(details); err != nil {
		return err
	}
	return r.tell(said)
}

// maxState bounds the agent's state, in bytes. The reply keeps a smaller one alone.
const maxState = 1 << 20

// change applies a snapshot or a JSON Patch to the agent's state. A state that is too large, or a
// patch that does not fit, is no fault of the answer, as in the protocol's own client.
func (r *run) change(ctx context.Context, e streamEvent) (err error) {
	limit := min(maxState, r.limit)
	switch {
	case e.Type == "STATE_SNAPSHOT":
		r.state, err = newDocument(e.Snapshot, limit, &r.work)
	case r.state == nil && r.given == nil:
		return nil
	case r.state == nil:
		r.state, err = newDocument(r.given, limit, &r.work)
	}
	if err == nil && e.Type == "STATE_DELTA" {
		err = r.state.patch(ctx, e.Delta)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return r.forget(e.Type, err)
	}
	return nil
}

// forget makes the agent's state unknown until the next snapshot, because an event was of no use.
func (r *run) forget(kind string, cause error) error {
	r.state, r.given = nil, nil
	return r.answer.Say(stream.Message{Type: stream.Warning, Text: r.client.Clean("the agent's state is unknown: " + kind + ": " + cause.Error())})
}

func (r *run) finished(e streamEvent) error {
	r.answer.Done()
	r.usage, r.result = e.Usage, e.Result
	r.answer.Spent(e.Usage, "")
	if err := r.endTexts(); err != nil || e.Outcome == nil {
		return err
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
	if r.texts.shown == "" {
		if r.lost {
			return r.client.LongEvent()
		}
		if err := r.answer.Text(r.fromSnapshot()); err != nil {
			return err
		}
	}
	if err := r.answer.End(); err != nil {
		return err
	}
	details, err := r.own()
	if err != nil {
		return err
	}
	if calls := r.ourCalls(); len(calls) > 0 && len(r.asks) == 0 {
		return r.answer.Calls(r.input.Called, calls, nil)
	}
	if len(r.asks) == 0 {
		if err := r.unanswered(); err != nil {
			return err
		}
		return r.answer.Finish("", details)
	}
	text, asked, faults := ask(r.asks)
	for _, fault := range faults {
		if err := r.answer.Say(stream.Message{Type: stream.Warning, Text: fault}); err != nil {
			return err
		}
	}
	if details, err = json.Marshal(asked); err != nil {
		return err
	}
	return r.answer.Ask(text, details)
}

// unanswered returns an error if the run has no text and ended with a tool call for the client, and
// the client has no tools: people would wait for an answer in vain.
func (r *run) unanswered() error {
	if len(r.tools) > 0 || strings.TrimSpace(r.answer.String()) != "" {
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
	card.Lift(own, r.result)
	if calls := r.clientCalls(); len(calls) > 0 {
		own["toolCalls"] = calls
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

// ourCalls returns the calls of Parley's tools that have no result.
func (r *run) ourCalls() []runinput.Call {
	return r.open(func(name string) bool { return isOurs(r.input, name) })
}

// clientCalls returns the calls of the client's own tools that have no result.
func (r *run) clientCalls() []runinput.Call {
	return r.open(func(name string) bool { return r.tools[name] })
}

// open returns the calls of some tools that have no result.
func (r *run) open(of func(name string) bool) (calls []runinput.Call) {
	for _, c := range r.begun {
		if r.calls[c.id] == c && !c.done && !c.cut && of(c.name) {
			calls = append(calls, runinput.Call{ID: c.id, Name: c.name, Arguments: c.args.String()})
		}
	}
	return calls
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
