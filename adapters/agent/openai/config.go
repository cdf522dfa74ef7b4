package openai

import (
	"net/url"
	"time"

	"parley/adapters/agent"
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
	// SystemPrompt precedes the thread; empty for none.
	SystemPrompt string `yaml:"system_prompt"`
	// Timeout bounds a run. FirstByte bounds the wait for the first byte of its answer.
	Timeout   time.Duration `yaml:"timeout"`
	FirstByte time.Duration `yaml:"first_byte"`
	// MaxBytes bounds a run's answer, in bytes.
	MaxBytes int64 `yaml:"max_bytes"`
	// MaxConcurrent bounds the number of concurrent runs.
	MaxConcurrent int `yaml:"max_concurrent"`
}

// DefaultConfig returns the defaults: a model server on this machine. Model has none.
func DefaultConfig() Config {
	return Config{
		BaseURL:       "http://127.0.0.1:11434/v1",
		SystemPrompt:  "You are a helpful colleague.",
		Timeout:       5 * time.Minute,
		FirstByte:     time.Minute,
		MaxBytes:      4 << 20,
		MaxConcurrent: 128,
	}
}

// Bounds returns the bounds of the agent's runs.
func (c Config) Bounds() agent.Bounds {
	return agent.Bounds{Timeout: c.Timeout, MaxBytes: c.MaxBytes, MaxConcurrent: c.MaxConcurrent}
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(isAddress(c.BaseURL), "base_url", "must be an http or https address up to and including /v1, without credentials")
	check(c.Model != "", "model", "is required: the model's name, as the server knows it")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	check(c.FirstByte > 0, "first_byte", "must be more than 0s")
	check(c.MaxBytes > 0, "max_bytes", "must be more than 0")
	check(c.MaxConcurrent > 0, "max_concurrent", "must be at least 1")
	return faults
}

// isAddress reports whether s is an http or https address without credentials.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
