package adapters

import "context"

// Checker is an adapter that can say whether its platform lets it do its work.
type Checker interface {
	// Check asks the platform, and changes nothing there. It returns what the
	// operator should know, together with an error where some of it could not be
	// asked; what the platform refuses is no error, but a finding.
	Check(ctx context.Context, wants Wants) ([]Finding, error)
}

// Finding is what a Checker has found about one key of its Config.
type Finding struct {
	Key   string // such as "bot_token"
	Words string // what is wrong and what to do, without any value
	// Fault says that the workspace can't work so; else some of what it is to do
	// goes without.
	Fault bool
}

// Wants are what a workspace's settings ask of its platform beyond the adapter's
// own Config.
type Wants struct {
	// Reactions says that reactions reach the agent somewhere.
	Reactions bool
}
