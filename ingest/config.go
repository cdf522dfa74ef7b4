// Package ingest accepts envelopes and makes them durable events, once and in
// order; decides what an event asks for.
package ingest

import (
	"fmt"
	"strings"
	"time"

	"parley/ingest/event"
)

// Policy says what an event asks for. Start from DefaultPolicy.
type Policy struct {
	// RequireMention says that a message in a room asks for a run only where it
	// addresses us.
	RequireMention bool `yaml:"require_mention"`
	// PassiveMemory says that what asks for no run is stored all the same.
	PassiveMemory bool `yaml:"passive_memory"`
	// AllowBotMessages admits other programs' messages.
	AllowBotMessages bool `yaml:"allow_bot_messages"`
	// MaxAge is how old a message may be on arrival and still ask for a run.
	MaxAge time.Duration `yaml:"max_age"`
	// Reactions says that a reaction which is put on a message is also a message
	// of who put it on: one to ours is a reply, any other asks for nothing.
	Reactions bool `yaml:"reactions"`
	// AllowUsers and AllowChannels are the ids that are admitted, as the platform
	// writes them. A nil list admits everybody; an empty one that is not nil,
	// nobody.
	AllowUsers    []string `yaml:"allow_users"`
	AllowChannels []string `yaml:"allow_channels"`
	// LoopGuard bounds what bots can make the agent do.
	LoopGuard LoopGuard `yaml:"loop_guard"`
	// FromMe says that the account owner's own messages are judged like
	// anybody's (BlueBubbles' from_me: run); otherwise they are passive.
	FromMe bool `yaml:"-"`
}

// LoopGuard bounds the runs that bots begin: at most Runs in one channel within Per.
type LoopGuard struct {
	Runs int           `yaml:"runs"`
	Per  time.Duration `yaml:"per"`
}

// DefaultPolicy is what holds where the configuration says nothing.
func DefaultPolicy() Policy {
	return Policy{
		RequireMention: true,
		PassiveMemory:  true,
		MaxAge:         time.Hour,
		LoopGuard:      LoopGuard{Runs: 10, Per: 5 * time.Minute},
	}
}

// Validate returns every fault, by key, without any value.
func (p Policy) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := func(ok bool, field, words string) {
		if !ok {
			faults = append(faults, event.FieldError{Field: field, Message: words})
		}
	}
	check(p.MaxAge > 0, "max_age", "must be more than 0s")
	check(p.LoopGuard.Runs > 0, "loop_guard.runs", "must be at least 1")
	check(p.LoopGuard.Per > 0, "loop_guard.per", "must be more than 0s")
	for i, id := range p.AllowUsers {
		check(isID(id), fmt.Sprintf("allow_users[%d]", i), "must be a user's id, not a name: names can be taken by others")
	}
	for i, id := range p.AllowChannels {
		check(isID(id), fmt.Sprintf("allow_channels[%d]", i), "must be a channel's id, not a name: names can be taken by others")
	}
	return faults
}

// isID tells what may be a platform's id from what is certainly a name or a mention.
func isID(s string) bool {
	return s != "" && strings.TrimSpace(s) == s && !strings.ContainsAny(s[:1], "#@<")
}
