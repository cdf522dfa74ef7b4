package adapters

import (
	"context"
	"time"

	"parley/ingest/card"
	"parley/ingest/event"
)

// Sender is an adapter that can post.
type Sender interface {
	// Format splits and converts an agent's CommonMark into the texts of the posts that
	// carry it, each within the platform's limit. Mentions are the tokens that the agent
	// was given and may use, such as "<@U06STGBF4Q0>"; any other token becomes plain
	// text. Pure.
	Format(text string, mentions []string) []string
	// Address returns the destination of a reply in a thread, from the thread's key and
	// the external id of the answered message, which is empty if there is none. All
	// addresses of a thread have the same Channel. Pure.
	Address(thread event.ThreadKey, answered string) (Address, error)
	// Send posts once and returns the platform's id of the post. It must not retry, and
	// must not write the request after ctx has ended. Its errors are *SendError.
	Send(ctx context.Context, post Post) (id string, err error)
}

// Halver is a Sender of a platform that may refuse a text of Format as too long, because it counts in a way of its own.
type Halver interface {
	// Halve splits the text of a post, as Format returned it, into the texts of shorter posts. Pure.
	Halve(text string) []string
}

// Post is one message for a platform.
type Post struct {
	// Key identifies this post and is never used again: at most 25 of [a-z0-9].
	Key string
	// To is the destination in the platform's own terms, as Address returned it.
	To   Address
	Text string // as Format or FormatPartial returned it
	// Asker is the platform's id of the user whom the post answers. It is empty if
	// unknown.
	Asker string
	// Growing says that the post is of a live preview, so an Edit follows it.
	Growing bool
	// NotBefore is the earliest time at which the post can have taken effect.
	NotBefore time.Time
	// File is posted with the text, which may then be empty. Nil means no file.
	File *File
	// Buttons are shown below the text; only of a ButtonSender.
	Buttons []Button
	// Card is shown in the platform's own form, with Text as FormatCard returned it; only of a CardSender. Nil means no card.
	Card *card.View
}

// Address is the destination of a reply. Only the adapter that made it reads Place.
type Address struct {
	// Channel is the key of the pace: the posts of one channel share it. It is not empty.
	Channel string
	// Place is the destination within the channel in the adapter's own form, such as a
	// Slack thread_ts or the message to reply to. It may be empty.
	Place string
}

// Dispatcher is a Sender whose posts tell the program about the message that they answer.
type Dispatcher interface {
	// Dispatch returns the address of a post, as Address returned it, for an answer to a message with this metadata. Pure.
	Dispatch(to Address, answered event.Metadata) Address
}

// Limits are a platform's bounds on our posts.
type Limits struct {
	// PostRate is the number of posts a second that one channel takes. If it is 0, only
	// the platform's refusals set the pace.
	PostRate float64
	// PostText is the greatest length of a post in characters, if a part of a reply may be that
	// long. Such a part has no room for the mark of a post that is sent again. 0 means that every
	// part leaves room for it.
	PostText int
	// Once says that the platform does a post with a key once, so that its call may be repeated after any failure.
	Once bool
	// Timeout bounds one call.
	Timeout time.Duration
	// Preview is the form of the live preview. PreviewEvery is the shortest time between
	// two updates of it.
	Preview      Preview
	PreviewEvery time.Duration
	// FileOver is the length in characters above which a reply is posted as a file. 0
	// means no bound.
	FileOver int
	// Sign reports whether people are shown that the agent is at work. SignEvery is the time
	// after which the sign is shown again, because it ends by itself; 0 means never.
	Sign      bool
	SignEvery time.Duration
	// SignText is the greatest length of a sign's text in characters. 0 means that the sign
	// has no text.
	SignText int
}

// Preview is the form of a live preview.
type Preview string

// The forms of a live preview.
const (
	PreviewOff    Preview = "off"    // no preview
	PreviewEdit   Preview = "edit"   // a post that is edited
	PreviewStream Preview = "stream" // a stream if the platform has streams, else an edited post
)

// Editor is a Sender that can change and remove its posts. Like Send, both methods never
// retry, write nothing after ctx has ended, and fail with *SendError. Both may be called
// again after any failure.
type Editor interface {
	// Edit replaces the text and the buttons of the post with this id. If the post is a
	// stream, Edit ends the stream first. Permanent means that the platform refuses the
	// change.
	Edit(ctx context.Context, id string, post Post) error
	// Remove removes the post with this id. A missing post is no error.
	Remove(ctx context.Context, id string, post Post) error
}

