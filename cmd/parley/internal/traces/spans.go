package traces

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/trace"
)

// Recorded records a message that is new: from its arrival to the decision about it. It is the parent of the message's run.
func (t *Traces) Recorded(p *envelopes.Pending, r record.Result) {
	if t == nil || r.Disposition != event.Stored || r.Message == nil {
		return
	}
	m := r.Message
	o := t.origin(tracedOf(m))
	if !o.Sampled {
		return
	}
	recorded, accepted := t.Now(), p.AcceptedAt
	if accepted.IsZero() || !accepted.Before(m.CreatedAt) { // one transaction has done both
		accepted = recorded
	}
	received := earlier(p.Envelope.ReceivedAt, accepted)
	about := slices.Concat(
		[]attribute.KeyValue{
			attribute.String("parley.workspace", p.Envelope.Workspace), attribute.String("parley.platform", string(p.Envelope.Platform)),
			attribute.String("parley.thread", string(r.Thread)), attribute.String("parley.message.id", m.UUID), attribute.Int64("parley.message.seq", m.Seq),
			attribute.String("parley.sender.id", m.SenderID), attribute.String("parley.decision", string(m.Trigger)),
		},
		text("parley.decision.reason", m.Reason), text("parley.message.external_id", m.ExternalID), text("parley.transport", p.Envelope.Transport))
	about = append(about, t.content("parley.message.content", m.Content)...)
	var links []api.Link
	if !o.Cause.IsZero() {
		links = append(links, link(o.Cause, "injected by"))
	}
	t.record(span{at: o.Place, parent: o.Caller, name: "message " + string(p.Envelope.Platform), kind: api.SpanKindConsumer, begun: received, end: recorded, about: about, links: links})
	t.record(span{at: o.Below("durable"), parent: o.Place, name: "durable", begun: received, end: accepted, about: []attribute.KeyValue{attribute.Int64("parley.envelope", p.ID)}})
	t.record(span{
		at: o.Below("recorded"), parent: o.Place, name: "recorded", begun: accepted, end: recorded,
		about: slices.Concat([]attribute.KeyValue{attribute.String("parley.decision", string(m.Trigger))}, text("parley.decision.reason", m.Reason)),
	})
}

// ends are the outcomes with which a run ends.
var ends = []turn.Outcome{turn.Answered, turn.Failed, turn.Canceled, turn.Interrupted, turn.Dropped, turn.Quiet}

// RunEnded records an attempt of a run, its tools, and the run itself if it has ended.
func (t *Traces) RunEnded(run *runs.Run, r turn.Report) {
	if t == nil || r.BegunAt.IsZero() {
		return
	}
	ctx := context.Background()
	at := t.placeOf(ctx, run.ID)
	if !at.Sampled {
		return
	}
	t.attempt(attempt(at, r.BegunAt), at, run, r)
	if slices.Contains(ends, r.Outcome) {
		t.turn(ctx, at, run, r)
	}
}

// WaitingRunEnded records a run that has ended between two attempts.
func (t *Traces) WaitingRunEnded(id string, outcome turn.Outcome) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	at := t.placeOf(ctx, id)
	if !at.Sampled {
		return
	}
	ended, err := t.Store.FindRun(ctx, id)
	if err != nil {
		return // without an answer of the store, there is no span
	}
	run := &runs.Run{ID: id, Agent: ended.Agent, BegunAt: ended.BegunAt}
	run.Workspace, run.ThreadKey, run.ThreadID = ended.Workspace, ended.Thread, ended.ThreadID
	t.turn(ctx, at, run, turn.Report{Outcome: outcome, BegunAt: ended.EndedAt})
}

// ofRun are the attributes of a run and its attempts.
func ofRun(run *runs.Run) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("gen_ai.agent.name", run.Agent), attribute.String("gen_ai.agent.id", run.Agent), attribute.String("gen_ai.conversation.id", run.ThreadID),
		attribute.String("parley.run", run.ID), attribute.String("parley.workspace", run.Workspace), attribute.String("parley.thread", string(run.ThreadKey)),
	}
}

