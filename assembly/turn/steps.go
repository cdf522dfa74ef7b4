package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/stream"
	"parley/ingest/work"
)

// maxSteps bounds the requests of a run that end with calls of tools. After them the agent must answer.
const maxSteps = 20

// step is a request to the agent that ended with calls. It is stored before its calls are made, and after each of
// them, so that another attempt goes on where this one ended.
type step struct {
	Text    string
	Calls   []call
	Kept    json.RawMessage `json:",omitempty"` // that the agent's provider wants back with the calls
	Results []string        // of the calls that have ended
	// Joined are the UUIDs of the messages that joined the run after the calls, and Told the words of Parley up to the
	// thread_seq UpTo. Done says that they are complete.
	Joined []string
	Told   []string
	UpTo   int64
	Done   bool
}

// call is a runinput.Call as a step is stored.
type call struct{ ID, Name, Arguments string }

// work asks the agent until it answers. An agent that calls tools is asked again with their results.
func (a *attempt) work(ctx context.Context, input assembly.Input) error {
	if input.Tools = a.tools; len(input.Tools) == 0 {
		return a.profile.Agent.Run(ctx, input, a.said.emit)
	}
	input.Call = func(ctx context.Context, c runinput.Call) (string, error) { return a.call(ctx, "call/"+c.ID, c) }
	steps, err := a.steps(ctx)
	if err != nil {
		return err
	}
	for upTo := int64(0); ; input.Step++ {
		if input.Step == maxSteps {
			input.Tools = nil
		}
		if input.Step == len(steps) {
			s, err := a.request(ctx, input)
			if err != nil || s == nil {
				return err
			}
			steps = append(steps, *s)
		}
		s := &steps[input.Step]
		if !s.Done {
			joined, err := a.finish(ctx, input.Step, s, upTo)
			if err != nil {
				return err
			}
			input.Messages = append(input.Messages, joined...)
		}
		upTo = max(upTo, s.UpTo)
		input.Messages, input.Resume = assembly.AddStep(input.Messages, input.Step, s.assembled()), nil
	}
}

// request asks the agent once. It returns the step that the agent's calls begin; nil for an answer.
func (a *attempt) request(ctx context.Context, input assembly.Input) (s *step, err error) {
	input.Called = func(text string, calls []runinput.Call, kept json.RawMessage) {
		s = &step{Text: text, Calls: make([]call, len(calls)), Kept: kept}
		for i, c := range calls {
			s.Calls[i] = call(c)
		}
	}
	if err := a.profile.Agent.Run(ctx, input, a.said.emit); err != nil || s == nil {
		return nil, err
	}
	if s.Text != "" && a.said.grow != nil {
		a.said.grow("\n\n") // the people have seen the text
	}
	return s, a.put(ctx, input.Step, s)
}

// finish makes the calls of a step that have not ended. Then it takes the messages that came for the run. It returns the
// messages that have joined the run.
func (a *attempt) finish(ctx context.Context, n int, s *step, upTo int64) (joined []assembly.Message, err error) {
	for i := len(s.Results); i < len(s.Calls); i++ {
		c := runinput.Call(s.Calls[i])
		result, err := a.call(ctx, fmt.Sprintf("step/%d/%d", n, i), c)
		if err != nil {
			return nil, err
		}
		details, _ := json.Marshal(map[string]any{"tool": c.Name, "tool_event": "completed", "tool_use_id": c.ID, "result_bytes": len(result)}) // strings and a number
		if err := a.said.emit(stream.Message{Type: stream.Update, Text: c.Name, Details: details}); err != nil {
			return nil, err
		}
		s.Results = append(s.Results, result)
		if err := a.put(ctx, n, s); err != nil {
			return nil, err
		}
	}
	if joined, err = a.joinBetween(ctx, s, upTo); err != nil {
		return nil, err
	}
	s.Done = true
	return joined, a.put(ctx, n, s)
}

