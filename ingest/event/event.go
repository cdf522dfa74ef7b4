// Package event defines what comes in: envelope, event, the contract's message
// and metadata, thread and attachment.
//
// An envelope is a platform's raw payload. Its Keys are read before custody;
// Normalize turns it into an Event afterwards. Everything here is plain data
// with validation at the border, and depends on the standard library alone.
package event

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Platform names the kind of chat a workspace is an account on.
type Platform string

// The platforms. Web is whatever speaks the daemon's own HTTP API.
const (
	Slack       Platform = "slack"
	Discord     Platform = "discord"
	BlueBubbles Platform = "bluebubbles"
	Web         Platform = "web"
)

// Platforms lists every platform, in the order in which they are documented.
var Platforms = []Platform{Slack, Discord, BlueBubbles, Web}

// Namespace is what stands before the colon in a sender_id of this platform:
// the platform's own name, except for BlueBubbles, whose ids begin with "bb:".
func (p Platform) Namespace() string {
	if p == BlueBubbles {
		return "bb"
	}
	return string(p)
}

// ThreadKey is the canonical name of one conversation, such as
// "slack:acme:C06RY3YBSLE:1700000000.000100". One function per platform makes
// it; to everybody else it is opaque.
type ThreadKey string

// Kind says what sort of event an envelope holds.
type Kind string

// The kinds, as replay and the metrics print them.
const (
	KindMessage  Kind = "message"
	KindEdit     Kind = "edit"
	KindDelete   Kind = "delete"
	KindReaction Kind = "reaction"
	KindMember   Kind = "member"
	KindCommand  Kind = "command" // somebody called on us by a command or a shortcut
	KindAction   Kind = "action"  // somebody pressed a button of ours
	KindOther    Kind = "other"
)

// MakesMessage says whether an event of the kind is a message of its own: what
// somebody said, or did, in their own name.
func (k Kind) MakesMessage() bool {
	return k == KindMessage || k == KindCommand || k == KindAction
}

// Envelope is a raw payload as the platform sent it.
type Envelope struct {
	Workspace  string
	Platform   Platform
	Transport  string    // http, socket, gateway, webhook, api, replay, CatchUp or Reread
	ReceivedAt time.Time // zero where the arrival is not known: age is then not judged
	Body       []byte
}

// Disposition is what became of an envelope.
type Disposition string

// The dispositions, as replay prints them.
const (
	Stored    Disposition = "stored"
	Updated   Disposition = "updated"
	Duplicate Disposition = "duplicate"
	Ignored   Disposition = "ignored"
	Dead      Disposition = "dead"
)

// Reasons that are fixed because users' scripts compare them.
const (
	ReasonMention        = "mention"         // runs: the message names our bot
	ReasonDirect         = "direct"          // runs: a direct message, or a web thread
	ReasonReply          = "reply"           // runs: it answers a message of ours
	ReasonOpen           = "open"            // runs: require_mention is false here
	ReasonCommand        = "command"         // runs: a command or a shortcut of ours
	ReasonNoMention      = "no-mention"      // passive: nothing addresses us
	ReasonPassive        = "passive"         // passive: the sender asked for it
	ReasonTooOld         = "too-old"         // passive: older than max_age
	ReasonLoopGuard      = "loop-guard"      // passive: too many runs begun by bots
	ReasonFromMe         = "from-me"         // passive: the account owner's own words
	ReasonAction         = "action"          // passive: a button, kept for who asked by it
	ReasonOwnMessage     = "own-message"     // ignored: ours coming back
	ReasonBotMessage     = "bot-message"     // ignored: bots are not allowed here
	ReasonNotAddressed   = "not-addressed"   // ignored: passive_memory is false
	ReasonUserRefused    = "user-refused"    // ignored: not in allow_users
	ReasonChannelRefused = "channel-refused" // ignored: not in allow_channels
	ReasonNoChange       = "no-change"       // ignored: an update without effect
	ReasonDeleted        = "deleted"         // ignored: a change to a deleted message
	ReasonUnknownMessage = "unknown-message" // ignored: its target never came
	ReasonMember         = "member-event"    // ignored: someone joined or left
	ReasonOtherWorkspace = "other-workspace" // ignored: another team's or app's event
	ReasonSystemMessage  = "system-message"  // ignored: the platform's words, nobody's
	ReasonNotAnEvent     = "not-an-event"    // ignored: valid JSON that is no event of ours
	ReasonInteraction    = "interaction"     // ignored: forms, and what is about no message
	ReasonGroupEvent     = "group-event"     // ignored: a chat's name or picture changed
)

