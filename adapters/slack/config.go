package slack

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"parley/adapters"
	"parley/config/secret"
	"parley/ingest/event"
)

// The modes in which Slack's events reach us.
const (
	ModeSocket = "socket" // Socket Mode: we connect, nothing of ours need be reachable
	ModeHTTP   = "http"   // the Events API: Slack calls our hook
)

// Config is one Slack app in one team. Start from DefaultConfig.
type Config struct {
	// Mode is ModeSocket or ModeHTTP.
	Mode string `yaml:"mode"`
	// AppToken (xapp-…) opens Socket Mode; BotToken (xoxb-…) speaks for the bot.
	AppToken secret.Value `yaml:"app_token"`
	BotToken secret.Value `yaml:"bot_token"`
	// Sockets is how many connections of Socket Mode are kept open. Slack allows ten
	// for one app, on all its machines together, and one more is open for a moment
	// whenever another one is replaced.
	Sockets int `yaml:"sockets"`
	// SigningSecret proves that a call of our hook came from Slack.
	SigningSecret secret.Value `yaml:"signing_secret"`
	// APIURL is where the Web API stands; a method's name follows it.
	APIURL string `yaml:"api_url"`
	// PostRate is how many posts a second one channel takes; 0 leaves the pace
	// to Slack's 429 answers.
	PostRate float64 `yaml:"post_rate"`
	// Timeout bounds one call of the Web API.
	Timeout time.Duration `yaml:"timeout"`
	// Preview is how a growing answer is shown: stream, edit or off.
	Preview adapters.Preview `yaml:"preview"`
	// PreviewEvery is how often it is shown anew at the most. Slack takes 50 edits a
	// minute: https://docs.slack.dev/apis/web-api/rate-limits.
	PreviewEvery time.Duration `yaml:"preview_every"`
	// Working is the sign of work: WorkingStatus, WorkingReaction or WorkingOff.
	Working string `yaml:"working"`
	// WorkingText is the status, which follows the app's name; WorkingEmoji the
	// reaction, without colons.
	WorkingText  string `yaml:"working_text"`
	WorkingEmoji string `yaml:"working_emoji"`
	// FileOver is how long a reply may be, in characters, and still be posted as
	// messages; a longer one is uploaded. 0: as long as it likes.
	FileOver int `yaml:"file_over"`
	// SuggestedPrompts are what an assistant thread suggests to who opens it; at
	// most four.
	SuggestedPrompts []Prompt `yaml:"suggested_prompts"`
}

// DefaultConfig is what holds where the configuration says nothing. Its pace is
// Slack's own: https://docs.slack.dev/apis/web-api/rate-limits.
func DefaultConfig() Config {
	return Config{
		Mode: ModeSocket, Sockets: 1, APIURL: "https://slack.com/api/", PostRate: 1, Timeout: 10 * time.Second,
		Preview: adapters.PreviewStream, PreviewEvery: 1200 * time.Millisecond, Working: WorkingStatus, WorkingText: "is thinking…", WorkingEmoji: "eyes",
		FileOver: 100_000,
	}
}

// maxEmoji bounds the name of an emoji, in bytes.
const maxEmoji = 400

// isEmoji tells how Slack names an emoji, with a skin tone or without.
// https://docs.slack.dev/reference/methods/reactions.add
func isEmoji(name string) bool {
	name, tone, toned := strings.Cut(name, "::skin-tone-")
	if toned && (len(tone) != 1 || tone < "2" || tone > "6") || name == "" || len(name) > maxEmoji {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_+'-", r)
	}) < 0
}

// Validate returns every fault, by key, without any value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	check(c.Mode == ModeSocket || c.Mode == ModeHTTP, "mode", "must be socket or http")
	check(c.Sockets >= 1 && c.Sockets <= maxSockets, "sockets", "must be from 1 to 10, which is as many as Slack allows an app")
	check(!c.BotToken.IsZero(), "bot_token", "is required: the bot's token, which begins with xoxb-")
	check(!strings.HasPrefix(c.BotToken.Reveal(), "xapp-"), "bot_token", "holds an app token: this is the place of the one that begins with xoxb-")
	check(c.Mode != ModeSocket || !c.AppToken.IsZero(), "app_token", "is required with mode socket: the app-level token, which begins with xapp-")
	check(!strings.HasPrefix(c.AppToken.Reveal(), "xoxb-"), "app_token", "holds a bot token: this is the place of the one that begins with xapp-")
	check(c.Mode != ModeHTTP || !c.SigningSecret.IsZero(), "signing_secret", "is required with mode http: the app's signing secret, from its Basic Information")
	check(isAddress(c.APIURL), "api_url", "must be an http or https address without credentials")
	check(c.PostRate >= 0, "post_rate", "must be 0 or more posts a second")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	check(c.Preview == adapters.PreviewStream || c.Preview == adapters.PreviewEdit || c.Preview == adapters.PreviewOff,
		"preview", "must be stream, edit or off")
	check(c.PreviewEvery > 0, "preview_every", "must be more than 0s")
	check(c.Working == WorkingStatus || c.Working == WorkingReaction || c.Working == WorkingOff, "working", "must be status, reaction or off")
	check(c.Working != WorkingStatus || c.WorkingText != "", "working_text", "is required with working status: such as is thinking…")
	check(c.Working != WorkingReaction || isEmoji(c.WorkingEmoji), "working_emoji", "must be the name of an emoji, without colons")
	check(c.FileOver >= 0, "file_over", "must be 0 or more characters")
	check(len(c.SuggestedPrompts) <= maxPrompts, "suggested_prompts", "must be at most 4, which is as many as Slack shows")
	for i, p := range c.SuggestedPrompts {
		check(p.Title != "" && p.Message != "", fmt.Sprintf("suggested_prompts[%d]", i), "needs a title, which is shown, and a message, which is said")
	}
	return faults
}

// isAddress tells an http or https address that holds no credentials.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
