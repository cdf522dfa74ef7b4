package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"parley/ingest/event"
)

// part is the content of one event of the stream.
type part struct {
	text   string
	finish string // finish_reason, if the event has one
	done   bool   // the event marks the end of the answer
}

// read sends the stream's events to parts until the stream ends or fails. It reads beyond the
// end mark only to keep the connection usable for the next run.
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

// interrupted returns the error of a stream whose reading failed.
func (a *Agent) interrupted(err error) error {
	if errors.Is(err, errFlood) || errors.Is(err, errLongLine) {
		return &Error{text: "the stream contains " + err.Error(), cause: err}
	}
	return &Error{text: a.clean("the stream was interrupted: " + err.Error()), cause: err, again: true}
}

// decode reads one chat.completion.chunk. Of several choices it uses the first.
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
		return part{}, &Error{text: a.clean("the stream contains an invalid chunk: " + err.Error()), cause: err}
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		text, status := errorText(data)
		fatal := status >= 400 && permanent(status)
		return part{}, &Error{Permanent: fatal, Status: status, text: a.clean("the stream reports: " + text), again: !fatal}
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
