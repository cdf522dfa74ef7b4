package bluebubbles

import (
	"net/url"
	"time"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest/event"
)

// The methods by which a BlueBubbles server sends messages.
const (
	MethodAppleScript = "apple-script"
	MethodPrivateAPI  = "private-api"
)

// The values of Config.FromMe: how the policy treats the account owner's own messages.
const (
	FromMePassive = "passive" // they are stored as context
	FromMeRun     = "run"     // they are judged like other people's messages
)

// Config is the configuration of one BlueBubbles server. DefaultConfig returns the defaults.
type Config struct {
	// URL is the server's address without /api/v1.
	URL string `yaml:"url"`
	// Password is the server's password.
	Password secret.Value `yaml:"password"`
	// WebhookSecret is the last segment of the webhook's address.
	WebhookSecret secret.Value `yaml:"webhook_secret"`
	// Method is MethodAppleScript or MethodPrivateAPI.
	Method string `yaml:"method"`
	// FromMe is FromMePassive or FromMeRun.
	FromMe string `yaml:"from_me"`
	// Timeout bounds one call to the server.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig returns the defaults. URL, Password and WebhookSecret have none. After
// sending by AppleScript, the server looks for the message for up to two minutes before it
// answers, so a shorter timeout would abort calls that succeed.
func DefaultConfig() Config {
	return Config{Method: MethodAppleScript, FromMe: FromMePassive, Timeout: 150 * time.Second}
}

// RunsFromMe reports whether the policy judges the account owner's own messages like other
// people's.
func (c Config) RunsFromMe() bool { return c.FromMe == FromMeRun }

// Accounts implements adapters.Config.
func (c Config) Accounts() []adapters.Account { return []adapters.Account{{Key: "url", Value: c.URL}} }

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(isAddress(c.URL), "url", "must be the http or https address of the BlueBubbles server, without the password")
	check(!c.Password.IsZero(), "password", "is required: the password of the BlueBubbles server")
	check(!c.WebhookSecret.IsShort(), "webhook_secret", "must be a random word of at least 24 characters, the last part of the webhook's address")
	check(c.WebhookSecret.Reveal() == url.PathEscape(c.WebhookSecret.Reveal()),
		"webhook_secret", "must contain only letters, digits, - and _, because it is part of an address")
	check(c.Method == MethodAppleScript || c.Method == MethodPrivateAPI, "method", "must be apple-script or private-api")
	check(c.FromMe == FromMePassive || c.FromMe == FromMeRun, "from_me", "must be passive or run")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	return faults
}

// isAddress reports whether s is an http or https address without credentials.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
