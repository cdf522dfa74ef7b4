package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"parley/ingest/stream"
)

var (
	// ErrNoAnswer says that the agent gave no answer to the last question.
	ErrNoAnswer = errors.New("no answer")
	// ErrInterrupted says that the person has ended the chat with Ctrl-C.
	ErrInterrupted = errors.New("interrupted")
)

// maxLine bounds a typed line, in bytes.
const maxLine = 1 << 20

// waitEvery is the time between two signs that the agent works before its first words.
const waitEvery = 500 * time.Millisecond

// Session is a person's chat with an agent. One goroutine shows everything.
type Session struct {
	Client *Client
	Screen *Screen
	// Interrupts gets Ctrl-C: the first one stops the answer, a second one ends the chat.
	Interrupts <-chan os.Signal
	// Prompt precedes each line that a person types; empty if no person does.
	Prompt string

	lines   <-chan string // nil after the end of the input, and for one question
	queue   []string      // typed during an answer
	warned  bool          // the last event was a Ctrl-C
	outcome error         // of the last question
}

// help is what /help shows to a person.
const help = `/stop    stops the answer
/new     begins anew: the agent no longer sees what was said before
/status  tells what the agent does
/mode, /model  list what a coding agent offers; with a number, they choose
/help    shows this
Ctrl-C stops an answer, and twice ends the chat; Ctrl-D ends it. Up and down recall questions. A pasted block is one question.`

// Once asks one question. The error is ErrNoAnswer if the agent gave no answer.
func (s *Session) Once(ctx context.Context, text string) error {
	switch {
	case text == "/help" && s.Prompt != "":
		s.Screen.aside(help)
		return nil
	case isCommand(text):
		return s.command(ctx, text)
	}
	return s.ask(ctx, text)
}

// Run asks each line of the input, until the input ends or the person ends the chat. A line that is
// typed during an answer is asked after it; with a prompt, /stop, /new and /status take effect at once. The
// error is that of the last question.
func (s *Session) Run(ctx context.Context, in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	return s.run(ctx, func() (string, error) {
		if !scanner.Scan() || !utf8.Valid(scanner.Bytes()) {
			return "", io.EOF
		}
		return scanner.Text(), nil
	})
}

// Edit is Run for a person who edits questions.
func (s *Session) Edit(ctx context.Context, e *Editor) error {
	s.Interrupts = e.Interrupts
	return s.run(ctx, e.Next)
}

func (s *Session) run(ctx context.Context, next func() (string, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.lines = read(ctx, next)
	for {
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			if s.outcome = s.Once(ctx, next); !survives(s.outcome) {
				return s.outcome
			}
			s.report(s.outcome)
			continue
		}
		if s.lines == nil {
			return s.outcome
		}
		fmt.Fprint(s.Screen.Aside, s.Prompt)
		select {
		case line, more := <-s.lines:
			s.typed(line, more)
		case <-s.Interrupts:
			if s.warned {
				return ErrInterrupted
			}
			s.warned = true
			s.Screen.aside("\nPress Ctrl-C again to end the chat.")
		}
	}
}

// survives reports whether a chat goes on after the outcome of a question.
func survives(outcome error) bool {
	_, refused := errors.AsType[Refusal](outcome)
	return outcome == nil || refused || errors.Is(outcome, ErrNoAnswer)
}

// typed takes a line from the input.
func (s *Session) typed(line string, more bool) {
	s.warned = false
	if !more {
		s.lines = nil
	} else if line = strings.TrimSpace(line); line != "" {
		s.queue = append(s.queue, line)
	}
}

// ask asks a question and shows the answer as it comes.
func (s *Session) ask(ctx context.Context, text string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, said, done := NewRun(), make(chan stream.Message), make(chan error, 1)
	var answer Answer
	go func() {
		var err error
		answer, err = s.Client.Ask(ctx, run, text, func(m stream.Message) {
			select {
			case said <- m:
			case <-ctx.Done():
			}
		})
		done <- err
	}()
	interrupted, begun := false, time.Now()
	ticks := time.NewTicker(waitEvery)
	defer ticks.Stop()
	defer s.Screen.arrived()
	for {
		select {
		case m := <-said:
			if s.Screen.message(m); m.OfMain() && m.Type != stream.Question {
				ticks.Stop()
			}
		case <-ticks.C:
			s.Screen.wait(time.Since(begun))
		case line, more := <-s.lines:
			if line = strings.TrimSpace(line); isCommand(line) && s.Prompt != "" {
				s.report(s.command(ctx, line))
				continue
			}
			s.typed(line, more)
		case <-s.Interrupts:
			if interrupted {
				return ErrInterrupted
			}
			interrupted, s.warned = true, true
			s.report(s.Client.Stop(ctx, run))
		case err := <-done:
			if refused, ok := errors.AsType[Refusal](err); ok && refused.isCommand() && maySet(text) {
				return s.command(ctx, text) // once more, which changes nothing, for its notice
			}
			return s.ended(answer, err, interrupted)
		}
	}
}

// ended shows the end of a question and returns its outcome.
func (s *Session) ended(answer Answer, err error, interrupted bool) error {
	if err != nil {
		return err
	}
	s.Screen.end(answer)
	switch {
	case answer.Answered:
		return nil
	case interrupted && s.lines == nil: // there was one question
		return ErrInterrupted
	}
	return ErrNoAnswer
}

// report shows an error that does not end the chat.
func (s *Session) report(err error) {
	if err != nil && survives(err) {
		s.Screen.endLine()
		s.Screen.aside(err.Error())
	}
}

// command sends a chat command and shows the notice.
func (s *Session) command(ctx context.Context, text string) error {
	notice, err := s.Client.Command(ctx, text)
	if err == nil && s.Screen.JSON {
		s.Screen.end(Answer{Thread: s.Client.Thread, Answered: notice != "", Text: notice})
	} else if err == nil && notice != "" {
		s.Screen.endLine()
		fmt.Fprintln(s.Screen.Out, s.Screen.plain(notice))
	}
	return err
}

// isCommand reports whether a line is a chat command. Another prefix can be configured; then the line is
// a question for this program, and the daemon refuses to run it.
func isCommand(line string) bool { return line == "/stop" || line == "/new" || line == "/status" }

// maySet reports whether a line may be a command for a setting of the agent. Only the daemon knows whether the agent has one.
func maySet(line string) bool {
	word, _, _ := strings.Cut(strings.ToLower(line), " ")
	return word == "/mode" || word == "/model"
}

// read returns the lines that next returns. The channel is closed after its first error, as at the end of the input, or at a
// line that is too long or not UTF-8.
func read(ctx context.Context, next func() (string, error)) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for {
			line, err := next()
			if err != nil {
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
