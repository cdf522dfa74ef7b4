package adapters

import (
	"cmp"
	"strings"
	"time"

	"parley/ingest/event"
)

// Platform describes a chat platform. A new platform is a package with a function that
// returns its description, and a line in config.Platforms.
type Platform struct {
	Name event.Platform
	// Senders is the namespace of sender ids, before their colon; empty for Name.
	Senders string
	// Title is the name for people, such as "Slack".
	Title string
	// Config returns a pointer to the platform's settings, with their defaults.
	Config func() Config
	// New returns the adapter of a workspace. The config passed Validate.
	New func(workspace string, config Config) Adapter
	// Normalizer reads recordings. Recorded completes a recorded body, and Self finds our
	// own identity in a payload; each may be nil.
	Normalizer Normalizer
	Recorded   func(body []byte) []byte
	Self       func(event.Envelope) (event.Self, bool)
	// ID returns the id that events have for a channel or a user whose id is configured. It is
	// nil if the two never differ.
	ID func(configured string) string
	// IsUser reports whether a string has the form of the id of a user or a bot. It is nil if
	// that does not tell ids from names.
	IsUser func(id string) bool
	// IsChannel reports whether a string has the form of the id of a channel. It is nil if that
	// does not tell ids from names.
	IsChannel func(id string) bool
	// IsServer reports whether a string has the form of the id of a server, which bounds the senders
	// of a channel. It is nil for a platform without servers.
	IsServer func(id string) bool
	// IsRole and IsGroup report whether a string has the form of the id of a role of a server, or of a user group. They are nil for a
	// platform without them.
	IsRole, IsGroup func(id string) bool
	// IsApp reports whether a string has the form of the id of an app that posts with people's tokens; see event.Through. It is nil for
	// a platform without such apps.
	IsApp func(id string) bool
	// Asks says that the bot can ask a person by buttons in a direct message.
	Asks bool
	// IsMention reports whether a token has the form of the platform's mentions. It is nil
	// for a platform without mentions.
	IsMention func(token string) bool
	// MessageOf reads a link to a message, or an external id of one. It is nil for a platform without
	// links, whose ids have no form.
	MessageOf func(ref string) (MessageRef, bool)
	// Conversation returns the key of the thread of posts in a channel that belong to no other thread. It is
	// nil for a platform without channels, where only a known thread takes posts.
	Conversation func(workspace, channel string) event.ThreadKey
	// NewThread returns the key of a new thread in a channel, by an id of ours; the key is another one for each id. It is nil
	// if the channel has one thread, that of Conversation.
	NewThread func(workspace, channel, id string) event.ThreadKey
	// ThreadUnder returns the key of the thread of the replies to a post at the top of a channel, by the post's
	// external id. It is nil if the replies belong to the thread of the post.
	ThreadUnder func(workspace, post string) event.ThreadKey
	// Beside returns the destination of an answer in the channel itself, from the destination in the thread and the external id of the
	// answered message. It changes the destination only if that message is the root of the thread. It is nil for a platform without
	// threads under messages.
	Beside func(to Address, answered string) Address
	// Draft returns the payload in which the platform would send a message. It is nil if the platform has no such payload.
	Draft func(Draft) []byte
	// Setup has the questions of `parley init` for a workspace of the platform. It is nil if init does not offer the platform.
	Setup *Setup
	// API says that the messages come from callers of our own API: a token admits its
	// holder, also a bot, and the metadata is stored as the holder gave it.
	API bool
}

// MessageRef names a message, as a link of its platform does.
type MessageRef struct {
	ID      string    // the external id
	Channel string    // empty if the link does not tell it
	SentAt  time.Time // by the platform's clock
}

// Namespace returns the namespace of sender ids.
func (p Platform) Namespace() string { return cmp.Or(p.Senders, string(p.Name)) }

// KnownID returns the id that events have for a configured channel or user.
func (p Platform) KnownID(configured string) string {
	if p.ID == nil {
		return configured
	}
	return p.ID(configured)
}

// KnownPerson returns the entry of a list of people that a configured one means: without the platform's own namespace, as
// events have the id. An entry of another namespace, such as operator:ID, stays.
func (p Platform) KnownPerson(configured string) string {
	id, own := strings.CutPrefix(configured, p.Namespace()+":")
	if !own && strings.Contains(id, ":") {
		return id
	}
	return p.KnownID(id)
}

// Config is the settings of a platform: a pointer to a struct with yaml tags.
type Config interface {
	// Validate returns every fault by key. The faults contain no configured value.
	Validate() event.FieldErrors
	// Accounts returns the values that only one workspace may have. Two workspaces on one
	// account would answer each message twice, or share the events between them.
	Accounts() []Account
}

// Warner is a Config that knows what is allowed, and probably a mistake.
type Warner interface {
	// Warnings returns every warning by key. They contain no configured value.
	Warnings() event.FieldErrors
}

// Account is a setting that identifies an account on the platform.
type Account struct {
	Key   string
	Value string // empty: not set
	// Words follow "is also in FILE: "; empty for "use an account in one workspace only".
	Words string
}