// PartialFormatter is an Editor or a Streamer that can format an incomplete text.
type PartialFormatter interface {
	// FormatPartial formats the beginning of a text, as much as one post holds. If the
	// post is full, rest is the text of the next post. Otherwise rest is text, and the
	// same call with more text returns a shown that begins with this one. done says that the
	// text is complete: then the result is the same as Format's. Otherwise FormatPartial holds
	// back an ending whose meaning more text could change, such as the beginning of a token.
	// Pure.
	FormatPartial(text string, mentions []string, done bool) (shown, rest string, full bool)
}

// FormatWhole is the Format of a PartialFormatter.
func FormatWhole(f PartialFormatter, text string, mentions []string) (posts []string) {
	for full := true; full; {
		var shown string
		if shown, text, full = f.FormatPartial(text, mentions, true); shown != "" {
			posts = append(posts, shown)
		}
	}
	return posts
}

// Streamer is an adapter that can show a text in increments. None of its calls may be
// repeated after an unclear failure. Their errors are *SendError.
type Streamer interface {
	// Streams reports whether post may be a stream, as far as the adapter knows without a
	// call.
	Streams(post Post) bool
	// Begin starts a stream with post.Text, and returns the id of the post. Permanent
	// means that the destination has no streams; the caller uses Send and Edit instead.
	Begin(ctx context.Context, post Post) (id string, err error)
	// Append adds text to the stream with this id. Permanent means that the platform has ended
	// the stream; the caller uses Edit instead.
	Append(ctx context.Context, id string, post Post, text string) error
	// End adds a last text, which may be empty, and ends the stream.
	End(ctx context.Context, id string, post Post, text string) error
}

// Ephemeral is an adapter that can show a text to one user alone. The platform keeps no
// record of it.
type Ephemeral interface {
	// EphemeralAddress returns the destination of such a text. to is the destination of an ordinary
	// post, and answered is the external id of the answered message; see Sender. Pure.
	EphemeralAddress(to Address, answered string) Address
	// PostEphemeral shows post.Text to post.Asker alone. Its errors are *SendError.
	PostEphemeral(ctx context.Context, post Post) error
}

// ButtonSender is a Sender whose Send shows buttons. A press of one is an event of kind action
// whose message has the id as Pressed.
type ButtonSender interface {
	// ButtonLimits returns the bounds of a post with buttons. Pure.
	ButtonLimits() ButtonLimits
}

// Button is a button of a post.
type Button struct {
	ID    string // at most 100 of [a-z0-9-]; it begins with ButtonPrefix
	Label string
}

// ButtonPrefix begins the ids of our buttons.
const ButtonPrefix = "parley-"

// LinkPrefix begins the ids of our buttons that open an address. A press of one is no event.
const LinkPrefix = ButtonPrefix + "link-"

// ButtonLimits are the bounds of a post with buttons.
type ButtonLimits struct {
	Buttons     int // number
	Label, Text int // characters of a label, and of the text as Format returned it
}

// CardSender is a Sender whose Send shows cards. A press of a button of a card is an event as that of a Button.
type CardSender interface {
	// FormatCard returns the posts that show a card, each within the platform's limits. Its texts are a stranger's: none is
	// markup, mentions anybody or hides an address. Pure.
	FormatCard(v card.View) []CardPost
}

// CardPost is a post with a part of a card.
type CardPost struct {
	Text string // for notifications, screen readers and a platform that refuses the card; not empty
	Card card.View
}

// WorkingIndicator is an adapter that can show people that the agent is at work. Both
// calls may be repeated. Their errors are *SendError.
type WorkingIndicator interface {
	// ShowWorking shows that the agent is at work.
	ShowWorking(ctx context.Context, sign Sign) error
	// ClearWorking removes that sign. It is no error if none is shown.
	ClearWorking(ctx context.Context, sign Sign) error
}

// Sign identifies the turn for which the platform shows that the agent is at work.
type Sign struct {
	To Address
	// Message is the external id of the message that the turn answers.
	Message string
	// Text describes the work of the agent, in one line of plain text; empty for the platform's
	// own words. A sign without a text ignores it.
	Text string
}

// SelfSigner is a WorkingIndicator of a platform that shows a sign of work below some messages by
// itself, such as "is thinking" below a command. ClearWorking is called when the run ends that answers
// such a message, whether the adapter has shown a sign or not, and for a command that stops such messages
// before their run. It removes the signs below the earlier messages of the destination too.
type SelfSigner interface {
	// IsSigned reports whether the platform shows such a sign below a message, by its external
	// id. Pure.
	IsSigned(message string) bool
}