// call makes a call. An agent may call only what it was offered.
func (a *attempt) call(ctx context.Context, key string, c runinput.Call) (result string, err error) {
	if !slices.ContainsFunc(a.tools, func(t runinput.Tool) bool { return t.Name == c.Name }) {
		result, _ := json.Marshal(map[string]string{"error": "the tool " + c.Name + " cannot be called here"}) // strings
		return string(result), nil
	}
	result, err = a.traced(ctx, c, func(ctx context.Context) (result string, err error) {
		err = a.insist(ctx, func(context.Context) (err error) {
			result, err = a.Tools.Call(ctx, a.run, key, c) // a stop of the run ends the call
			return err
		})
		return result, err
	})
	return event.Text(result), err
}

// joinBetween gives the run what was said to it during a step: the reports of its workstreams, and in mode steer every
// message.
func (a *attempt) joinBetween(ctx context.Context, s *step, upTo int64) ([]assembly.Message, error) {
	var waiting, told []messages.Message
	err := a.insist(ctx, func(ctx context.Context) (err error) {
		told, waiting, err = a.news(ctx, upTo)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range told {
		s.Told, s.UpTo = append(s.Told, m.Content), m.Seq
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	l := lines{agent: a.run.Agent, documents: a.takesDocuments()}
	turn := assembly.Turn{Messages: l.many(waiting)}
	if l.err != nil {
		return nil, l.err
	}
	for i := range waiting {
		if err := a.insist(ctx, func(ctx context.Context) error { return a.Runs.JoinRun(ctx, &a.claim.Claim, a.run, &waiting[i]) }); err != nil {
			return nil, err
		}
		s.Joined = append(s.Joined, waiting[i].UUID)
	}
	return assembly.Assemble(a.profile.ID, []assembly.Turn{turn}, assembly.Window{}, a.Mentions, a.Agents.AgentIDs()...), nil
}

// news reads the messages to the run while it goes on: the words of Parley after a thread_seq, and the messages that join it: the
// reports of its workstreams, and in mode steer every message.
func (a *attempt) news(ctx context.Context, upTo int64) (told, joins []messages.Message, err error) {
	if joins, err = a.Runs.Joinable(ctx, a.run); err != nil {
		return nil, nil, err
	}
	joins = slices.DeleteFunc(joins, func(m messages.Message) bool {
		return m.Reason != event.ReasonWorkstream && a.settings.Mode != ModeSteer
	})
	told, err = a.Runs.ToldSince(ctx, a.run, upTo)
	return told, joins, err
}

// assembled returns the step for the agent's input.
func (s *step) assembled() assembly.Step {
	out := assembly.Step{Text: s.Text, Kept: s.Kept, Results: s.Results, Joined: s.Joined, Told: s.Told}
	for _, c := range s.Calls {
		out.Calls = append(out.Calls, runinput.Call(c))
	}
	return out
}

// steps returns the stored steps of the run.
func (a *attempt) steps(ctx context.Context) ([]step, error) {
	bodies, err := a.Runs.RunSteps(ctx, a.run)
	if err != nil {
		return nil, storeError{err}
	}
	steps := make([]step, len(bodies))
	for i, body := range bodies {
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&steps[i]); err != nil {
			return nil, fmt.Errorf("step %d of the run is not readable: %w", i, err)
		}
	}
	return steps, nil
}

// put stores a step.
func (a *attempt) put(ctx context.Context, n int, s *step) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return a.insist(ctx, func(ctx context.Context) error { return a.Runs.PutStep(ctx, &a.claim.Claim, a.run, n, string(body)) })
}

// insist repeats a call while the store is unavailable, because the agent's work exists only in memory.
func (a *attempt) insist(ctx context.Context, call func(context.Context) error) error {
	if err := work.Insist(ctx, commitTime, func() error { return call(context.WithoutCancel(ctx)) }); err != nil {
		return storeError{err}
	}
	return nil
}
