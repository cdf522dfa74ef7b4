package bridge

import (
	"time"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest/event"
)

// The values of Config.Format: the markup of the contents of posts.
const (
	FormatPlain    = "plain"    // text without any markup
	FormatMarkdown = "markdown" // the agent's CommonMark
)

// Config is the configuration of one program. DefaultConfig returns the defaults.
type Config struct {
	// Token is the bearer token of the program.
	Token secret.Value `yaml:"token"`
	// Deliver is the address that gets the posts.
	Deliver Deliver `yaml:"deliver"`
	// Format is FormatPlain or FormatMarkdown.
	Format string `yaml:"format"`
	// Edits, Buttons, Working and Reactions are the abilities of the program.
	Edits     bool `yaml:"edits"`
	Buttons   bool `yaml:"buttons"`
	Working   bool `yaml:"working"`
	Reactions bool `yaml:"reactions"`
	// PostRate is the number of posts a second that one channel takes; 0 is no bound.
	PostRate float64 `yaml:"post_rate"`
	// Timeout bounds one call of the program.
	Timeout time.Duration `yaml:"timeout"`
}

// Deliver is the address of the program.
type Deliver struct {
	URL string `yaml:"url"`
	// Secret signs the requests.
	Secret secret.Value `yaml:"secret"`
}

// DefaultConfig returns the defaults. Token and Deliver have none.
func DefaultConfig() Config { return Config{Format: FormatPlain, Timeout: 10 * time.Second} }

// Accounts implements adapters.Config.
func (c Config) Accounts() []adapters.Account {
	return []adapters.Account{{Key: "token", Value: c.Token.Reveal(), Words: "each workspace needs a token of its own, because people of two workspaces are never the same"}}
}

// Server returns the address of the program, whose clock ours is compared with.
func (c Config) Server() string { return c.Deliver.URL }

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() (faults event.FieldErrors) {
	check := faults.Check
	check(!c.Token.IsWeak(secret.MinLength), "token", "must be a random word of at least 24 characters, which the program sends as its bearer token")
	_, isAddress := adapters.ParseAddress(c.Deliver.URL)
	check(isAddress, "deliver.url", "must be the http or https address of the program, without credentials")
	check(!c.Deliver.Secret.IsWeak(secret.MinLength), "deliver.secret", "must be a random word of at least 24 characters, which signs the requests")
	check(c.Format == FormatPlain || c.Format == FormatMarkdown, "format", "must be plain or markdown")
	check(!c.Buttons || c.Edits, "buttons", "needs edits: true, because the buttons leave the post once a question is answered")
	check(c.PostRate >= 0, "post_rate", "must be 0 or more posts a second")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	return faults
}
