// Package agui is an agent behind an AG-UI endpoint, protocol 1.0.
//
// The codec is our own: the protocol tells absent, null and empty values apart, and the
// published Go SDK does not. The package reads every event of version 1.0 and the names and
// nulls of older versions, checks the order of the events, and passes unknown events by.
package agui

import (
	"context"
	"net/http"
	"strings"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/stream"
)

var _ turn.Agent = (*Agent)(nil)

// Kind describes agents behind an AG-UI endpoint.
func Kind() agent.Kind { return remote.NewKind("agui", defaults, New) }

func defaults() Config {
	return Config{Config: remote.DefaultConfig(), Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures()}
}

// Config is the configuration of one endpoint.
type Config struct {
	// URL is the endpoint's address, to which a run is posted.
	URL string `yaml:"url"`
	// Headers are sent with every request, such as Authorization.
	Headers         []Header `yaml:"headers"`
	remote.Config   `yaml:",inline"`
	remote.Reading  `yaml:",inline"`
	remote.Pictures `yaml:",inline"`
}

// Header is a header of a request.
type Header struct {
	Name  string       `yaml:"name"`
	Value secret.Value `yaml:"value"`
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	_, isAddress := adapters.ParseAddress(c.URL)
	faults.Check(isAddress, "url", "must be the http or https address of the agent, without credentials")
	for _, h := range c.Headers {
		faults.Check(isToken(h.Name) && !strings.ContainsAny(h.Value.Reveal(), "\r\n"), "headers",
			"must be a list of {name, value}: a name of letters, digits and -, and a value of one line")
	}
	c.Config.Check(&faults)
	c.Reading.Check(&faults)
	c.Pictures.Check(&faults)
	return faults
}

func isToken(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// Agent is one endpoint. It does not bound the number and the time of its runs; its caller
// enforces Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client
}

// New returns an agent for the configured endpoint. The transport carries the requests.
func New(config Config, files agent.Files, transport http.RoundTripper) *Agent {
	var hidden []secret.Value
	for _, h := range config.Headers {
		hidden = append(hidden, h.Value)
	}
	return &Agent{config, files, remote.New(config.Config, config.URL, transport, hidden...)}
}

// Learnt implements turn.Learner.
func (a *Agent) Learnt() []string { return a.client.Learnt() }

// Run posts the thread and reads the run's events. It emits text as STREAMING_CHUNKs and an
// ANSWER, reasoning as THOUGHTs, steps, tool calls and activities as UPDATEs, an interrupt as
// a REQUEST_INPUT, and every other event as SYSTEM. A stream that ends without RUN_FINISHED
// or RUN_ERROR is an error. Only a request that the endpoint has refused is made again in another
// form: a run that has begun may have effects.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if err := a.takeAnswer(input); err != nil {
		return err
	}
	ctx = remote.WithRunToken(ctx, input)
	forms := remote.Forms{Images: a.config.Images, NewImages: func() *remote.Images {
		return remote.NewImages(a.files, remote.DefaultImageBytes, remote.DefaultImagesBytes)
	}}
	var begun *remote.Response
	emit = a.client.Telling(input, emit)
	err := a.client.Adapt(input, forms, emit, func(form remote.Form, _ func(stream.Message) error) (err error) {
		begun, err = a.post(ctx, form)
		return err
	})
	if err != nil {
		return a.notTaken(input, err)
	}
	defer begun.Close()
	begun.TakeCut = true
	r := newRun(a.client, remote.NewAnswer(input.RequestID(), a.config.MaxBytes, emit).Read(a.config.Reading, a.client, input.Speakers).Measured(input.Measure), int(a.config.MaxBytes), input)
	take := func(e remote.Event) error { return r.take(ctx, e) }
	if err := a.client.Follow(begun, r.answer, "RUN_FINISHED or RUN_ERROR", take); err != nil {
		return err
	}
	return r.end()
}

// post makes the request of a run.
func (a *Agent) post(ctx context.Context, form remote.Form) (*remote.Response, error) {
	in, err := a.input(ctx, form.Input, form.Images)
	if err != nil {
		return nil, err
	}
	return a.client.Ask(ctx, a.config.URL, form.Input.RequestID(), in, form.Images, func(r *http.Request) error {
		a.prepare(r)
		return nil
	})
}
