// Package a2a is an agent behind a service of the Agent2Agent protocol, version 0.3, over JSON-RPC.
//
// The types are our own. The published Go SDK costs little (its core types add one package and 70 kB to the binary; its client adds 86 packages
// and 4.1 MB, most of them gRPC), but it is strict: a time without a zone, a part of an unknown kind or data that is a list makes
// a whole event unreadable, and with it the answer.
package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/stream"
)

var (
	_ turn.Agent         = (*Agent)(nil)
	_ turn.KeepsSessions = (*Agent)(nil)
	_ turn.WorksOn       = (*Agent)(nil)
	_ agent.Checker      = (*Agent)(nil)
)

// Kind describes agents behind a service of A2A.
func Kind() agent.Kind { return remote.NewKind("a2a", defaults, New) }

func defaults() Config {
	return Config{Config: remote.DefaultConfig(), Reading: remote.DefaultReading()}
}

// Config is the configuration of one service.
type Config struct {
	// Card is the address of the agent's card.
	Card string `yaml:"card"`
	// URL is the address of the service, if it is not the card's: the card may have another origin.
	URL string `yaml:"url"`
	// Token is sent as the card's security scheme has it; unset for none.
	Token          secret.Value `yaml:"token"`
	remote.Config  `yaml:",inline"`
	remote.Reading `yaml:",inline"`
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	_, isAddress := adapters.ParseAddress(c.Card)
	faults.Check(isAddress, "card", "must be the http or https address of the agent's card, without credentials; it often ends with /.well-known/agent-card.json")
	_, isAddress = adapters.ParseAddress(c.URL)
	faults.Check(c.URL == "" || isAddress, "url", "must be the http or https address of the service, without credentials, or be left out for the card's")
	faults.Check(!strings.ContainsAny(c.Token.Reveal(), "\r\n"), "token", "must be one line")
	c.Config.Check(&faults)
	c.Reading.Check(&faults)
	return faults
}

// Agent is one service. It does not bound the number and the time of its runs; its caller
// enforces Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client

	mu   sync.Mutex
	card *card // nil if it must be read
	read time.Time
}

// New returns an agent for the configured service. The transport carries the requests.
func New(config Config, files agent.Files, transport http.RoundTripper) *Agent {
	a := &Agent{config: config, files: files, client: remote.New(config.Config, config.Card, transport, config.Token)}
	if config.URL != "" {
		a.client.Hide(config.URL)
	}
	return a
}

// KeepsSessions implements turn.KeepsSessions.
func (a *Agent) KeepsSessions() {}

// session has the service's context for a thread, and the last task in it.
type session struct {
	Context string `json:"context,omitempty"`
	Task    string `json:"task,omitempty"`
	Run     string `json:"run,omitempty"`   // that has asked for the task, or has gone on with it
	Since   int64  `json:"since,omitempty"` // when the run asked, in seconds since 1970
}

func readSession(kept string) (s session) {
	_ = json.Unmarshal([]byte(kept), &s) // an unreadable one is none
	return s
}

func (s session) String() string {
	raw, _ := json.Marshal(s) // texts and a number always encode
	return string(raw)
}

// Run sends the turn to the service, and follows the task until it ends. If an earlier attempt has sent the turn, Run only
// follows. It emits the texts of the artifacts as STREAMING_CHUNKs and an ANSWER, status messages as UPDATEs, and
// input-required as a REQUEST_INPUT. A task that works on when the time of the attempt ends is left to a later attempt. The
// service is told if nobody wants the answer.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	ctx = remote.WithRunToken(ctx, input)
	r := newRun(a, input, emit)
	err := r.make(ctx)
	if err != nil && !r.ended && r.id != "" {
		switch {
		case turn.Unwanted(ctx):
			a.cancel(ctx, r.id)
		case ctx.Err() != nil:
			return &later{pause: r.pause(), cause: err}
		}
	}
	a.judge(err)
	return err
}

// later is the error of an attempt whose time has ended while the task works.
type later struct {
	pause time.Duration
	cause error
}

func (l *later) Error() string { return "the agent's task works on: " + l.cause.Error() }

// Unwrap makes the error a turn.ErrLater.
func (l *later) Unwrap() []error { return []error{turn.ErrLater, l.cause} }

// Pause returns the time until the next attempt.
func (l *later) Pause() time.Duration { return l.pause }

// cancelTimeout bounds the call that cancels a task.
const cancelTimeout = 2 * time.Second

// Abandon implements turn.WorksOn.
func (a *Agent) Abandon(ctx context.Context, run string, sessions []string) {
	for _, kept := range sessions {
		if s := readSession(kept); s.Task != "" && s.Run == run {
			a.cancel(ctx, s.Task)
		}
	}
}

// cancel tells the service that nobody wants the answer of a task. Parley takes no answer of it either way.
func (a *Agent) cancel(ctx context.Context, task string) {
	ctx, cancel := context.WithTimeout(turn.WithProof(context.WithoutCancel(ctx), nil), cancelTimeout)
	defer cancel()
	service, err := a.service(ctx)
	if err != nil {
		return
	}
	response, err := a.call(ctx, service, "tasks/cancel", "", taskQuery{task}, nil)
	if err == nil {
		response.Close()
	}
}

// call posts a request of JSON-RPC with the token.
func (a *Agent) call(ctx context.Context, service *card, method, run string, params any, images *remote.Images) (*remote.Response, error) {
	if images == nil {
		images = remote.NewImages(a.files, 0, 0)
	}
	body := rpcRequest{"2.0", run, method, params}
	if run == "" {
		body.ID = method
	}
	return a.client.Ask(ctx, service.url, run, body, images, func(r *http.Request) error {
		service.scheme.admit(r, a.config.Token)
		return nil
	})
}

// service returns the agent's card, which is kept for some minutes.
func (a *Agent) service(ctx context.Context) (*card, error) {
	a.mu.Lock()
	known, read := a.card, a.read
	a.mu.Unlock()
	if known != nil && time.Since(read) < cardAge {
		return known, nil
	}
	read = time.Now()
	fetched, err := a.fetch(ctx)
	if err != nil {
		if fault, ok := errors.AsType[*cardFault](err); ok {
			return nil, a.client.Rejected(fmt.Sprintf("%s: %s", fault.key, fault.words), "")
		}
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.card, a.read = fetched, read
	return fetched, nil
}

// judge forgets the card after a failure of the service: it may have moved.
func (a *Agent) judge(err error) {
	if fault, ok := errors.AsType[*remote.Error](err); ok && (fault.Status != 0 || fault.Refused()) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.card = nil
	}
}
