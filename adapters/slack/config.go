package slack

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/slack/live"
	"parley/adapters/slack/send"
	"parley/config/secret"
	"parley/ingest/event"
)

// The modes in which Slack delivers events.
const (
	ModeSocket = "socket" // Socket Mode: Parley connects to Slack and needs no public address
	ModeHTTP   = "http"   // the Events API: Slack calls the hook
)

// Config configures one Slack app in one team. Start from DefaultConfig.
type Config struct {
	// Mode is ModeSocket or ModeHTTP.
	Mode string `yaml:"mode"`
	// AppToken (xapp-…) opens Socket Mode. BotToken (xoxb-…) authorizes the bot's calls.
	AppToken secret.Value `yaml:"app_token"`
	BotToken secret.Value `yaml:"bot_token"`
	// Sockets is the number of Socket Mode connections that each node keeps open, from 1
	// to 8. While a socket is being replaced, one more connection is open for some
	// seconds. Slack allows an app ten connections, on all its nodes together; the
	// operator keeps the sum of several nodes below that limit.
	Sockets int `yaml:"sockets"`
	// SigningSecret verifies that a call of the hook came from Slack.
	SigningSecret secret.Value `yaml:"signing_secret"`
	// APIURL is the base address of the Web API; a method's name is appended.
	APIURL string `yaml:"api_url"`
	// PostRate is the number of posts per second and channel. 0 leaves the pace to Slack's
	// 429 answers.
	PostRate float64 `yaml:"post_rate"`
	// Timeout bounds one call of the Web API.
	Timeout time.Duration `yaml:"timeout"`
	// Preview is the kind of live preview: stream, edit or off.
	Preview adapters.Preview `yaml:"preview"`
	// PreviewEvery is the minimum time between two updates of the live preview. Slack
	// allows 50 edits per minute.
	// https://docs.slack.dev/apis/web-api/rate-limits
	PreviewEvery time.Duration `yaml:"preview_every"`
	// Working is the working sign: WorkingStatus, WorkingReaction or WorkingOff.
	Working string `yaml:"working"`
	// WorkingText is the status text, which Slack shows after the app's name. WorkingEmoji
	// is the reaction's name, without colons.
	WorkingText  string `yaml:"working_text"`
	WorkingEmoji string `yaml:"working_emoji"`
	// FileOver is the maximum length of a reply that is posted as messages, in characters.
	// A longer reply is uploaded as a file. 0 means no maximum.
	FileOver int `yaml:"file_over"`
	// SuggestedPrompts are shown to the user who opens an assistant thread; at most four.
	SuggestedPrompts []send.Prompt `yaml:"suggested_prompts"`
}

// DefaultConfig returns the default settings. The default pace is Slack's limit.
// https://docs.slack.dev/apis/web-api/rate-limits
func DefaultConfig() Config {
	return Config{
		Mode: ModeSocket, Sockets: 1, APIURL: "https://slack.com/api/", PostRate: 1, Timeout: 10 * time.Second,
		Preview: adapters.PreviewStream, PreviewEvery: 1200 * time.Millisecond, Working: send.WorkingStatus, WorkingText: "is thinking…", WorkingEmoji: "eyes",
		FileOver: 100_000,
	}
}

// emojiName matches an emoji name in Slack's form, with or without a skin tone.
// https://docs.slack.dev/reference/methods/reactions.add
var emojiName = regexp.MustCompile(`^[\pL\pN_+'-]+(::skin-tone-[2-6])?$`)

// Accounts implements adapters.Config.
func (c Config) Accounts() []adapters.Account {
	return []adapters.Account{{Key: "bot_token", Value: c.BotToken.Reveal()}, {
		Key: "app_token", Value: c.AppToken.Reveal(),
		Words: "Slack would send each event to only one of the two workspaces; use mode http for an app in several teams",
	}}
}

// minSecret is the length of the shortest signing secret. Slack's have 32 characters.
const minSecret = 12

// Warnings implements adapters.Warner.
func (c Config) Warnings() event.FieldErrors {
	var found event.FieldErrors
	const rotates = "is a rotating token, which ends after 12 hours, and Parley does not renew it: use an app without token rotation"
	found.Check(!strings.HasPrefix(c.BotToken.Reveal(), "xoxe"), "bot_token", rotates)
	found.Check(!strings.HasPrefix(c.AppToken.Reveal(), "xoxe"), "app_token", rotates)
	return found
}

// Server returns the address of the platform's API, whose clock ours is compared with.
func (c Config) Server() string { return c.APIURL }

// Validate returns every fault, by key. No fault contains a configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(c.Mode == ModeSocket || c.Mode == ModeHTTP, "mode", "must be socket or http")
	check(c.Sockets >= 1 && c.Sockets <= live.MaxSockets, "sockets", "must be from 1 to 8: Slack allows an app ten connections, and two are left for replacements")
	check(!c.BotToken.IsZero(), "bot_token", "is required: the bot's token, which begins with xoxb-")
	check(!strings.HasPrefix(c.BotToken.Reveal(), "xapp-"), "bot_token", "holds an app token: this is the place of the one that begins with xoxb-")
	check(!strings.HasPrefix(c.BotToken.Reveal(), "xoxp-"), "bot_token", "holds a person's token, so the bot would post as that person: this is the place of the one that begins with xoxb-")
	check(c.Mode != ModeSocket || !c.AppToken.IsZero(), "app_token", "is required with mode socket: the app-level token, which begins with xapp-")
	check(!strings.HasPrefix(c.AppToken.Reveal(), "xoxb-"), "app_token", "holds a bot token: this is the place of the one that begins with xapp-")
	check(c.Mode != ModeHTTP || !c.SigningSecret.IsZero(), "signing_secret", "is required with mode http: the app's signing secret, from its Basic Information")
	check(c.SigningSecret.IsZero() || !c.SigningSecret.IsWeak(minSecret), "signing_secret", "is too short or one letter, so anybody could guess it: copy the signing secret of the app's Basic Information")
	check(adapters.IsBase(c.APIURL), "api_url", "must be an http or https address without credentials")
	check(c.PostRate >= 0, "post_rate", "must be 0 or more posts a second")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	check(c.Preview == adapters.PreviewStream || c.Preview == adapters.PreviewEdit || c.Preview == adapters.PreviewOff,
		"preview", "must be stream, edit or off")
	check(c.PreviewEvery > 0, "preview_every", "must be more than 0s")
	check(c.Working == send.WorkingStatus || c.Working == send.WorkingReaction || c.Working == send.WorkingOff, "working", "must be status, reaction or off")
	check(c.Working != send.WorkingStatus || c.WorkingText != "", "working_text", "is required with working status, for example: is thinking…")
	check(c.Working != send.WorkingReaction || emojiName.MatchString(c.WorkingEmoji), "working_emoji", "must be the name of an emoji, without colons")
	check(c.FileOver >= 0, "file_over", "must be 0 or more characters")
	check(len(c.SuggestedPrompts) <= send.MaxPrompts, "suggested_prompts", "must be at most 4, which is as many as Slack shows")
	for i, p := range c.SuggestedPrompts {
		check(p.Title != "" && p.Message != "", fmt.Sprintf("suggested_prompts[%d]", i), "needs a title, which Slack shows, and a message, which Slack sends")
	}
	return faults
}
