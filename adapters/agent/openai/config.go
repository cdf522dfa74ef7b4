package openai

import (
	"net/url"
	"time"

	"parley/config/secret"
	"parley/ingest/event"
)

// Config is one model behind an OpenAI-compatible API. Start from DefaultConfig.
type Config struct {
	// BaseURL is where the API stands, as far as /v1.
	BaseURL string `yaml:"base_url"`
	// APIKey may be unset: local servers ask for none.
	APIKey secret.Value `yaml:"api_key"`
	Model  string       `yaml:"model"`
	// SystemPrompt stands before the thread; empty for none.
	SystemPrompt string `yaml:"system_prompt"`
	// Timeout bounds a run, and FirstByte the wait until its answer begins.
	Timeout   time.Duration `yaml:"timeout"`
	FirstByte time.Duration `yaml:"first_byte"`
	// MaxBytes bounds a run's answer, in bytes.
	MaxBytes int64 `yaml:"max_bytes"`
	// MaxConcurrent bounds the runs under way at one time.
	MaxConcurrent int `yaml:"max_concurrent"`
}

// DefaultConfig is what holds where the configuration says nothing: a model
// server on this machine. Model has no default.
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

// Validate returns every fault, by key, without any value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(isAddress(c.BaseURL), "base_url", "must be an http or https address as far as /v1, without credentials")
	check(c.Model != "", "model", "is required: the model's name, as the server knows it")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	check(c.FirstByte > 0, "first_byte", "must be more than 0s")
	check(c.MaxBytes > 0, "max_bytes", "must be more than 0")
	check(c.MaxConcurrent > 0, "max_concurrent", "must be at least 1")
	return faults
}

// isAddress tells an http or https address that holds no credentials.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
