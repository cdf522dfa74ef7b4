package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/trace"
)

// toolbox has the tool "look", and notes its calls.
type toolbox struct {
	mu     sync.Mutex
	calls  []string      // "key arguments"
	places []trace.Place // of the calls
	do     func(string)  // is called during a call, with its arguments; nil for nothing
}

// Offered implements turn.Tools.
func (*toolbox) Offered(context.Context, *runs.Run) ([]runinput.Tool, []string) {
	return []runinput.Tool{{Name: "look"}}, []string{"The tools of elsewhere are missing."}
}

// Call implements turn.Tools.
func (b *toolbox) Call(ctx context.Context, _ *runs.Run, key string, call runinput.Call) (string, error) {
	b.mu.Lock()
	b.calls, b.places = append(b.calls, key+" "+call.Arguments), append(b.places, trace.From(ctx))
	b.mu.Unlock()
	if b.do != nil {
		b.do(call.Arguments)
	}
	return "seen " + call.Arguments, nil
}

// caller is an agent that calls tools: one step for each list of arguments, and then it answers. A step without
// arguments fails.
type caller struct {
	*agent
	steps [][]string
	name  string // of the tool
}

// Run implements turn.Agent.
func (c *caller) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	c.mu.Lock()
	var calls []string
	more := len(c.steps) > 0
	if more {
		calls, c.steps = c.steps[0], c.steps[1:]
	}
	if more {
		c.inputs = append(c.inputs, input)
	}
	c.mu.Unlock()
	if !more || len(input.Tools) == 0 {
		return c.agent.Run(ctx, input, emit)
	}
	if len(calls) == 0 {
		return errors.New("the server is busy")
	}
	var made []runinput.Call
	for i, arguments := range calls {
		made = append(made, runinput.Call{ID: fmt.Sprint("c", i), Name: c.name, Arguments: arguments})
	}
	input.Called("Let me look.", made, json.RawMessage(`{"signed":"c2ln"}`))
	return nil
}

// calling lets the agent call tools.
func calling(tools *toolbox, steps ...[]string) func(d *fixture) {
	return func(d *fixture) {
		d.tools = tools
		d.profile.Agent = &caller{agent: d.agent, steps: steps, name: "look"}
	}
}

// TestSteps gives an agent the results of its calls until it answers.
func TestSteps(t *testing.T) {
	tools := &toolbox{}
	inBubble(t, calling(tools, []string{"a", "b"}, []string{"c"}), func(d *fixture) {
		d.asks("1", "one")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		same(t, "calls", tools.calls, []string{"step/0/0 a", "step/0/1 b", "step/1/0 c"})
		same(t, "posts", d.deliveries(), []string{"ok"})
		same(t, "the last input", d.assembled(2), "user: [Olivia]: one\nassistant: Let me look.\ntool: seen a\ntool: seen b\nassistant: Let me look.\ntool: seen c\n")
		last := d.agent.inputs[2].Messages
		same(t, "ids", []string{last[1].Calls[0].ID, last[2].CallID, last[1].Calls[1].ID, last[5].CallID}, []string{"step00000", "step00000", "step00001", "step01000"})
		same(t, "requests", []int{d.agent.inputs[0].Step, d.agent.inputs[1].Step, d.agent.inputs[2].Step}, []int{0, 1, 2})
		d.asks("2", "two")
		same(t, "the next turn", d.assembled(3), "user: [Olivia]: one\nassistant: ok\nuser: [Olivia]: two\n")
	})
}

// TestStepsOverAKill ends the process during the second of three calls, and lets the request after them fail
// once: a call that has ended is not made again, and one that has not is made again under its key.
func TestStepsOverAKill(t *testing.T) {
	tools := &toolbox{}
	inBubble(t, calling(tools, []string{"a", "b", "c"}, nil), func(d *fixture) {
		d.profile.Timeout = time.Hour
		d.settings.MaxAttempts = 2
		tools.do = func(arguments string) {
			if arguments == "b" {
				tools.do = nil
				d.engine.down.Store(true) // the result is lost
			}
		}
		d.asks("1", "one")
		pass(time.Second)
		d.kill()
		d.engine.down.Store(false)
		d.work()
		pass(time.Minute)
		same(t, "calls", tools.calls, []string{"step/0/0 a", "step/0/1 b", "step/0/1 b", "step/0/2 c"})
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.LeftOff, turn.Retried, turn.Answered})
		same(t, "the last input", d.assembled(len(d.agent.inputs)-1), "user: [Olivia]: one\nassistant: Let me look.\ntool: seen a\ntool: seen b\ntool: seen c\n")
		same(t, "what the provider wants back", string(d.agent.inputs[len(d.agent.inputs)-1].Messages[1].Kept), `{"signed":"c2ln"}`)
	})
}

// TestStepsEnd bounds the steps of a run, and answers a call of a tool that was not offered.
func TestStepsEnd(t *testing.T) {
	many := make([][]string, 30)
	for i := range many {
		many[i] = []string{"a"}
	}
	tools := &toolbox{}
	inBubble(t, calling(tools, many...), func(d *fixture) {
		d.profile.MaxBytes = 10_000
		d.asks("1", "one")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		same(t, "calls", len(tools.calls), 20)
	})
	inBubble(t, func(d *fixture) {
		calling(tools, []string{"a"})(d)
		d.profile.Agent.(*caller).name = "remove"
	}, func(d *fixture) {
		d.asks("1", "one")
		if got := d.assembled(1); !strings.HasSuffix(got, `tool: {"error":"the tool remove cannot be called here"}`+"\n") {
			t.Error(got)
		}
		same(t, "calls", len(tools.calls), 20)
	})
}

// TestWhatIsSaidDuringAStep gives the run the reports of its workstreams between two requests, and in mode steer the
// messages of people, in each attempt at the same place. Otherwise these wait.
func TestWhatIsSaidDuringAStep(t *testing.T) {
	for _, mode := range []string{turn.ModeQueue, turn.ModeSteer, turn.ModeInterrupt} {
		tools := &toolbox{}
		inBubble(t, calling(tools, []string{"a"}, nil), func(d *fixture) {
			d.settings.Mode = mode
			tools.do = func(string) {
				d.reason = event.ReasonWorkstream
				report := human("r", "It is done.")
				report.Metadata.SenderID, report.Metadata.SenderDisplayName, report.Metadata.SenderType = messages.SystemSender, "Parley", event.Bot
				report.Internal = &event.Internal{}
				said := func(trigger messages.Trigger, m *event.Message) {
					d.accept(trigger, event.Event{Kind: event.KindMessage, Message: m})
					pass(time.Second)
				}
				said(messages.TriggerRun, report)
				warning := *report
				warning.ExternalID, warning.Content = "w", "It is late."
				said(messages.TriggerPassive, &warning)
				d.reason = ""
				if mode != turn.ModeInterrupt {
					said(messages.TriggerRun, human("2", "two"))
				}
			}
			d.asks("1", "one")
			pass(time.Minute)
			want := "user: [Olivia]: one\nassistant: Let me look.\ntool: seen a\nsystem: It is late.\nsystem: It is done.\n"
			if mode == turn.ModeSteer {
				want += "user: [Olivia]: two\n"
			}
			same(t, mode+": the next input", d.assembled(1), want)
			same(t, mode+": that of the next attempt", d.assembled(2), want)
			same(t, mode+": turns", len(d.outcomes()), map[string]int{turn.ModeQueue: 3, turn.ModeSteer: 2, turn.ModeInterrupt: 2}[mode])
			synctest.Wait()
		})
	}
}
