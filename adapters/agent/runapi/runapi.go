// Package runapi is an agent behind a server of the agent run protocol: a run is posted once,
// and its messages come as a stream of compact messages that can be continued.
package runapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/lookalike"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/stream"
)

var (
	_ turn.Agent       = (*Agent)(nil)
	_ turn.TakesGiven  = (*Agent)(nil)
	_ turn.HidesTokens = (*Agent)(nil)
)

// Kind describes agents behind a server of the run protocol.
func Kind() agent.Kind { return remote.NewKind("run-api", defaults, New) }

func defaults() Config { return Config{Preview: PreviewWhole, Config: remote.DefaultConfig()} }

// What people see of an answer while it grows.
const (
	PreviewWhole  = "whole"  // only a whole answer: the tokens may belong to a thought
	PreviewTokens = "tokens" // all tokens of the main workstream
)

// Config is the configuration of one server.
type Config struct {
	// BaseURL is the server's address without /api/v1.
	BaseURL string `yaml:"base_url"`
	// Token is the bearer token of every request.
	Token secret.Value `yaml:"token"`
	// Preview is PreviewWhole or PreviewTokens.
	Preview       string `yaml:"preview"`
	remote.Config `yaml:",inline"`
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(adapters.IsBase(c.BaseURL), "base_url", "must be an http or https address without /api/v1 and credentials")
	faults.Check(!c.Token.IsZero(), "token", "is required: the server's bearer token")
	faults.Check(c.Preview == PreviewWhole || c.Preview == PreviewTokens, "preview", "must be whole or tokens")
	c.Config.Check(&faults)
	return faults
}

// Agent is one server. It does not bound the number and the time of its runs; its caller
// enforces Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client
}

// New returns an agent for the configured server. The transport carries the requests.
func New(config Config, files agent.Files, transport http.RoundTripper) *Agent {
	return &Agent{config, files, remote.New(config.Config, config.BaseURL, transport, config.Token)}
}

// Run posts the run, unless the server has accepted it before, and emits the messages of its
// stream. A lost stream is continued. The run ends with a COMPLETE, IDLE, REQUEST_INPUT or
// TERMINATED of the main workstream. The server is told if a person stops the run.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	ctx = remote.WithRunToken(ctx, input)
	if !input.Taken {
		if err := a.post(ctx, input); err != nil {
			return err
		}
		if err := input.Take(); err != nil {
			return err
		}
	}
	err := newFollower(a, input, emit).follow(ctx)
	if turn.Unwanted(ctx) {
		a.stop(ctx, input.RunID)
	}
	return err
}

// post asks the server for the run. A run that the server knows already is the same run.
func (a *Agent) post(ctx context.Context, input assembly.Input) error {
	in, err := a.input(ctx, input)
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	switch err := in.Check(len(body)); err {
	case nil:
	case runinput.LongText, runinput.TooLarge:
		return a.client.Rejected(err.Error(), "Sorry, this is too long for me: please ask with fewer words.")
	default:
		return a.client.Rejected(err.Error(), "")
	}
	request, err := a.request(ctx, "runs", input.RunID, bytes.NewReader(body))
	if err != nil {
		return err
	}
	var accepted struct{ RunID string }
	answer, err := a.call(request, &accepted)
	if err != nil {
		return err
	}
	if cmp.Or(accepted.RunID, input.RunID) != input.RunID {
		return a.client.Invalid("the server did not accept the run: it answered "+string(answer), nil)
	}
	return nil
}

// call sends a request and reads the JSON of its answer, which it also returns as it is.
func (a *Agent) call(request *http.Request, into any) ([]byte, error) {
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Close()
	answer, err := a.client.JSON(response)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return nil, a.client.Invalid("the server answered "+string(answer), err)
	}
	return answer, nil
}

// request returns a request with the bearer token: a POST if there is a body, else a GET.
func (a *Agent) request(ctx context.Context, path, run string, body io.Reader) (*http.Request, error) {
	request, err := a.client.Request(ctx, strings.TrimRight(a.config.BaseURL, "/")+"/api/v1/agent/"+path, run, body)
	if err != nil {
		return nil, err
	}
	a.authorize(request)
	return request, nil
}

// authorize adds the bearer token.
func (a *Agent) authorize(request *http.Request) {
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(a.config.Token.Reveal()))
}

