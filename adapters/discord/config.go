package discord

import (
	"net/url"
	"strings"
	"time"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest/event"
)

// Config is the configuration of one Discord bot. DefaultConfig returns the defaults.
type Config struct {
	// Token is the bot's token without the prefix "Bot ".
	Token secret.Value `yaml:"token"`
	// APIURL is the address of the REST API, which reports the gateway's address.
	APIURL string `yaml:"api_url"`
	// Timeout bounds one call of the REST API.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig returns the defaults. Token has none.
func DefaultConfig() Config {
	return Config{APIURL: "https://discord.com/api/v9/", Timeout: 10 * time.Second}
}

// Accounts implements adapters.Config.
func (c Config) Accounts() []adapters.Account {
	return []adapters.Account{{Key: "token", Value: c.Token.Reveal()}}
}

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(!c.Token.IsZero(), "token", "is required: the bot's token, from the developer portal")
	check(!strings.HasPrefix(c.Token.Reveal(), "Bot "), "token", "must not begin with the word Bot")
	check(isAddress(c.APIURL), "api_url", "must be an http or https address without credentials")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	return faults
}

// isAddress reports whether s is an http or https address without credentials.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
