package discord

import (
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/discord/send"
	"parley/config/secret"
	"parley/ingest/event"
)

// Config configures one Discord bot, in all servers that it was invited to. Start from
// DefaultConfig.
type Config struct {
	// Token is the bot's token without the prefix "Bot ".
	Token secret.Value `yaml:"token"`
	// APIURL is the address of the REST API, which reports the gateway's address.
	APIURL string `yaml:"api_url"`
	// Timeout bounds one call of the REST API.
	Timeout time.Duration `yaml:"timeout"`
	// Shards is the number of shards. Each is a connection of its own, on any node. 0 takes
	// the number that Discord recommends, and connects all shards from one node.
	Shards int `yaml:"shards"`
	// PostRate is the number of posts per second and channel. 0 leaves the pace to the
	// headers of Discord's answers.
	PostRate float64 `yaml:"post_rate"`
	// Preview is the live preview: edit or off. PreviewEvery is the least time between two
	// edits of it.
	Preview      adapters.Preview `yaml:"preview"`
	PreviewEvery time.Duration    `yaml:"preview_every"`
	// Working is the sign that the agent works: typing, reaction or off.
	Working string `yaml:"working"`
	// Reply makes each answer refer to its question.
	Reply bool `yaml:"reply"`
	// AutoThread opens a thread on each question in a channel.
	AutoThread bool `yaml:"auto_thread"`
	// Commands registers the slash command and the message command.
	Commands bool `yaml:"commands"`
	// FileOver is the length in characters above which a reply is uploaded as a file. 0
	// means never.
	FileOver int `yaml:"file_over"`
}

// DefaultConfig returns the defaults. Token has none.
func DefaultConfig() Config {
	return Config{
		APIURL: "https://discord.com/api/v10", Timeout: 10 * time.Second, PostRate: 1,
		Preview: adapters.PreviewEdit, PreviewEvery: 1500 * time.Millisecond, Working: send.WorkingTyping,
		Reply: true, Commands: true, FileOver: 20_000,
	}
}

// Accounts implements adapters.Config.
func (c Config) Accounts() []adapters.Account {
	return []adapters.Account{{Key: "token", Value: c.Token.Reveal()}}
}

// maxShards bounds the configured shards. It suffices for 250,000 servers.
const maxShards = 100

// Server returns the address of the platform's API, whose clock ours is compared with.
func (c Config) Server() string { return c.APIURL }

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(!c.Token.IsZero(), "token", "is required: the bot's token, from the developer portal")
	check(!strings.HasPrefix(c.Token.Reveal(), "Bot "), "token", "must not begin with the word Bot")
	check(adapters.IsBase(c.APIURL), "api_url", "must be an http or https address without credentials")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	check(c.Shards >= 0 && c.Shards <= maxShards, "shards", "must be from 0, for the number that Discord recommends, to 100")
	check(c.PostRate >= 0, "post_rate", "must be 0 or more posts a second")
	check(c.Preview == adapters.PreviewEdit || c.Preview == adapters.PreviewOff, "preview", "must be edit or off")
	check(c.PreviewEvery > 0, "preview_every", "must be more than 0s")
	check(c.Working == send.WorkingTyping || c.Working == send.WorkingReaction || c.Working == send.WorkingOff, "working", "must be typing, reaction or off")
	check(c.FileOver >= 0, "file_over", "must be 0 or more characters")
	return faults
}
