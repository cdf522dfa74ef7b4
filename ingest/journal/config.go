package journal

import (
	"time"

	"parley/ingest/event"
)

// Retention bounds how long the journal keeps rows that it no longer works with. The ids of
// messages live as long as their workspace. Start from DefaultRetention.
type Retention struct {
	// Envelopes is how long the raw bodies of settled envelopes and the contents of
	// ended deliveries are kept.
	Envelopes time.Duration `yaml:"envelopes"`
	// Keys is how long a repeated payload is recognised, at least as long as Envelopes.
	// The rows of a removed workspace are kept as long.
	Keys time.Duration `yaml:"keys"`
	// Runs is how long the rows of ended runs are kept.
	Runs time.Duration `yaml:"runs"`
	// RunEvents is how long the events of runs are kept.
	RunEvents time.Duration `yaml:"run_events"`
	// Inputs is how long the inputs of agents are kept; 0: they are not stored.
	Inputs time.Duration `yaml:"inputs"`
	// Messages is how long after it was sent a message keeps its words; 0: for good.
	Messages time.Duration `yaml:"messages"`
}

// DefaultRetention returns the bounds that apply without configuration. A BlueBubbles
// server may repeat events that are a week old.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{Envelopes: 8 * day, Keys: 30 * day, Runs: 90 * day, RunEvents: 90 * day}
}

// Validate returns all faults by key. They hold no values.
func (r Retention) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(r.Envelopes > 0, "envelopes", "must be more than 0s")
	faults.Check(r.Keys >= r.Envelopes, "keys", "must not be less than envelopes")
	faults.Check(r.Runs > 0, "runs", "must be more than 0s")
	faults.Check(r.Messages == 0 || r.Messages >= time.Minute, "messages", "must be 1m or more, or 0s to keep the words of messages for good")
	faults.Check(r.RunEvents > 0, "run_events", "must be more than 0s")
	return faults
}