// attempt records an attempt, in the terms of OpenTelemetry's conventions for generative AI, and below it the calls of tools.
func (t *Traces) attempt(at, parent trace.Place, run *runs.Run, r turn.Report) {
	agent := t.Agent(run.Agent)
	operation, of := "invoke_agent", run.Agent
	if agent.Model != "" {
		operation, of = "chat", agent.Model
	}
	about := slices.Concat(ofRun(run), []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", operation), attribute.String("gen_ai.provider.name", cmp.Or(agent.Kind, "unknown")),
		attribute.Int64("parley.attempt", run.Attempts+1), attribute.String("parley.outcome", string(r.Outcome)), attribute.String("parley.node", t.Node),
	}, text("gen_ai.request.model", agent.Model))
	if r.Usage.TokensIn > 0 || r.Usage.TokensOut > 0 {
		about = append(about, attribute.Int64("gen_ai.usage.input_tokens", r.Usage.TokensIn), attribute.Int64("gen_ai.usage.output_tokens", r.Usage.TokensOut))
	}
	if r.Usage.Finish != "" {
		about = append(about, attribute.StringSlice("gen_ai.response.finish_reasons", []string{event.Cut(event.Text(r.Usage.Finish), maxName)}))
	}
	if t.Traces.Content {
		about = append(about, inputs(r.Input.Messages)...)
		if r.Reply != nil {
			about = append(about, attribute.String("gen_ai.output.messages", said(r.Reply.Content, r.Usage.Finish)))
		}
	}
	end := r.BegunAt.Add(r.Took)
	t.record(span{at: at, parent: parent, name: operation + " " + of, kind: api.SpanKindClient, begun: r.BegunAt, end: end, about: about}, func(s api.Span) {
		if r.FirstToken > 0 {
			s.SetAttributes(attribute.Float64("gen_ai.response.time_to_first_chunk", r.FirstToken.Seconds()))
			s.AddEvent("gen_ai.first_token", api.WithTimestamp(r.BegunAt.Add(r.FirstToken)))
		}
		if r.Err != nil || r.Outcome == turn.Retried || r.Outcome == turn.Failed {
			s.SetAttributes(attribute.String("error.type", kindOf(r)))
			s.SetStatus(codes.Error, t.words(r.Err))
		}
	})
	for i, tool := range r.Tools {
		t.tool(at, i, tool)
	}
}

// tool records a call of a tool in an attempt.
func (t *Traces) tool(in trace.Place, n int, tool turn.Tool) {
	name := event.Cut(event.Text(tool.Name), maxName)
	about := slices.Concat([]attribute.KeyValue{attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name)},
		text("gen_ai.tool.call.id", event.Cut(event.Text(tool.ID), maxName)), t.content("gen_ai.tool.call.arguments", tool.Arguments), t.content("gen_ai.tool.call.result", tool.Result))
	t.record(span{at: turn.ToolPlace(in, n), parent: in, name: "execute_tool " + name, begun: tool.BegunAt, end: tool.EndedAt, about: about}, func(s api.Span) {
		if tool.Failed {
			s.SetAttributes(attribute.String("error.type", "tool"))
			description := ""
			if t.Traces.Content {
				description = cut(tool.Reason)
			}
			s.SetStatus(codes.Error, description)
		}
	})
}

// turn records a run that has ended, with links to its further messages and to the runs of its workstreams.
func (t *Traces) turn(ctx context.Context, at trace.Place, run *runs.Run, r turn.Report) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	var parent trace.Place
	var links []api.Link
	for i := range run.Messages {
		m := &run.Messages[i]
		if o := t.origin(tracedOf(m)); o.Trace == at.Trace && parent.IsZero() {
			parent = o.Place
		} else {
			links = append(links, link(o.Place, "message"))
		}
		if id, ok := event.ReportOf(m.ExternalID); ok {
			if _, task, err := t.Store.WorkstreamOf(ctx, event.WorkstreamThread(id)); err == nil {
				links = append(links, link(t.origin(task).Place, "reported by"))
			}
		}
	}
	if parent.IsZero() { // the first message was deleted, or no message is known
		if first, err := t.Store.FirstOf(ctx, run.ID); err == nil {
			parent = t.origin(first).Place
		}
	}
	if event.IsWorkstream(run.ThreadKey) {
		if by, _, err := t.Store.WorkstreamOf(ctx, run.ThreadKey); err == nil {
			if p := t.placeOf(ctx, by); !p.IsZero() {
				links = append(links, link(p, "launched by"))
			}
		}
	}
	if t.Agent(run.Agent).Launches {
		tasks, _ := t.Store.TasksOf(ctx, run.ID) // without an answer of the store, the span has fewer links
		for _, task := range tasks {
			links = append(links, link(t.origin(task).Place, "workstream"))
		}
	}
	about := append(ofRun(run), attribute.String("parley.outcome", string(r.Outcome)))
	if n := len(run.Messages); n > 0 {
		about = append(about, attribute.Int("parley.messages", n))
	}
	t.record(span{at: at, parent: parent, name: "turn " + run.Agent, begun: run.BegunAt, end: r.BegunAt.Add(r.Took), about: about, links: links}, func(s api.Span) {
		if r.Outcome == turn.Failed {
			s.SetStatus(codes.Error, t.words(r.Err))
		}
	})
}

