package backfill

import (
	"time"

	"parley/ingest/event"
)

// Config bounds the messages that are read. Start from DefaultConfig.
type Config struct {
	// MaxAge is the age up to which a missed message is read and may trigger a run; 0
	// reads none.
	MaxAge time.Duration `yaml:"max_age"`
	// Messages bounds the missed messages of one channel that are read; the newest are
	// read.
	Messages int `yaml:"messages"`
}

// DefaultConfig returns the bounds that apply if the configuration sets none.
func DefaultConfig() Config { return Config{MaxAge: 24 * time.Hour, Messages: 1000} }

const (
	// maxAge bounds MaxAge. The keys of accepted envelopes are stored for longer.
	maxAge = 7 * 24 * time.Hour
	// maxMessages bounds Messages, because the messages of one channel are in memory
	// together.
	maxMessages = 10_000
)

// Validate returns every fault, by key, without any value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(c.MaxAge >= 0 && c.MaxAge <= maxAge, "max_age", "must be between 0s, which switches it off, and 7d")
	faults.Check(c.Messages > 0 && c.Messages <= maxMessages, "messages", "must be between 1 and 10000")
	return faults
}