// Keys is what custody needs to know of a raw payload: what it is called, where
// it belongs, and whether it is settled already. Reading them is pure and cheap.
type Keys struct {
	Kind Kind
	// Dedupe is unique in the workspace: the same key is the same payload.
	Dedupe string
	// Twin is the dedupe key of another payload that may tell of the same
	// message (Slack's message and app_mention); empty where there is none. The
	// later of the two follows the earlier one's thread.
	Twin string
	// Thread is where the envelope belongs, if the payload says so.
	Thread ThreadKey
	// Opens says that the message is the first of its Thread, by the platform's own
	// rules: nothing can have been said there before it.
	Opens bool
	// Holder is the external id of the message that the payload was done to; empty
	// for none. Where that is a post of ours, the payload belongs to the thread in
	// which we said it, else to Thread.
	Holder string
	// Channel is the platform's channel of Thread.
	Channel Channel
	// Subject is the external id of the message that the payload makes (kinds
	// message, command, action) or is about (edit, delete, reaction). An envelope without a
	// Thread waits for its Subject's.
	Subject string
	// Settled is not nil for what needs no further work: nothing of ours, or
	// nothing that can be read.
	Settled *Fate
	// Needs names what must be known of ourselves first, such as "team"; the
	// envelope then waits pending until it is. Empty in the usual case.
	Needs string
}

// Fate is an envelope's end, and why.
type Fate struct {
	Disposition Disposition
	Reason      string // of Ignored
	Error       string // of Dead: for the operator, may name fields and bytes
}

// Ignore is the fate of a payload that is understood and not ours to keep.
func Ignore(reason string) *Fate { return &Fate{Disposition: Ignored, Reason: reason} }

// Refuse is the fate of a payload that can't be used.
func Refuse(err error) *Fate { return &Fate{Disposition: Dead, Error: err.Error()} }

// ChannelType tells how public a channel is; it decides what a message there asks for.
type ChannelType string

// The channel types. Unknown is a channel whose type no payload has told yet.
const (
	ChannelUnknown ChannelType = ""
	ChannelRoom    ChannelType = "room"   // a channel, thread channel or group chat of a room's kind
	ChannelDirect  ChannelType = "direct" // one person and the bot
	ChannelGroup   ChannelType = "group"  // a group direct message
)

// Channel is a platform's place of conversation.
type Channel struct {
	ID   string
	Type ChannelType
}

// Self is who we are on a platform. The zero value knows nothing.
type Self struct {
	TeamID string `json:"team_id,omitempty"`
	// EnterpriseID is the organisation that a Slack team belongs to.
	EnterpriseID string `json:"enterprise_id,omitempty"`

	UserID string `json:"user_id,omitempty"`
	BotID  string `json:"bot_id,omitempty"`
	AppID  string `json:"app_id,omitempty"`
	// Address is the account's own address on BlueBubbles, such as +15551234567.
	Address string `json:"address,omitempty"`
}

// Event is what an envelope means.
type Event struct {
	Kind Kind
	// Ignored, if not empty, is the reason why there is nothing to record.
	Ignored string
	// Message is the message (kinds message, command, action), or how it stands after the change
	// (kind edit; nil where the payload does not carry it whole).
	Message *Message
	// Targets are the external ids that an edit, delete or reaction is about.
	Targets []string
	// Reaction is set for kind reaction. Intake gives it a Message, the sender's
	// doing in words, where policy lets it through.
	Reaction *Reaction
	// Viewing is set for what tells no more than where somebody's attention is
	// (kind other).
	Viewing *Viewing
}

