// Package chat talks to an agent in a web workspace of a running daemon, over its HTTP API.
package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/adapters/sse"
	"parley/config/secret"
	"parley/ingest/stream"
)

// ErrAway says that nothing answers at the daemon's address.
var ErrAway = errors.New("no daemon answers")

const (
	// callTimeout bounds a call other than a stream.
	callTimeout = 30 * time.Second
	// maxAnswer bounds a body and one message of a stream, in bytes. An answer has at most 4 MiB by
	// default, and more in JSON.
	maxAnswer = 32 << 20
	// A stream that is cut, as by a restart of the daemon, is opened again this often without progress.
	streamTries = 40
	streamPause = 500 * time.Millisecond
)

// Client is a caller in one thread of a workspace.
type Client struct {
	Base      string // the daemon's address, such as http://127.0.0.1:8484
	Token     secret.Value
	Workspace string
	Thread    string // a UUID
}

// Answer is the end of a question. As JSON it is what `parley chat --json` prints.
type Answer struct {
	Thread string `json:"thread_id"`
	Run    string `json:"run_id"`
	// Answered says that the agent has answered, or has asked back.
	Answered bool   `json:"answered"`
	Text     string `json:"answer"`
	// Error says why there is no answer; empty if the agent had nothing to say.
	Error string `json:"error,omitempty"`
}

// NewRun returns the id of a question, by which Stop finds it also before the daemon has it.
func NewRun() string { return uuid.NewString() }

// Ask asks a question and calls show with each message of its run, until the run ends. It goes on after a
// restart of the daemon. The error is ErrAway or the daemon's refusal.
func (c *Client) Ask(ctx context.Context, run, text string, show func(stream.Message)) (Answer, error) {
	f := follower{client: c, show: show, answer: Answer{Thread: c.Thread, Run: run}}
	message := map[string]any{"id": uuid.NewString(), "role": "user", "content": text}
	err := c.call(ctx, http.MethodPost, "/api/v1/agent/runs", map[string]any{
		"threadId": c.Thread, "runId": run, "messages": []any{message},
		"state": struct{}{}, "tools": []any{}, "context": []any{}, "forwardedProps": struct{}{},
	}, nil)
	for tries := 0; err == nil && !f.ended; tries++ {
		before := f.last
		if err = f.follow(ctx); f.last != before {
			tries = 0
		}
		if cut := err == nil || errors.Is(err, ErrAway); !f.ended && cut && tries < streamTries {
			err = pause(ctx)
		}
	}
	return f.answer, err
}

// pause waits before a stream is opened again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(streamPause):
		return nil
	}
}

// Stop ends a question's run, also before it begins. A run that has ended is no error.
func (c *Client) Stop(ctx context.Context, run string) error {
	err := c.call(ctx, http.MethodPost, "/runs/"+run+"/signals", map[string]string{"signal": "Stop"}, nil)
	if refused, ok := errors.AsType[Refusal](err); ok && refused.Status == http.StatusGone {
		return nil
	}
	return err
}

// Command sends a chat command, such as /status, and returns the daemon's notice; empty for none.
func (c *Client) Command(ctx context.Context, text string) (string, error) {
	base := "/api/v1/workspaces/" + c.Workspace
	var sent struct {
		Message struct {
			Seq int64 `json:"thread_seq"`
		} `json:"message"`
	}
	if err := c.call(ctx, http.MethodPost, base+"/messages", map[string]string{"thread_id": c.Thread, "content": text}, &sent); err != nil {
		return "", err
	}
	var page struct {
		Messages []struct{ Role, Content string } `json:"messages"`
	}
	path := fmt.Sprintf("%s/threads/%s/messages?after=%d&limit=1", base, c.Thread, sent.Message.Seq) // the notice is recorded with its command
	if err := c.call(ctx, http.MethodGet, path, nil, &page); err != nil || len(page.Messages) == 0 || page.Messages[0].Role != "system" {
		return "", err
	}
	return page.Messages[0].Content, nil
}

// Refusal is an error that the daemon answers.
type Refusal struct {
	Status  int // of HTTP
	Message string
}

func (r Refusal) Error() string { return fmt.Sprintf("the daemon answers %d: %s", r.Status, r.Message) }

// isCommand reports whether the daemon has taken a message for a command, which starts no run.
func (r Refusal) isCommand() bool {
	return r.Status == http.StatusForbidden && strings.HasSuffix(r.Message, ": command")
}

// call sends a body as JSON, if there is one, and reads the answer into a value unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.do(ctx, method, path, body, "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// do makes a request. An answer other than a success is a Refusal.
func (c *Client) do(ctx context.Context, method, path string, body any, after string) (*http.Response, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token.Reveal())
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(request)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w at %s: start it with parley run", ErrAway, c.Base)
	case response.StatusCode < 300:
		return response, nil
	}
	defer response.Body.Close()
	var told struct{ Error struct{ Message string } }
	raw, _ = io.ReadAll(io.LimitReader(response.Body, 64<<10))
	_ = json.Unmarshal(raw, &told) // another server's answer has no message
	return nil, Refusal{response.StatusCode, cmp.Or(told.Error.Message, http.StatusText(response.StatusCode))}
}

// follower reads the stream of a run.
type follower struct {
	client *Client
	show   func(stream.Message)
	answer Answer
	last   string // the id of the last event
	ended  bool
}

// follow reads the stream from behind the last event until it ends. It returns without an error if the
// connection is cut.
func (f *follower) follow(ctx context.Context) error {
	response, err := f.client.do(ctx, http.MethodGet, "/runs/"+f.client.Thread+"/"+f.answer.Run+"/stream", nil, f.last)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	f.ended = response.StatusCode == http.StatusNoContent // everything was read before
	for events := sse.NewReader(response.Body, maxAnswer); !f.ended; {
		e, err := events.Next()
		if err != nil {
			break
		}
		m, err := stream.Parse(e.Data)
		if err != nil {
			return err
		}
		f.take(m)
		f.last = cmp.Or(e.ID, f.last)
	}
	return ctx.Err()
}

// take adds a message to the answer and shows it.
func (f *follower) take(m stream.Message) {
	f.show(m)
	if !m.OfMain() {
		return
	}
	switch m.Type {
	case stream.Answer:
		f.answer.Answered, f.answer.Text = true, m.Text
	case stream.RequestInput:
		f.answer.Answered, f.answer.Text = true, m.Ask().Numbered(m.Text)
	case stream.Error:
		f.answer.Error = m.Text
	case stream.Complete:
		f.ended = true
		if m.Text != "" && !f.answer.Answered {
			f.answer.Answered, f.answer.Text = true, m.Text
		}
	case stream.Terminated:
		f.ended = true
		f.answer.Answered, f.answer.Error = false, cmp.Or(f.answer.Error, m.Text, "the run ended without an answer")
	}
}
