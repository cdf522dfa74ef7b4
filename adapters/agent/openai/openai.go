// Package openai is an agent that asks a model through an OpenAI-compatible chat completions
// API, such as OpenAI's own, OpenRouter's, or a local server's.
//
// The agent streams: it emits deltas as paced STREAMING_CHUNKs, and then one ANSWER with the
// whole text, which replaces them. Time and size bound every run. The agent repeats a request
// only before it has emitted any part of the answer, and always under the run's id.
package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"parley/adapters/agent"
	"parley/assembly"
	"parley/assembly/stream"
	"parley/assembly/turn"
)

const (
	// retries bounds the repetitions of a request within one run.
	retries = 3
	// firstPause is the pause before the first repetition if the server names none. Each
	// further pause is twice as long.
	firstPause = 500 * time.Millisecond
	// longestPause is the longest Retry-After that a run waits for. A longer one ends the
	// run, and the error contains it.
	longestPause = time.Minute
	// overhead is the number of bytes that a stream may have for each byte of text that the
	// run may have. Every token comes in an object of about 250 bytes, and the reasoning
	// before an answer is streamed too.
	overhead = 16
)

var (
	errTimeout   = errors.New("timeout")
	errFirstByte = errors.New("first byte")
)

var _ turn.Agent = (*Agent)(nil)

// Kind describes agents behind an OpenAI-compatible API.
func Kind() agent.Kind {
	return agent.Kind{
		Name: "openai", Config: func() agent.Config { return new(DefaultConfig()) },
		New: func(c agent.Config, files agent.Files) turn.Agent {
			return New(*c.(*Config), files, http.DefaultTransport)
		},
	}
}

// Agent is one model. It does not bound the number of concurrent runs; its caller enforces
// Config.MaxConcurrent.
type Agent struct {
	config Config
	files  agent.Files
	client *http.Client
}

// New returns an agent for the configured model. It reads images from files; if files is nil,
// the model gets only their names. The transport carries the requests; nil selects a
// transport of the agent's own that uses the environment's proxy.
func New(config Config, files agent.Files, transport http.RoundTripper) *Agent {
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = 16
		transport = own
	}
	return &Agent{config, files, &http.Client{
		Transport: transport,
		// A redirected POST would send the key and the thread to an address that is not
		// configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Run asks the model. It emits STREAMING_CHUNKs, the last of them Final, then a WARNING if
// the model stopped early, then the ANSWER. All have one ActivityID. Run fails with an
// *Error, with the error of emit, or, if ctx ended, with its cause.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	timed, cancel := context.WithTimeoutCause(ctx, a.config.Timeout, errTimeout)
	defer cancel()
	body, err := a.encode(timed, input)
	if err != nil {
		return err
	}
	answer := newRelay(input.RunID, a.config.MaxBytes, emit)
	for attempt := 0; ; attempt++ {
		err := a.ask(timed, body, input.RunID, answer)
		if err == nil {
			return nil
		}
		if answer.refused != nil {
			return answer.refused
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pause, again := repeat(timed, err, attempt)
		if !again || answer.begun() {
			return err
		}
		select {
		case <-time.After(pause):
		case <-timed.Done():
		}
	}
}

// repeat reports whether to repeat a request after err, and the pause before that.
func repeat(ctx context.Context, err error, attempt int) (time.Duration, bool) {
	fault, ok := errors.AsType[*Error](err)
	if !ok || !fault.again || attempt == retries {
		return 0, false
	}
	pause := fault.RetryAfter
	if pause == 0 {
		pause = firstPause << attempt
		pause += rand.N(pause / 2)
	}
	end, bounded := ctx.Deadline()
	return pause, pause <= longestPause && ctx.Err() == nil && !(bounded && time.Until(end) <= pause)
}

// ask makes one request and relays its answer.
func (a *Agent) ask(ctx context.Context, body []byte, run string, answer *relay) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(a.config.FirstByte, func() { cancel(errFirstByte) })
	defer late.Stop()

	response, err := a.post(ctx, body, run)
	if err != nil {
		return a.explain(ctx, err)
	}
	defer response.Body.Close()
	response.Body = &bounded{response.Body, overhead * a.config.MaxBytes, func() { late.Stop() }}
	if err := a.check(response); err != nil {
		return a.explain(ctx, err)
	}

	parts := make(chan part)
	var broken error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(parts)
		broken = a.read(ctx, response.Body, parts)
	})
	defer func() { cancel(nil); reader.Wait() }()
	return a.explain(ctx, answer.follow(parts, &broken))
}

func (a *Agent) post(ctx context.Context, body []byte, run string) (*http.Response, error) {
	address := strings.TrimRight(a.config.BaseURL, "/") + "/chat/completions"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Permanent: true, text: "base_url is not a valid address"}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("User-Agent", "parley")
	if key := strings.TrimSpace(a.config.APIKey.Reveal()); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	if run != "" {
		id := url.PathEscape(run) // a client may have chosen the id, and a header must not contain a line break
		request.Header.Set("Idempotency-Key", id)
		request.Header.Set("X-Request-Id", id)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, a.unreachable(err)
	}
	return response, nil
}

// explain replaces an error that a time limit caused by one that names the limit. It keeps a
// server's own error, which says more.
func (a *Agent) explain(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*Error](err)
	switch {
	case err == nil || ok && fault.Status != 0:
		return err
	case context.Cause(ctx) == errFirstByte:
		return &Error{text: fmt.Sprintf("the answer did not begin within %v (first_byte)", a.config.FirstByte)}
	case context.Cause(ctx) == errTimeout:
		return &Error{text: fmt.Sprintf("the answer did not end within %v (timeout)", a.config.Timeout)}
	default:
		return err
	}
}
