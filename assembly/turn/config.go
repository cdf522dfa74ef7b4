package turn

import (
	"time"

	"parley/ingest/event"
)

// The handling of messages that arrive during a run.
const (
	ModeQueue     = "queue"     // they become the next turn
	ModeInterrupt = "interrupt" // the run is cancelled and begins again with both; an edit of its messages does the same
	ModeSteer     = "steer"     // the run gets them if its agent can take them, else queue
)

// The handling of a reply that is stale: a newer message, or an edit of a message that
// it answers, was recorded before it.
const (
	StaleSend  = "send"  // it is sent and recorded as stale
	StaleRerun = "rerun" // the agent is asked again, at most twice
	StaleDrop  = "drop"  // it is stored with its reason and not sent
)

// The handling of a delivery if the platform cannot tell whether it took effect.
const (
	UnknownResend = "resend" // it is sent again, and may appear twice
	UnknownMarked = "marked" // it is sent again with a mark that says so
	UnknownHold   = "hold"   // it is not sent; the operator decides
)

// Config controls how messages become turns. Start from DefaultConfig.
type Config struct {
	// Mode is ModeQueue, ModeInterrupt or ModeSteer.
	Mode string `yaml:"mode"`
	// Coalesce is the time that a turn waits for a further message after its last one,
	// and CoalesceMax after its first one. If Coalesce is 0, each message is a turn.
	Coalesce    time.Duration `yaml:"coalesce"`
	CoalesceMax time.Duration `yaml:"coalesce_max"`
	// Stale is StaleSend, StaleRerun or StaleDrop.
	Stale string `yaml:"stale"`
	// Unknown is UnknownResend, UnknownMarked or UnknownHold.
	Unknown string `yaml:"unknown"`
	// MaxAttempts is the number of failed attempts after which the thread is told.
	MaxAttempts int `yaml:"max_attempts"`
	// RestartAfter is a time without messages. After it, a direct conversation starts again, as by /new. 0 means never.
	RestartAfter time.Duration `yaml:"restart_after"`
}

// DefaultConfig returns the settings that the configuration changes.
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
	faults.Check(c.Mode == ModeQueue || c.Mode == ModeInterrupt || c.Mode == ModeSteer, "mode", "must be queue, interrupt or steer")
	faults.Check(c.Coalesce >= 0, "coalesce", "must be 0s or more")
	faults.Check(c.CoalesceMax >= c.Coalesce, "coalesce_max", "must not be less than coalesce")
	faults.Check(c.Stale == StaleSend || c.Stale == StaleRerun || c.Stale == StaleDrop, "stale", "must be send, rerun or drop")
	faults.Check(c.Unknown == UnknownResend || c.Unknown == UnknownMarked || c.Unknown == UnknownHold, "unknown", "must be resend, marked or hold")
	faults.Check(c.MaxAttempts > 0, "max_attempts", "must be at least 1")
	faults.Check(c.RestartAfter == 0 || c.RestartAfter >= time.Minute, "restart_after", "must be at least 1m, or 0s for never")
	return faults
}
