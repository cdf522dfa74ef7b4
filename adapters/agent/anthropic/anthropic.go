// Package anthropic is an agent that asks a model through Anthropic's Messages API.
//
// The client is our own: the vendor's SDK repeats requests by itself, and only the encoding
// of one request and the decoding of eight events would be left for it.
package anthropic

import (
	"context"
	"encoding/json"
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

// version is the version of the API.
// https://docs.anthropic.com/en/api/versioning
const version = "2023-06-01"

// maxImage is the size of the largest image, in bytes. The API bounds its base64 by 5 MiB.
// https://docs.anthropic.com/en/docs/build-with-claude/vision
const maxImage = 5 << 20 / 4 * 3

var (
	_ turn.Agent          = (*Agent)(nil)
	_ turn.Learner        = (*Agent)(nil)
	_ turn.TakesDocuments = (*Agent)(nil)
	_ turn.TakesGiven     = (*Agent)(nil)
	_ agent.ToolUser      = (*Config)(nil)
)

// Kind describes agents behind Anthropic's Messages API.
func Kind() agent.Kind { return remote.NewKind("anthropic", DefaultConfig, New) }

// Config is the configuration of one model.
type Config struct {
	// BaseURL is the API's address without /v1.
	BaseURL string       `yaml:"base_url"`
	APIKey  secret.Value `yaml:"api_key"`
	Model   string       `yaml:"model"`
	// MaxTokens bounds the answer, in the model's tokens.
	MaxTokens          int `yaml:"max_tokens"`
	remote.Config      `yaml:",inline"`
	remote.Reading     `yaml:",inline"`
	remote.Pictures    `yaml:",inline"`
	remote.Documents   `yaml:",inline"`
	remote.ClientTools `yaml:",inline"`
	remote.OtherTools  `yaml:",inline"`
}

var _ agent.Modelled = (*Config)(nil)

// ModelName implements agent.Modelled.
func (c *Config) ModelName() string { return c.Model }

// DefaultConfig returns the defaults. Model and APIKey have none.
func DefaultConfig() Config {
	return Config{BaseURL: "https://api.anthropic.com", MaxTokens: 4096, Config: remote.DefaultConfig(), Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures(), Documents: remote.DefaultDocuments(), ClientTools: remote.DefaultClientTools()}
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(adapters.IsBase(c.BaseURL), "base_url", "must be an http or https address without /v1 and credentials")
	check(c.Model != "", "model", "is required: the model's name, such as claude-sonnet-4-5")
	check(c.MaxTokens > 0, "max_tokens", "must be more than 0")
	c.Config.Check(&faults)
	c.Reading.Check(&faults)
	c.Pictures.Check(&faults)
	c.Documents.Check(&faults)
	c.ClientTools.Check(&faults)
	c.OtherTools.Check(&faults)
	return faults
}

// Agent is one model. It does not bound the number and the time of its runs; its caller
// enforces Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client
}

// New returns an agent for the configured model. The transport carries the requests.
func New(config Config, files agent.Files, transport http.RoundTripper) *Agent {
	return &Agent{config, files, remote.New(config.Config, config.BaseURL, transport, config.APIKey)}
}

// Learnt implements turn.Learner.
func (a *Agent) Learnt() []string { return a.client.Learnt() }

// TakesDocuments implements turn.TakesDocuments.
func (a *Agent) TakesDocuments() bool { return a.config.TakesDocuments() }

// TakesGiven implements turn.TakesGiven.
func (a *Agent) TakesGiven() assembly.Native { return a.config.TakesGiven() }

// Run asks the model. It emits STREAMING_CHUNKs, then a WARNING if the model stopped early,
// then the ANSWER. Run fails with a *remote.Error, with the error of emit, or, if ctx ended,
// with its cause.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	forms := remote.Forms{Images: a.config.Images, NewImages: func() *remote.Images {
		return a.config.NewImages(a.files, maxImage)
	}}
	return a.client.Adapt(input, forms, emit, func(form remote.Form, emit func(stream.Message) error) error {
		return a.ask(ctx, form, emit)
	})
}

// address returns the address of a resource of the API.
func (a *Agent) address(path string) string { return strings.TrimRight(a.config.BaseURL, "/") + path }

// authorize adds the key and the version of the API.
func (a *Agent) authorize(r *http.Request) {
	r.Header.Set("Anthropic-Version", version)
	if key := strings.TrimSpace(a.config.APIKey.Reveal()); key != "" {
		r.Header.Set("X-Api-Key", key)
	}
}

// ask makes one request.
func (a *Agent) ask(ctx context.Context, form remote.Form, emit func(stream.Message) error) error {
	input := form.Input
	tools, err := a.config.Tools(input)
	if err != nil {
		return err
	}
	form.Offer(&tools)
	response, err := a.client.Ask(ctx, a.address("/v1/messages"), input.RequestID(), a.request(ctx, form, &tools), form.Images, func(r *http.Request) error {
		a.authorize(r)
		return nil
	})
	if err != nil {
		return err
	}
	defer response.Close()
	m := &message{client: a.client, model: a.config.Model, tools: tools, answer: remote.NewAnswer(input.RequestID(), a.config.MaxBytes, emit).Read(a.config.Reading, a.client, input.Speakers).Measured(input.Measure), usage: map[string]json.RawMessage{}}
	if err := a.client.FollowOrTake(response, m.answer, "message_stop", m.take); err != nil {
		return err
	}
	return m.end()
}

// message is one answer of the model.
type message struct {
	client *remote.Client
	model  string
	answer *remote.Answer
	tools  remote.Tools
	done   bool // the end mark has come
	apart  bool // a block of another kind has come after the last text
	block  *block
	took   []string // the types of the blocks that have brought something
	kept   []kept
	stop   string // stop_reason
	usage  map[string]json.RawMessage

	written int // bytes of inputs and signatures

	text, thought remote.Halves
}

// bound counts further bytes that are no text.
func (m *message) bound(n int) error {
	m.written += n
	return m.answer.Bound(m.written)
}

// end ends the answer after the stream.
func (m *message) end() error {
	if err := m.endBlock(); err != nil {
		return err
	}
	end := remote.Ending{Key: "stop_reason", Finish: m.stop, Tools: &m.tools, Kept: m.back()}
	if len(m.usage) > 0 {
		end.Usage = m.usage
	}
	return m.client.Finish(m.answer, end)
}
