package journal

import (
	"time"

	"parley/ingest/event"
)

// Retention says how long the journal keeps what it no longer works with.
// Messages are kept for ever. Start from DefaultRetention.
type Retention struct {
	// Envelopes is how long the raw bodies of settled envelopes are kept.
	Envelopes time.Duration `yaml:"envelopes"`
	// Keys is how long the same payload is known again, at least as long as Envelopes.
	Keys time.Duration `yaml:"keys"`
	// RunEvents is how long what agents said while they worked is kept.
	RunEvents time.Duration `yaml:"run_events"`
}

// DefaultRetention is what holds where the configuration says nothing. A
// BlueBubbles server may send again what is a week old.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{Envelopes: 8 * day, Keys: 30 * day, RunEvents: 90 * day}
}

// Validate returns every fault, by key, without any value.
func (r Retention) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := func(ok bool, field, words string) {
		if !ok {
			faults = append(faults, event.FieldError{Field: field, Message: words})
		}
	}
	check(r.Envelopes > 0, "envelopes", "must be more than 0s")
	check(r.Keys >= r.Envelopes, "keys", "must not be less than envelopes")
	check(r.RunEvents > 0, "run_events", "must be more than 0s")
	return faults
}
