package adapters

import (
	"context"
	"time"
)

// Checker is an adapter that can check the permissions that its platform gives it.
type Checker interface {
	// Check queries the platform and changes nothing there. It returns findings for the
	// operator, and an error if some of the queries failed. A refusal by the platform is
	// a finding, not an error.
	Check(ctx context.Context, wants Wants) ([]Finding, error)
}

// Finding is the finding of a Checker about one key of its Config.
type Finding struct {
	Key   string // such as "bot_token"
	Words string // the problem and its remedy, without any value
	// Fault says that the workspace cannot work. Otherwise only some of its abilities are
	// missing.
	Fault bool
	// Note says that nothing is missing.
	Note bool
}

// Wants are the facts about a workspace's settings that matter to its platform, beyond the
// adapter's own Config.
type Wants struct {
	// Everybody says that no list of users limits the senders of some channel.
	Everybody bool
	// AnyServer says that no list of servers limits the senders of some channel.
	AnyServer bool
	// Hook is the URL of the workspace's hook for the platform, without a slash at the end.
	Hook string
	// Reactions says that some channel passes reactions to the agent.
	Reactions bool
	// Groups says that user groups decide who is admitted or approves.
	Groups bool
	// Reacts says that an agent or a program may add reactions.
	Reacts bool
	// MissedAge is the age up to which missed messages are read, and MissedMessages how many of one
	// channel; 0 sets no bound here.
	MissedAge      time.Duration
	MissedMessages int
}

// Switch is a setting that is on or off, or has another value that decides itself. A file may write it without quotes.
type Switch string

// The values that each Switch has.
const (
	On  Switch = "true"
	Off Switch = "false"
)
