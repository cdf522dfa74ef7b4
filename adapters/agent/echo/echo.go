// Package echo is an agent that answers with what was said.
//
// It needs no model, so that a new daemon has something to answer with, and it
// shows to the byte what reaches an agent.
package echo

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/assembly"
	"parley/assembly/stream"
	"parley/assembly/turn"
)

var _ turn.Agent = Agent{}

// Agent answers each turn with the raw content of its last message, or with the
// names of that message's files, one a line, where it has no words.
type Agent struct{}

// Run emits one ANSWER, whose text is empty where the last message has neither
// words nor files. A turn without messages is an error.
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
		text = strings.Join(last.Files, "\n")
	}
	return emit(stream.Message{Type: stream.Answer, Text: text, Time: time.Now()})
}
