// Package remote is the part that all agents behind an HTTP server share: their bounds, one
// request with its time limits, server-sent events, and the errors for the operator.
//
// A client never repeats a request: the turn's max_attempts counts every request. It follows
// no redirect, because a redirected request would take the credentials and the thread to an
// address that is not configured.
package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/agent"
	"parley/adapters/sse"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/trace"
)

// overhead is the number of bytes that a response may have for each byte of text that the
// run may have. Every token comes in an object of about 250 bytes, and the reasoning
// before an answer is streamed too.
const overhead = 16

// maxEvents bounds the events of a response. It is more than the tokens of any model's answer.
const maxEvents = 1 << 18

// Config is the settings that all remote agents share.
type Config struct {
	// SystemPrompt precedes the thread; empty for none.
	SystemPrompt string `yaml:"system_prompt"`
	// Timeout bounds a run. FirstByte bounds the wait for the first event of its answer, or for
	// the first byte of an answer in one piece. The wait begins again with each comment of a stream.
	Timeout   time.Duration `yaml:"timeout"`
	FirstByte time.Duration `yaml:"first_byte"`
	// MaxBytes bounds a run's answer, in bytes.
	MaxBytes int64 `yaml:"max_bytes"`
	// MaxConcurrent bounds the number of concurrent runs.
	MaxConcurrent int `yaml:"max_concurrent"`
	// AnswerWithin bounds the wait for people, and for an agent that answers later.
	AnswerWithin time.Duration `yaml:"answer_within"`
	// Notes are the facts that the agent gets beside the messages: NoteTime, NoteNames and NotePlace.
	Notes []string `yaml:"notes"`
	// Approvers are the platform's ids of the users who may answer approvals; empty for every
	// admitted one.
	Approvers []string `yaml:"approvers"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Timeout: 5 * time.Minute, FirstByte: time.Minute, MaxBytes: 4 << 20, MaxConcurrent: 128, AnswerWithin: 24 * time.Hour, Notes: []string{NoteTime, NoteNames, NotePlace}}
}

// Bounds returns the bounds of the agent's runs.
func (c Config) Bounds() agent.Bounds {
	return agent.Bounds{Timeout: c.Timeout, MaxBytes: c.MaxBytes, MaxConcurrent: c.MaxConcurrent, AnswerWithin: c.AnswerWithin, Approvers: c.Approvers}
}

// The facts beside the messages.
const (
	NoteTime  = "time"  // the date and the time, and the days of the thread's parts
	NoteNames = "names" // the people, groups and channels that the messages mention
	NotePlace = "place" // the workspace, the channel with its topic, and the thread's title
)

// Noted returns the notes that the agent gets.
func (c Config) Noted(n assembly.Notes) assembly.Notes {
	if !slices.Contains(c.Notes, NoteTime) {
		n.Now, n.Days = time.Time{}, nil
	}
	if !slices.Contains(c.Notes, NoteNames) {
		n.Names, n.Mentions = nil, nil
	}
	if !slices.Contains(c.Notes, NotePlace) {
		n.Place = event.Place{}
	}
	return n
}

// Prompt returns the system prompt, followed by the agent's notes.
func (c Config) Prompt(n assembly.Notes) string {
	block := c.Noted(n).Block()
	if c.SystemPrompt == "" || block == "" {
		return c.SystemPrompt + block
	}
	return c.SystemPrompt + "\n\n" + block
}

// Check adds the faults of the shared settings.
func (c Config) Check(faults *event.FieldErrors) {
	faults.Check(c.Timeout > 0, "timeout", "must be more than 0s")
	faults.Check(c.FirstByte > 0, "first_byte", "must be more than 0s")
	faults.Check(c.MaxBytes > 0, "max_bytes", "must be more than 0")
	faults.Check(c.MaxConcurrent > 0, "max_concurrent", "must be at least 1")
	faults.Check(c.AnswerWithin > 0, "answer_within", "must be more than 0s")
	for _, note := range c.Notes {
		faults.Check(note == NoteTime || note == NoteNames || note == NotePlace, "notes", "must be a list of time, names and place")
	}
}

// NewKind describes a kind of remote agents. The agents use http.DefaultTransport.
func NewKind[C any, A turn.Agent, P interface {
	*C
	agent.Config
}](name string, defaults func() C, create func(config C, files agent.Files, transport http.RoundTripper) A) agent.Kind {
	return agent.Kind{
		Name: name, Config: func() agent.Config { return P(new(defaults())) },
		New: func(c agent.Config, files agent.Files) turn.Agent {
			return create(*c.(P), files, http.DefaultTransport)
		},
	}
}

// Client calls the server of one agent. It is used concurrently.
type Client struct {
	// AddressHint names the likely fault of the address if the server does not know the address; empty for none.
	AddressHint string

	config Config
	hidden []secret.Value
	client *http.Client
	learnt learnt
	turns  atomic.Bool // its model ends its thinking without having begun it: see Answer.Read
}

// New returns a client of the server at an address. Its errors contain none of the hidden values, and no
// part of the address that may be a secret. The transport carries the requests; nil selects
// http.DefaultTransport.
func New(config Config, address string, transport http.RoundTripper, hidden ...secret.Value) *Client {
	c := &Client{config: config, hidden: partsOf(address), client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, value := range hidden {
		c.hidden = append(c.hidden, wordsOf(value)...)
	}
	return c
}

// Hide keeps the parts of a further address that may be secrets out of the errors. It is called before the first request.
func (c *Client) Hide(address string) { c.hidden = append(c.hidden, partsOf(address)...) }

// idempotencyKey is the header's name in lower case, as HTTP allows: net/http repeats a request
// by itself if it finds the canonical name.
const idempotencyKey = "idempotency-key"

// RunTokenHeader is the header of the token with which an agent uses Parley's tools during a run.
const RunTokenHeader = "X-Parley-Run-Token"

type runTokenKey struct{}

// WithRunToken returns a context whose requests have the token of the input's run.
func WithRunToken(ctx context.Context, input assembly.Input) context.Context {
	return context.WithValue(ctx, runTokenKey{}, input.RunToken)
}

// Request returns a POST of JSON, or a GET if there is no body. The server can recognise the
// repeated request of a run by its headers.
func (c *Client) Request(ctx context.Context, address, run string, body io.Reader) (*http.Request, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, &Error{Permanent: true, text: "the agent's address is not valid"}
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "text/event-stream, application/json")
	request.Header.Set("User-Agent", "parley")
	trace.SetHeader(ctx, request.Header)
	if token, _ := ctx.Value(runTokenKey{}).(secret.Value); !token.IsZero() {
		request.Header.Set(RunTokenHeader, token.Reveal())
	}
	if run != "" {
		id := url.PathEscape(run) // a client may have chosen the id, and a header must not contain a line break
		request.Header[idempotencyKey] = []string{id}
		request.Header.Set("X-Request-Id", id)
	}
	return request, nil
}

// Ask posts the JSON of body, with the images that it names. prepare completes the request's
// headers. The caller closes the response. Ask fails like Do, and with the error of prepare.
func (c *Client) Ask(ctx context.Context, address, run string, body any, images *Images, prepare func(*http.Request) error) (*Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	request, err := c.Request(ctx, address, run, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	images.Send(request, raw)
	if err := prepare(request); err != nil {
		return nil, err
	}
	return c.Do(request)
}

// Response is a response with a status of 2xx. Its body is bounded.
type Response struct {
	*http.Response
	ctx context.Context // of the call
	// Begun ends the wait for the first event.
	Begun func()
	// TakeCut says that Follow passes an event that is too long with its beginning alone.
	TakeCut bool

	close func()
}

// Close ends the call.
func (r *Response) Close() { r.close() }

var errFirstByte = errors.New("first byte")

// Send sends a request whose response has nothing for the caller. Its errors are those of Do.
func (c *Client) Send(request *http.Request) error {
	response, err := c.Do(request)
	if err == nil {
		response.Close()
	}
	return err
}

// Do sends a request. The caller closes the response. Do fails with an *Error, or with the
// cause of ctx. A body leaves only if turn.Prove, called directly before, returns no error.
func (c *Client) Do(request *http.Request) (*Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	proveBody(ctx, request)
	late := newLate(c.config.FirstByte, func() { cancel(errFirstByte) })
	response, err := c.client.Do(request.WithContext(ctx))
	if err != nil {
		late.stop()
		defer cancel(nil)
		return nil, c.explain(ctx, c.unreachable(err))
	}
	body := response.Body
	r := &Response{Response: response, ctx: ctx, Begun: late.stop, close: func() { late.stop(); cancel(nil); body.Close() }}
	first := r.Begun
	if r.hasStreamType() {
		first = late.again // the first event ends the wait
	}
	response.Body = &bounded{body, overhead * c.config.MaxBytes, first}
	if response.StatusCode/100 != 2 {
		defer r.Close()
		return nil, c.explain(ctx, c.refused(response))
	}
	return r, nil
}

// late ends the wait for the beginning of an answer.
type late struct {
	mu    sync.Mutex
	timer *time.Timer
	wait  time.Duration
}

func newLate(wait time.Duration, end func()) *late {
	return &late{timer: time.AfterFunc(wait, end), wait: wait}
}

func (l *late) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.wait = 0
}

// again begins the wait again, after a sign of life such as a comment in a stream.
func (l *late) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wait > 0 {
		l.timer.Reset(l.wait)
	}
}

// IsStream reports whether the body is a stream of server-sent events: it has their type, or it begins with one, since some
// servers send them under another type or none. It may wait for the first bytes of the body.
func (r *Response) IsStream() bool {
	if r.hasStreamType() {
		return true
	}
	head := bytes.TrimLeft(r.peek(len("event:")+len("\ufeff")), "\ufeff\r\n")
	return slices.ContainsFunc([]string{"data:", "event:", "id:", "retry:", ":"}, func(begin string) bool { return bytes.HasPrefix(head, []byte(begin)) })
}

func (r *Response) hasStreamType() bool {
	base, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return base == "text/event-stream"
}

// peek returns the first bytes of the body, without taking them from it; fewer of a shorter body.
func (r *Response) peek(n int) []byte {
	body, ok := r.Body.(*peeked)
	if !ok {
		body = &peeked{bufio.NewReader(r.Body), r.Body}
		r.Body = body
	}
	head, _ := body.Peek(n) // the fault comes again when the body is read
	return head
}

// peeked is a body whose beginning can be read ahead.
type peeked struct {
	*bufio.Reader
	io.Closer
}

// JSON reads the body, which must be JSON of at most MaxBytes.
func (c *Client) JSON(r *Response) ([]byte, error) {
	kind := r.Header.Get("Content-Type")
	if base, _, _ := mime.ParseMediaType(kind); base != "application/json" {
		return nil, c.wrongType(r, kind, "JSON", opening(r.Body))
	}
	return c.whole(r)
}

// whole reads the body, which must have at most MaxBytes.
func (c *Client) whole(r *Response) ([]byte, error) {
	return c.Upto(r, c.config.MaxBytes, " (max_bytes)")
}

// Upto reads the body, which must have at most so many bytes. The hint follows the bound in the words of the error.
func (c *Client) Upto(r *Response, most int64, hint string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	switch {
	case err != nil:
		return nil, c.explain(r.ctx, c.interrupted(err))
	case int64(len(body)) > most:
		return nil, &Error{text: fmt.Sprintf("the answer is longer than %d bytes%s", most, hint), cause: errFlood}
	}
	return body, nil
}

// wrongType returns the error of a response that has another type than the one wanted.
func (c *Client) wrongType(r *Response, kind, want string, body []byte) error {
	text := c.Clean(fmt.Sprintf("the answer is %q, not %s: %s", kind, want, body))
	return &Error{Permanent: true, Status: r.StatusCode, text: text}
}

// Follow passes each event of the response to take until answer.Done was called
// or the stream ends. take and the answer's emit are called from this goroutine only. The
// end of the stream before answer.Done is an error that names the missing end mark.
func (c *Client) Follow(r *Response, answer *Answer, end string, take func(Event) error) error {
	if !r.IsStream() {
		return c.wrongType(r, r.Header.Get("Content-Type"), "an event stream (check the agent's address)", opening(r.Body))
	}
	broken, err := c.read(r, answer, take)
	switch {
	case err != nil:
		return c.explain(r.ctx, err)
	case answer.done:
		return nil
	case broken != nil:
		return c.explain(r.ctx, broken)
	}
	return &Error{text: "the stream ended without " + end + ": the answer is incomplete"}
}

// FollowOrTake is Follow for a server that may ignore the wish for a stream: take gets its one JSON
// object as an event, after which no end mark is missing. Some servers call the object text, or a stream.
func (c *Client) FollowOrTake(r *Response, answer *Answer, end string, take func(Event) error) error {
	length := 64
	if r.IsStream() {
		length = 1 // the next byte may be long in coming
	}
	if !bytes.HasPrefix(bytes.TrimSpace(r.peek(length)), []byte("{")) {
		return c.Follow(r, answer, end, take)
	}
	whole, err := c.whole(r)
	if err != nil {
		return err
	}
	if n := objects(Event{Data: whole}); len(n) > 1 {
		return c.wrongType(r, r.Header.Get("Content-Type"), "an event stream, but one JSON object for each line, as the own protocols of Ollama and others have it (check the agent's address)", whole)
	}
	return take(Event{Data: whole})
}

// read passes the stream's events to take until the stream ends, breaks or goes on for longer than the grace after its end
// mark. The error is that of take or of the answer's emit.
func (c *Client) read(r *Response, answer *Answer, take func(Event) error) (broken, err error) {
	body := &paced{response: r, answer: answer}
	stream, n, marked := sse.NewReader(body, longestEvent(c.config.MaxBytes)), 0, false
	stream.Cuts = r.TakeCut
	for {
		event, err := stream.Next()
		switch {
		case body.err != nil:
			return nil, body.err
		case err == io.EOF:
			return nil, nil
		case err != nil:
			return c.interrupted(err), nil
		case len(event.Data) == 0:
			continue
		}
		if n == 0 {
			r.Begun()
		}
		list := []Event{event}
		if bytes.IndexByte(event.Data, '\n') >= 0 {
			list = objects(event)
		}
		for _, event := range list {
			if n++; n > maxEvents {
				return c.interrupted(errManyEvents), nil
			}
			if err := take(event); err != nil {
				return nil, err
			}
		}
		if answer.done && !marked {
			marked = true
			defer time.AfterFunc(grace, r.close).Stop()
		}
	}
}
