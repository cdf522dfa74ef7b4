package openai

import (
	"slices"
	"strings"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/config/secret"
	"parley/ingest/event"
)

// Config is the configuration of one model behind an OpenAI-compatible API. DefaultConfig
// returns the defaults.
type Config struct {
	// BaseURL is the API's address up to and including /v1.
	BaseURL string `yaml:"base_url"`
	// APIKey may be unset, because local servers need none.
	APIKey secret.Value `yaml:"api_key"`
	Model  string       `yaml:"model"`
	// MaxImageBytes bounds an image, in bytes. The model gets only the name of a larger one.
	MaxImageBytes int64 `yaml:"max_image_bytes"`
	// Messages is the form of the messages: contract, strict, or auto, which begins with contract and is
	// strict after a refusal.
	Messages string `yaml:"messages"`
	// The system prompt is "You are a helpful colleague." unless it is set.
	remote.Config      `yaml:",inline"`
	remote.Reading     `yaml:",inline"`
	remote.Pictures    `yaml:",inline"`
	remote.Documents   `yaml:",inline"`
	remote.ClientTools `yaml:",inline"`
	remote.OtherTools  `yaml:",inline"`
}

var (
	_ agent.ToolUser = (*Config)(nil)
	_ agent.Modelled = (*Config)(nil)
)

// ModelName implements agent.Modelled.
func (c *Config) ModelName() string { return c.Model }

// DefaultConfig returns the defaults: a model server on this machine. Model has none.
func DefaultConfig() Config {
	c := Config{
		BaseURL: "http://127.0.0.1:11434/v1", MaxImageBytes: remote.DefaultImageBytes, Messages: remote.Auto,
		Config: remote.DefaultConfig(), Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures(), Documents: remote.DefaultDocuments(), ClientTools: remote.DefaultClientTools(),
	}
	c.SystemPrompt = "You are a helpful colleague."
	return c
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(adapters.IsBase(c.BaseURL), "base_url", "must be an http or https address up to and including /v1, without credentials")
	check(!strings.HasSuffix(strings.TrimRight(c.BaseURL, "/"), "/chat/completions"), "base_url", "must end before /chat/completions, such as in /v1")
	check(c.Model != "", "model", "is required: the model's name, as the server knows it")
	check(c.MaxImageBytes > 0, "max_image_bytes", "must be more than 0")
	check(slices.Contains([]string{remote.Auto, remote.Contract, remote.Strict}, c.Messages), "messages", "must be auto, contract or strict")
	c.Config.Check(&faults)
	c.Reading.Check(&faults)
	c.Pictures.Check(&faults)
	c.Documents.Check(&faults)
	c.ClientTools.Check(&faults)
	c.OtherTools.Check(&faults)
	return faults
}