// Delivered records a delivery that has reached its final state. A post that grows or changes has one span.
func (t *Traces) Delivered(d *outbox.Delivery, state outbox.State, now time.Time) {
	if t == nil || d.Kind == outbox.KindRestate { // its state post has a span
		return
	}
	turn := t.placeOf(context.Background(), d.Run)
	if !turn.Sampled {
		return
	}
	about := slices.Concat([]attribute.KeyValue{
		attribute.Int64("parley.delivery", d.ID), attribute.String("parley.delivery.kind", string(d.Kind)), attribute.String("parley.delivery.state", string(state)),
		attribute.Int64("parley.delivery.attempts", d.Attempts), attribute.String("parley.workspace", d.Workspace), attribute.String("parley.thread", string(d.ThreadKey)),
		attribute.String("parley.run", d.Run), attribute.String("parley.node", t.Node),
	}, text("parley.delivery.external_id", d.PlatformID))
	t.record(span{at: turn.Below("delivery", d.Key), parent: turn, name: "deliver " + string(d.Kind), kind: api.SpanKindClient, begun: d.CreatedAt, end: now, about: about}, func(s api.Span) {
		if state != outbox.Sent {
			s.SetStatus(codes.Error, "")
		}
	})
}

// kindOf returns the kind of a failure: the status of the agent's server, or the outcome.
func kindOf(r turn.Report) string {
	if failure, ok := errors.AsType[*remote.Error](r.Err); ok && failure.Status != 0 {
		return fmt.Sprint(failure.Status)
	}
	return string(r.Outcome)
}

// maxName bounds a name that an agent or a model has chosen, in bytes.
const maxName = 100

// maxContent bounds each text of a span, in bytes. The spans that wait for a collector that is away have at most a few texts each.
const maxContent = 4 << 10

// content returns an attribute with words; none unless the configuration admits words.
func (t *Traces) content(name, words string) []attribute.KeyValue {
	if !t.Traces.Content {
		return nil
	}
	return text(name, cut(words))
}

// words returns the words of an error, which may quote people; none unless the configuration admits words.
func (t *Traces) words(err error) string {
	if err == nil || !t.Traces.Content {
		return ""
	}
	return cut(err.Error())
}

func cut(words string) string { return event.Cut(event.Text(words), maxContent) }

// message is a message in the form of OpenTelemetry's conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"` // of an answer, which must have it
}

type part struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// said returns the list of one answer as JSON.
func said(words, finish string) string {
	return many(message{"assistant", []part{{"text", cut(words)}}, cmp.Or(event.Cut(event.Text(finish), maxName), "stop")})
}

func many(list ...message) string {
	raw, _ := json.Marshal(list) // texts always encode
	return string(raw)
}

// maxInput bounds the words of an agent's input in a span, in bytes: those of the newest messages.
const maxInput = 4 * maxContent

// inputs returns the attribute of an agent's input.
func inputs(input []assembly.Message) []attribute.KeyValue {
	var list []message
	room := maxInput
	for _, m := range slices.Backward(input) {
		words := cut(m.Text())
		if room -= len(words); room < 0 {
			break
		}
		list = append(list, message{Role: string(m.Role), Parts: []part{{"text", words}}})
	}
	if len(list) == 0 {
		return nil
	}
	slices.Reverse(list)
	return []attribute.KeyValue{attribute.String("gen_ai.input.messages", many(list...))}
}
