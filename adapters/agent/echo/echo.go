// Package echo is an agent that repeats the last message.
//
// It needs no model, so a new daemon can answer at once, and it shows exactly the content
// that reaches an agent.
package echo

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/adapters/agent"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/stream"
)

var _ turn.Agent = Agent{}

// Kind describes the echo agent.
func Kind() agent.Kind {
	return agent.Kind{
		Name: "echo", Unmeasured: true, Config: func() agent.Config { return new(Config) },
		New: func(agent.Config, agent.Files) turn.Agent { return Agent{} },
	}
}

// Config is the configuration of an echo agent. It has no settings.
type Config struct{}

// Validate returns no fault.
func (Config) Validate() event.FieldErrors { return nil }

// Bounds returns the bounds. Many runs may be concurrent, because they wait only for
// commits.
func (Config) Bounds() agent.Bounds {
	return agent.Bounds{Timeout: 5 * time.Minute, MaxBytes: 4 << 20, MaxConcurrent: 256}
}

// Agent answers each turn with the raw content of its last message. If the message has no
// text, the answer is the names of its files, one per line.
type Agent struct{}

// Run emits one ANSWER. Its text is empty if the last message has neither text nor files. A
// turn without messages is an error.
func (Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(input.Said) == 0 {
		return errors.New("echo: the turn has no message")
	}
	last := input.Said[len(input.Said)-1]
	text := last.Content
	if strings.TrimSpace(text) == "" && len(last.Files) > 0 {
		names := make([]string, len(last.Files))
		for i, file := range last.Files {
			names[i] = file.Name
		}
		text = strings.Join(names, "\n")
	}
	return emit(stream.Message{Type: stream.Answer, Text: text, Time: time.Now()})
}
