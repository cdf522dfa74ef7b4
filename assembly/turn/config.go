package turn

import (
	"time"

	"parley/ingest/event"
)

// What becomes of messages that arrive while a run is going.
const (
	ModeQueue     = "queue"     // they are the next turn
	ModeInterrupt = "interrupt" // the run is cancelled, and begins again with both; so does an edit of what it answers
	ModeSteer     = "steer"     // the run is handed them if its agent can take them, else queue
)

// What becomes of a reply that has been made stale by a newer message, or by an
// edit of what it answers.
const (
	StaleSend  = "send"  // it is sent, and recorded as stale
	StaleRerun = "rerun" // the agent is asked again, at most twice
	StaleDrop  = "drop"  // it is kept with its reason, and not sent
)

// What becomes of a delivery of which nobody can say whether it took effect.
const (
	UnknownResend = "resend" // it is sent again, and may stand there twice
	UnknownMarked = "marked" // it is sent again with a mark that says so
	UnknownHold   = "hold"   // it stays with the operator
)

// Config says how messages become turns. Start from DefaultConfig.
type Config struct {
	// Mode is ModeQueue, ModeInterrupt or ModeSteer.
	Mode string `yaml:"mode"`
	// Coalesce is how long a turn waits for a further message, counted from the
	// last one, and CoalesceMax from the first; with Coalesce 0 each message is
	// a turn.
	Coalesce    time.Duration `yaml:"coalesce"`
	CoalesceMax time.Duration `yaml:"coalesce_max"`
	// Stale is StaleSend, StaleRerun or StaleDrop.
	Stale string `yaml:"stale"`
	// Unknown is UnknownResend, UnknownMarked or UnknownHold.
	Unknown string `yaml:"unknown"`
	// MaxAttempts is how many runs of a turn may fail before the thread hears of it.
	MaxAttempts int `yaml:"max_attempts"`
}

// DefaultConfig is what holds where the configuration says nothing.
func DefaultConfig() Config {
	return Config{
		Mode:        ModeQueue,
		Coalesce:    500 * time.Millisecond,
		CoalesceMax: 2500 * time.Millisecond,
		Stale:       StaleSend,
		Unknown:     UnknownResend,
		MaxAttempts: 3,
	}
}

// Validate returns every fault, by key, without any value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := func(ok bool, field, words string) {
		if !ok {
			faults = append(faults, event.FieldError{Field: field, Message: words})
		}
	}
	check(c.Mode == ModeQueue || c.Mode == ModeInterrupt || c.Mode == ModeSteer, "mode", "must be queue, interrupt or steer")
	check(c.Coalesce >= 0, "coalesce", "must be 0s or more")
	check(c.CoalesceMax >= c.Coalesce, "coalesce_max", "must not be less than coalesce")
	check(c.Stale == StaleSend || c.Stale == StaleRerun || c.Stale == StaleDrop, "stale", "must be send, rerun or drop")
	check(c.Unknown == UnknownResend || c.Unknown == UnknownMarked || c.Unknown == UnknownHold, "unknown", "must be resend, marked or hold")
	check(c.MaxAttempts > 0, "max_attempts", "must be at least 1")
	return faults
}