// The descriptions of our own context. A client's context has none of them: see foreign.
const (
	chosen       = "Chosen option" // the id of the option that answers a question
	instructions = "Instructions"  // of the operator
	background   = "Thread context"
)

// foreign returns a client's context. An entry that passes for a chosen option is left out, and one that passes
// for another entry of ours gets a description that names its author.
func foreign(context []runinput.Context) []runinput.Context {
	passesFor := func(c runinput.Context, ours string) bool {
		return strings.EqualFold(strings.Join(strings.Fields(lookalike.Seen(c.Description)), " "), ours)
	}
	kept := []runinput.Context{}
	for _, c := range context {
		switch {
		case passesFor(c, chosen):
			continue
		case passesFor(c, instructions), passesFor(c, background):
			c.Description += " (from the person who asks)"
		}
		kept = append(kept, c)
	}
	return kept
}

// input returns the body of a run: the messages since the last reply as one user message, and
// the thread's context beside it. The server keeps the earlier turns itself.
func (a *Agent) input(ctx context.Context, input assembly.Input) (runinput.Input, error) {
	given := input.Given
	in := runinput.Input{
		ThreadID: input.ThreadID, RunID: input.RunID, ParentRunID: given.ParentRunID,
		State: runinput.Or(given.State, `{}`), ForwardedProps: a.config.Noted(input.Notes).Forward(assembly.Dispatched(runinput.Or(given.ForwardedProps, `{}`), input.Said)),
		Tools: []runinput.Tool{}, Context: []runinput.Context{},
	}
	if err := errors.Join(json.Unmarshal(runinput.Or(given.Tools, `[]`), &in.Tools), json.Unmarshal(runinput.Or(given.Context, `[]`), &in.Context)); err != nil {
		return in, err
	}
	in.Tools = append(append([]runinput.Tool{}, input.Tools...), slices.DeleteFunc(in.Tools, func(client runinput.Tool) bool {
		return slices.ContainsFunc(input.Tools, func(ours runinput.Tool) bool { return ours.Name == client.Name })
	})...)
	in.Context = foreign(in.Context)
	if r := input.Resume; r != nil && r.Answered { // other words than an answer must not pass for one
		in.ParentRunID = r.RunID
		if r.Option != "" {
			in.Context = append(in.Context, runinput.Context{Description: chosen, Value: r.Option})
		}
	}
	if a.config.SystemPrompt != "" {
		in.Context = append(in.Context, runinput.Context{Description: instructions, Value: a.config.SystemPrompt})
	}
	current := input.Messages
	for i, m := range input.Messages {
		if m.Role == assembly.RoleAssistant {
			current = input.Messages[i+1:]
		}
	}
	var said []assembly.Message
	ours := !slices.ContainsFunc(current, func(m assembly.Message) bool { return m.Role != assembly.RoleSystem })
	for _, m := range current {
		if ours && isSaid(m) { // Parley alone asks, with a report or a prompt, and the protocol knows no run without a message
			m.Role = assembly.RoleUser
		}
		if m.Role == assembly.RoleSystem {
			in.Context = append(in.Context, runinput.Context{Description: background, Value: remote.Text(m)})
		} else {
			said = append(said, m)
		}
	}
	for _, m := range assembly.Join(said) {
		blocks, err := a.blocks(ctx, m)
		if err != nil {
			return in, err
		}
		content := runinput.Content{Blocks: blocks}
		if blocks == nil {
			content.Text = remote.Text(m)
		}
		in.Messages = append(in.Messages, runinput.Message{ID: m.ID, Role: string(m.Role), Content: content, More: given.User})
	}
	for _, raw := range given.More {
		in.Messages = append(in.Messages, runinput.Message{Raw: raw})
	}
	return in, nil
}

// isSaid reports whether a message is one of the thread, and no block about it: the ids of blocks are no UUIDs.
func isSaid(m assembly.Message) bool { return uuid.Validate(m.ID) == nil }

// TakesGiven implements turn.TakesGiven.
func (a *Agent) TakesGiven() assembly.Native {
	return assembly.Native{Instructions: true, Tools: true, Facts: true, Messages: true}
}

// HidesTokens implements turn.HidesTokens.
func (a *Agent) HidesTokens() bool { return a.config.Preview != PreviewTokens }