// Viewing is what the person in a thread is looking at besides.
type Viewing struct {
	SenderID string
	At       time.Time // the newest is what holds
	// Extra goes with the metadata of each later message of the thread; empty
	// where they look at nothing in particular.
	Extra []Extra
	// Opened says that the person has opened the thread, and nobody said anything.
	Opened bool
}

// Addressed says how a message turns to us, as far as its payload tells.
type Addressed string

// How a message may address us. A reply to ours that only the store can tell
// is found there by Message.ReplyTo.
const (
	AddressedNone    Addressed = ""
	AddressedMention Addressed = "mention"
	AddressedDirect  Addressed = "direct"
	AddressedReply   Addressed = "reply"
	AddressedCommand Addressed = "command"
	// AddressedAction answers a question of ours: it is kept, and asks for no run.
	AddressedAction Addressed = "action"
)

// Message is what one person or bot said.
type Message struct {
	// ExternalID is unique in the workspace: Slack "<channel>/<ts>" or
	// "<channel>/command-<id>", Discord's id, BlueBubbles' guid, the client's id
	// or a UUIDv7 on the web.
	ExternalID string
	// ClientMessageID is the web client's idempotency key; empty elsewhere.
	ClientMessageID string
	Thread          ThreadKey
	Channel         Channel
	// Content is what was typed, decoded and otherwise untouched.
	Content     string
	Metadata    Metadata
	Attachments []Attachment
	// SentAt is the platform's time; zero where it tells none.
	SentAt time.Time
	// Revision tells one state of the message from another (Slack's edited.ts,
	// Discord's edited_timestamp, a hash for BlueBubbles); empty for a message
	// that was never edited, on platforms that say so.
	Revision string
	// Addressed is how the payload alone says that it turns to us.
	Addressed Addressed
	// ReplyTo is the external id that the message answers; empty for none. If
	// that message is ours, ours is who it addresses.
	ReplyTo string
	// Own says that the payload itself shows that we wrote it.
	Own bool
	// Passive says that its sender wants it stored only, whatever it says.
	Passive bool
	// OwnKey is the idempotency key of a delivery of ours that this payload
	// carries (a BlueBubbles tempGuid, Slack metadata); empty for none.
	OwnKey string
	// Quoted is the message that this one answers with a quotation, to be shown
	// as context where the window does not hold it.
	Quoted *Quote
	// Forwarded are messages passed on inside this one: context, not content.
	Forwarded []Quote
	// OpenedOn is the external id of the message of another thread on which this
	// message's thread was opened; empty for none.
	OpenedOn string
}

// Quote is somebody's words inside another message.
type Quote struct {
	ExternalID string `json:"id,omitempty"`
	// Name and MentionToken attribute the line; both empty for a forward whose
	// author the platform does not tell.
	Name         string `json:"name,omitempty"`
	MentionToken string `json:"mention_token,omitempty"`
	SenderID     string `json:"sender_id,omitempty"`
	Content      string `json:"content"`
	Files        int    `json:"files,omitempty"`
	// Own is true for our own words.
	Own bool `json:"own,omitempty"`
}

// Reaction is an emoji put on a message or taken from it.
type Reaction struct {
	Emoji    string `json:"emoji"` // the platform's name for it, or the emoji itself
	SenderID string `json:"sender_id"`
	Part     int    `json:"part,omitempty"` // BlueBubbles: which part of the message
	Removed  bool   `json:"removed,omitempty"`
	// All says that every reaction goes: of this emoji, or of any where Emoji is empty.
	All bool `json:"all,omitempty"`
	// MentionToken and SenderType are the sender's, where the payload tells them.
	// They are not kept with the reaction.
	MentionToken string     `json:"-"`
	SenderType   SenderType `json:"-"`
}

// Attachment is a file that came with a message. It holds no URL: a platform's
// links expire and may carry credentials, so files are fetched by id.
type Attachment struct {
	ID       string `json:"id"` // the platform's id, by which it can be fetched
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"` // bytes, 0 where unknown
	// Gone says that the platform does not have it any more, or does not show it.
	Gone bool `json:"-"`
}

// Text makes a platform's string safe to keep: invalid UTF-8 and U+0000 become
// U+FFFD. Nothing else changes; the envelope keeps the original bytes.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
