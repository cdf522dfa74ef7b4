package bluebubbles

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/bluebubbles/send"
	"parley/config/secret"
	"parley/ingest/event"
)

// The values of Config.FromMe: how the policy treats the account owner's own messages.
const (
	FromMePassive = "passive" // they are stored as context
	FromMeRun     = "run"     // they are judged like other people's messages
)

// The values of Config.SMS: how the policy treats text messages, whose senders may claim any address.
const (
	SMSContext = "context" // they are stored as context
	SMSRun     = "run"     // they are judged like other messages
	SMSIgnore  = "ignore"  // they are not stored
)

// Config is the configuration of one BlueBubbles server. DefaultConfig returns the defaults.
type Config struct {
	// URL is the server's address without /api/v1.
	URL string `yaml:"url"`
	// Insecure permits a URL of another network without HTTPS.
	Insecure bool `yaml:"insecure"`
	// Password is the server's password.
	Password secret.Value `yaml:"password"`
	// WebhookSecret is the last segment of the webhook's address.
	WebhookSecret secret.Value `yaml:"webhook_secret"`
	// Method is call.MethodAuto, call.MethodAppleScript or call.MethodPrivateAPI.
	Method string `yaml:"method"`
	// Poll is the time between two reads of the messages that webhooks missed.
	Poll time.Duration `yaml:"poll"`
	// Wake are the words that address us in a group.
	Wake []string `yaml:"wake"`
	// Channels have wake words of their own.
	Channels []payload.ChannelWake `yaml:"channels"`
	// ReadReceipts is send.ReceiptsAnswered or send.ReceiptsOff.
	ReadReceipts string `yaml:"read_receipts"`
	// Working is send.WorkingTyping, send.WorkingReaction or send.WorkingOff; without the private API, there is no
	// sign.
	Working string `yaml:"working"`
	// FromMe is FromMePassive or FromMeRun.
	FromMe string `yaml:"from_me"`
	// SMS is SMSContext, SMSRun or SMSIgnore, also for RCS. If it is empty, it is SMSContext where a list
	// limits the senders, else SMSRun.
	SMS string `yaml:"sms"`
	// PostRate is the number of messages a second that one chat takes; 0 is no bound.
	PostRate float64 `yaml:"post_rate"`
	// Timeout bounds one call to the server.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig returns the defaults. URL, Password and WebhookSecret have none.
func DefaultConfig() Config {
	return Config{
		Method: call.MethodAuto, Poll: time.Minute, ReadReceipts: send.ReceiptsAnswered, Working: send.WorkingTyping, FromMe: FromMePassive,
		PostRate: 1, Timeout: 30 * time.Second,
	}
}

// RunsFromMe reports whether the policy judges the account owner's own messages like other
// people's.
func (c Config) RunsFromMe() bool { return c.FromMe == FromMeRun }

// TextMessages returns how the policy treats text messages; empty for the default.
func (c Config) TextMessages() string { return c.SMS }

// Accounts implements adapters.Config.
func (c Config) Accounts() []adapters.Account { return []adapters.Account{{Key: "url", Value: c.URL}} }

// The number of characters below which a server's password is a fault, and below which it is warned of.
const minPassword, goodPassword = 4, 12

// Warnings implements adapters.Warner.
func (c Config) Warnings() event.FieldErrors {
	var found event.FieldErrors
	found.Check(!c.Password.IsWeak(goodPassword), "password", "can be guessed by everybody who reaches the BlueBubbles server: give the server one of at least 12 characters")
	return found
}

// Server returns the address of the platform's API, whose clock ours is compared with.
func (c Config) Server() string { return c.URL }

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := faults.Check
	address, _ := url.Parse(c.URL)
	isAddress := adapters.IsBase(c.URL)
	check(isAddress, "url", "must be the http or https address of the BlueBubbles server, without the password")
	check(!isAddress || c.Insecure || address.Scheme == "https" || adapters.IsNear(address.Hostname()), "url",
		"must be a loopback or private address, or use https: the password is part of each call's address (insecure: true permits it)")
	check(!c.Password.IsZero(), "password", "is required: the password of the BlueBubbles server")
	check(c.Password.IsZero() || !c.Password.IsWeak(minPassword), "password",
		"is too short or one letter, so anybody could guess it: give the BlueBubbles server a longer one, and write that here")
	outside := strings.Trim(c.WebhookSecret.Reveal(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
	check(!c.WebhookSecret.IsWeak(secret.MinLength) && outside == "",
		"webhook_secret", "must be a random word of at least 24 letters, digits, - and _: the last part of the webhook's address")
	check(c.Method == call.MethodAuto || c.Method == call.MethodAppleScript || c.Method == call.MethodPrivateAPI, "method", "must be auto, apple-script or private-api")
	check(c.Poll > 0, "poll", "must be more than 0s")
	check(c.ReadReceipts == send.ReceiptsAnswered || c.ReadReceipts == send.ReceiptsOff, "read_receipts", "must be answered or off")
	check(c.Working == send.WorkingTyping || c.Working == send.WorkingReaction || c.Working == send.WorkingOff, "working", "must be typing, reaction or off")
	check(c.FromMe == FromMePassive || c.FromMe == FromMeRun, "from_me", "must be passive or run")
	check(c.SMS == "" || c.SMS == SMSContext || c.SMS == SMSRun || c.SMS == SMSIgnore, "sms", "must be context, run or ignore")
	check(c.PostRate >= 0, "post_rate", "must be 0 or more messages a second")
	check(c.Timeout > 0, "timeout", "must be more than 0s")
	checkWords(check, "wake", c.Wake)
	named := map[string]bool{}
	for i, channel := range c.Channels {
		at, name := fmt.Sprintf("channels[%d]", i), payload.ChatName(channel.ID)
		check(name != "", at+".id", "is required: the chat's guid, or its last part")
		check(name == "" || !named[name], at+".id", "names the chat of an earlier entry")
		named[name] = true
		checkWords(check, at+".wake", channel.Wake)
	}
	return faults
}

func checkWords(check func(ok bool, field, message string), key string, words []string) {
	for i, word := range words {
		check(strings.TrimSpace(word) != "", fmt.Sprintf("%s[%d]", key, i), "must be a word")
	}
}
