// Package openai is an agent that asks a model through an OpenAI-compatible chat completions
// API, such as OpenAI's own, OpenRouter's, or a local server's.
//
// The agent streams: it emits deltas as paced STREAMING_CHUNKs, and then one ANSWER with the
// whole text, which replaces them. Reasoning becomes a THOUGHT, and a tool call an UPDATE. The agent
// offers the tools of Parley and those of a client of the run protocol.
package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"

	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/stream"
)

var (
	_ turn.Agent          = (*Agent)(nil)
	_ turn.Learner        = (*Agent)(nil)
	_ turn.TakesDocuments = (*Agent)(nil)
	_ turn.TakesGiven     = (*Agent)(nil)
)

// Kind describes agents behind an OpenAI-compatible API.
func Kind() agent.Kind { return remote.NewKind("openai", DefaultConfig, New) }

// Agent is one model. It does not bound the number and the time of its runs; its caller
// enforces Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client
}

// New returns an agent for the configured model. It reads images from files; if files is nil,
// the model gets only their names. The transport carries the requests.
func New(config Config, files agent.Files, transport http.RoundTripper) *Agent {
	client := remote.New(config.Config, config.BaseURL, transport, config.APIKey)
	client.AddressHint = addressHint(config.BaseURL)
	return &Agent{config, files, client}
}

// version matches the end of the path of an API, such as /v1, /v1beta/openai and /api/paas/v4.
var version = regexp.MustCompile(`/v\d[^/]*(?:/openai)?/?$`)

// addressHint returns the likely fault of an address that the server does not know.
func addressHint(base string) string {
	if version.MatchString(base) {
		return ""
	}
	return "the base_url of most servers ends in /v1: try it with /v1, or check the model"
}

// Learnt implements turn.Learner.
func (a *Agent) Learnt() []string { return a.client.Learnt() }

// TakesDocuments implements turn.TakesDocuments.
func (a *Agent) TakesDocuments() bool { return a.config.TakesDocuments() }

// TakesGiven implements turn.TakesGiven.
func (a *Agent) TakesGiven() assembly.Native { return a.config.TakesGiven() }

// Run asks the model. It emits STREAMING_CHUNKs, the last of them Final, then a WARNING if
// the model stopped early, then the ANSWER. Run fails with a *remote.Error, with the error of
// emit, or, if ctx ended, with its cause.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	parameters := []remote.Parameter{streamOptions, streaming}
	if slices.ContainsFunc(input.Messages, func(m assembly.Message) bool { return m.Kept != nil }) {
		parameters = append(parameters, ownThoughts)
	}
	if len(input.Tools) > 0 || a.TakesGiven().Tools && input.Given.Tools != nil {
		parameters = append(parameters, clientTools)
	}
	forms := remote.Forms{Messages: a.config.Messages, Images: a.config.Images, Parameters: parameters, NewImages: func() *remote.Images {
		return a.config.NewImages(a.files, a.config.MaxImageBytes)
	}}
	return a.client.Adapt(input, forms, emit, func(form remote.Form, emit func(stream.Message) error) error {
		return a.ask(ctx, form, emit)
	})
}

// ask makes one request.
func (a *Agent) ask(ctx context.Context, form remote.Form, emit func(stream.Message) error) error {
	input := form.Input
	tools, err := a.config.Tools(input)
	if err == nil && !form.Has(clientTools.Name) {
		if tools = (remote.Tools{}); a.TakesGiven().Tools {
			form.Input.Messages, err = assembly.AddTools(form.Input.Messages, &input.Given)
		}
	}
	if err != nil {
		return err
	}
	form.Offer(&tools)
	response, err := a.client.Ask(ctx, a.address("/chat/completions"), input.RequestID(), a.request(ctx, form, &tools), form.Images, func(r *http.Request) error {
		a.authorize(r)
		return nil
	})
	if err != nil {
		return err
	}
	defer response.Close()
	c := &completion{agent: a, tools: tools, answer: remote.NewAnswer(input.RequestID(), a.config.MaxBytes, emit).Read(a.config.Reading, a.client, input.Speakers).Measured(input.Measure)}
	if err := a.client.FollowOrTake(response, c.answer, "finish_reason or [DONE]", c.take); err != nil {
		return err
	}
	return c.end()
}

// completion is one answer of the model.
type completion struct {
	agent  *Agent
	answer *remote.Answer
	tools  remote.Tools
	done   bool            // the end mark has come
	finish string          // finish_reason
	usage  json.RawMessage // the counts of tokens; nil if the server sent none
	took   took
	calls  []*call
	called int // bytes of the calls

	kept    thoughts
	details details

	text, thought, arguments remote.Halves
}

// end ends the answer after the stream.
func (c *completion) end() error {
	if err := c.sayCalls(); err != nil {
		return err
	}
	end := remote.Ending{Key: "finish_reason", Finish: c.finish, Tools: &c.tools, Kept: c.back()}
	if len(c.usage) > 0 {
		end.Usage = c.usage
	}
	return c.agent.client.Finish(c.answer, end)
}
