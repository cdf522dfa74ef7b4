package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"parley/ingest/event"
)

// part is what one event of the stream adds to the answer.
type part struct {
	text   string
	finish string // finish_reason, once it is known
	done   bool   // the stream says that it is complete
}

// read turns the stream into parts until it ends or breaks. What follows the
// stream's own end mark is read only to leave the connection fit for the next run.
func (a *Agent) read(ctx context.Context, body io.Reader, parts chan<- part) error {
	stream := newEvents(body)
	for {
		data, err := stream.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return a.interrupted(err)
		}
		if len(data) == 0 {
			continue
		}
		p, err := a.decode(data)
		if err != nil {
			return err
		}
		select {
		case parts <- p:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// interrupted is a stream that could not be read on.
func (a *Agent) interrupted(err error) error {
	if errors.Is(err, errFlood) || errors.Is(err, errLongLine) {
		return &Error{words: "the stream holds " + err.Error(), cause: err}
	}
	return &Error{words: a.clean("the stream broke off: " + err.Error()), cause: err, again: true}
}

// decode reads one chat.completion.chunk. Of several choices the first counts.
func (a *Agent) decode(data []byte) (part, error) {
	if string(data) == "[DONE]" {
		return part{done: true}, nil
	}
	var chunk struct {
		Error   json.RawMessage
		Choices []struct {
			Index        int
			Delta        struct{ Content, Refusal string }
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(data, &chunk); err != nil {
		return part{}, &Error{words: a.clean("the stream holds a chunk that can't be read: " + err.Error()), cause: err}
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		words, status := complaint(data)
		fatal := status >= 400 && permanent(status)
		return part{}, &Error{Permanent: fatal, Status: status, words: a.clean("the stream reports: " + words), again: !fatal}
	}
	var p part
	for _, choice := range chunk.Choices {
		if choice.Index == 0 {
			p.text += event.Text(choice.Delta.Content + choice.Delta.Refusal)
			p.finish = a.clean(choice.FinishReason)
		}
	}
	p.done = p.finish != ""
	return p, nil
}
