// Package adapters says what a chat platform must offer, and keeps the
// configured ones running.
//
// An adapter is one package with its own Config. What every platform can do is
// Normalizer; what only some can is a further interface, found by assertion:
// Runner, Exclusive, Hook, Fetcher; Sender, Finder, Editor, Grower, Streamer,
// StreamFinder, Ephemeral; Signer, Greeter; Backfiller, ContextReader; Checker.
package adapters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"parley/ingest/event"
)

// Receipt tells an adapter what custody made of an envelope.
type Receipt struct {
	ID int64
	// Duplicate says that the same payload is in custody already.
	Duplicate bool
	// Waits says that the message which it is about is not known yet.
	Waits bool
}

// ErrBusy means that the store can't take custody now: there must be no
// acknowledgement, so that the platform sends the envelope again.
var ErrBusy = errors.New("the store can't take the message now")

// Inbox takes custody of envelopes. Adapters call it, concurrently.
type Inbox interface {
	// Accept returns once the envelope is durable; only then may the platform
	// hear "received". It waits at most two seconds and fails with ErrBusy.
	Accept(ctx context.Context, envelope event.Envelope) (Receipt, error)
}

// Facts are what the daemon remembers of a workspace between envelopes.
type Facts interface {
	// Self is who we are there; zero fields are not known.
	Self() event.Self
	// ChannelType is what payloads have told of a channel.
	ChannelType(channel string) event.ChannelType
}

// User is how a platform shows one of its users.
type User struct {
	DisplayName string
	IsBot       bool
}

// Directory answers the names that a payload leaves out.
type Directory interface {
	Facts
	// User returns a user's name; false where nobody knows it, and the id then
	// stands in. It may ask the platform, for a second at the most.
	User(ctx context.Context, id string) (User, bool)
}

// Normalizer turns one platform's raw payloads into events. Both methods are
// pure over their arguments and safe for concurrent use.
type Normalizer interface {
	// Keys reads what custody needs. It never fails: what can't be read has a
	// Dedupe key of its bytes and is settled as dead.
	Keys(envelope event.Envelope, facts Facts) event.Keys
	// Normalize says what the envelope means. An error means that this payload
	// can never be read; its words name the field.
	Normalize(ctx context.Context, envelope event.Envelope, directory Directory) (event.Event, error)
}

// Adapter is one configured account on a platform.
type Adapter interface {
	Normalizer
	// Limits says what one post can hold and how fast posts may follow.
	Limits() Limits
}

// Limits are a platform's bounds on what we send.
type Limits struct {
	// PostRate is how many posts a second one channel takes; 0 leaves the pace
	// to the platform's refusals.
	PostRate float64
	// Timeout bounds one call.
	Timeout time.Duration
	// Preview is how a growing answer is shown, and PreviewEvery how often it is shown
	// anew at the most.
	Preview      Preview
	PreviewEvery time.Duration
	// StreamAge is how old a stream may grow; another one goes on then. 0: as old
	// as it likes.
	StreamAge time.Duration
	// FileOver is how long a reply may be, in characters, and still be posted; a
	// longer one is a file. 0: as long as it likes.
	FileOver int
	// Sign says that people are to be shown that the agent is at work.
	Sign bool
}

// Preview is how an answer is shown while it grows.
type Preview string

// The ways to show a growing answer.
const (
	PreviewOff    Preview = "off"    // it is not
	PreviewEdit   Preview = "edit"   // as a post that is edited
	PreviewStream Preview = "stream" // as a stream where the platform has them, else as an edited post
)

// Runner is an adapter with something to keep going: a connection, or the
// question of who we are. The supervisor calls Run, and calls it again with
// backoff after an error that is not Refused. Run returns when ctx ends.
type Runner interface {
	// Run hands what comes in over a connection to inbox, and tells through link
	// how that goes. It may mend a broken connection itself, and need not return
	// for that.
	Run(ctx context.Context, inbox Inbox, link Link) error
}

// Link is how a Runner tells how it is doing. Up and Down are called by one
// goroutine at a time, and not after Run has returned.
type Link struct {
	// Up is called once it is known who we are and events can arrive, and again each
	// time that they can arrive after a time in which they could not: what happened
	// meanwhile may have been missed.
	Up func(event.Self)
	// Down is called when events have not been able to arrive for a while, while Run
	// goes on trying; the error says why. Up ends it.
	Down func(error)
	Log  *slog.Logger
	// Wants are the workspace's, so that the log can tell what they lack.
	Wants Wants
}

// Hook is an adapter that takes envelopes over HTTP.
type Hook interface {
	// Handler serves the workspace's hook. It authenticates, hands the body to
	// inbox, and acknowledges what inbox has made durable. What it turns away
	// it reports by a short reason.
	Handler(inbox Inbox, rejected func(reason string)) http.Handler
}

// Post is one message to be put on a platform.
type Post struct {
	// Key tells this post from every other, for ever: at most 25 of [a-z0-9].
	Key    string
	Thread event.ThreadKey
	// To is the place in the platform's own terms, as Address made it.
	To   Address
	Text string // as Format or Grow made it
	// Asker is the platform's id of the user whom the post answers; empty where
	// that is not known.
	Asker string
	// NotBefore is the earliest time at which the post can have taken effect.
	NotBefore time.Time
	// File, where it is set, is put there beside the text, which may then be empty.
	File *File
}

// File is what an agent made, to be put on a platform.
type File struct {
	Name, MimeType string
	Size           int64 // bytes
	// Open reads it; the caller closes the reader.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Address is where a thread's replies go, fixed when its message came in.
type Address struct {
	Channel string `json:"channel"`
	// Root is what a reply hangs under (a Slack thread_ts); empty for none.
	Root string `json:"root,omitempty"`
}

// Sender is an adapter that can post.
type Sender interface {
	// Format splits and converts an agent's CommonMark into the texts of the
	// posts that carry it, each within the platform's limit. Mentions are the
	// tokens that the agent was given, such as "<@U06STGBF4Q0>", and may use;
	// whatever else looks like one comes out as plain text. Pure.
	Format(text string, mentions []string) []string
	// Address tells where replies of the thread go, from its key. Pure.
	Address(thread event.ThreadKey) (Address, error)
	// Send posts once and returns the platform's id of the post. It must not
	// retry, and must not write the request once ctx has ended. Its errors are
	// *SendError.
	Send(ctx context.Context, post Post) (id string, err error)
}

// Editor is a Sender whose posts can be changed and taken away. Like Send, both
// try nothing twice, write nothing once ctx has ended, and fail with *SendError;
// both may be called again after any failure.
type Editor interface {
	// Edit makes the post with this id show post.Text, whatever it shows now; one
	// that is a stream is ended first. Permanent means that the platform refuses
	// to change it.
	Edit(ctx context.Context, id string, post Post) error
	// Remove takes the post with this id away; it is no error that it is gone.
	Remove(ctx context.Context, id string, post Post) error
}

// Growth says how Grow is to end a post.
type Growth struct {
	// Done says that the text is whole. Else what may mean something else with
	// more behind it, such as the beginning of a token, is held back.
	Done bool
	// From is how many bytes of the post are shown already, where it must be ended
	// soon: at the first good place behind them. 0: near the platform's limit.
	From int
	// Now ends the post, at From or just behind it.
	Now bool
}

// Grower is an Editor or a Streamer that can format a text while it grows.
type Grower interface {
	// Grow formats the beginning of a text, as much as one post holds. Where the
	// post is full, rest is the text to go on with in the next one; else rest is
	// text, and the same call with more text shows something that begins with what
	// is shown now. Format does the same with a text that is Done. Pure.
	Grow(text string, mentions []string, growth Growth) (shown, rest string, full bool)
}

// Streamer is an adapter that can show a growing text in pieces. None of its calls
// may be repeated after an unclear end; their errors are *SendError.
type Streamer interface {
	// Streams says whether post may be a stream, as far as that is known without a call.
	Streams(post Post) bool
	// Begin posts post.Text as the beginning of a stream, and returns the id of
	// the post. Permanent means that there are no streams here: Send and Edit do.
	Begin(ctx context.Context, post Post) (id string, err error)
	// Append adds text to the stream with this id.
	Append(ctx context.Context, id string, post Post, text string) error
	// End adds a last text, which may be empty, and ends the stream.
	End(ctx context.Context, id string, post Post, text string) error
}

// Ephemeral is an adapter that can tell one user alone something, which leaves
// nothing to be found later.
type Ephemeral interface {
	// Tell shows post.Text to post.Asker alone. Its errors are *SendError.
	Tell(ctx context.Context, post Post) error
}

// Sign is a sign of work at a turn.
type Sign struct {
	Thread event.ThreadKey
	To     Address
	// Message is the external id of the message that is being answered.
	Message string
}

// Greeter is an adapter that has something to show in a thread which somebody has
// just opened, before anything is said there.
type Greeter interface {
	// Greet shows it. It is called once the opening is recorded, at most once a
	// thread, and bounds its own time.
	Greet(ctx context.Context, thread event.ThreadKey) error
}

// Signer is an adapter that can show people that the agent is at work. Both calls
// may be repeated; their errors are *SendError.
type Signer interface {
	// Sign shows it.
	Sign(ctx context.Context, sign Sign) error
	// Unsign takes it away; it is no error that there is none.
	Unsign(ctx context.Context, sign Sign) error
}

// Finder is a Sender that can say whether a post of ours is there.
type Finder interface {
	// Find looks among our own messages for the post with post.Key. An error
	// means that it could not tell.
	Find(ctx context.Context, post Post) (id string, found bool, err error)
}

// StreamFinder is a Streamer that can say whether a stream of ours is there.
type StreamFinder interface {
	// FindStream returns, oldest first, the ids of our own messages at post.To since
	// post.NotBefore that carry no key: one that no delivery knows is the stream
	// that Begin made of post. An error means that it could not tell.
	FindStream(ctx context.Context, post Post) (ids []string, err error)
}

// Fetcher is an adapter that can read an attachment's bytes. It goes to the
// platform alone, never to an address that a message names.
type Fetcher interface {
	Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error)
}

// Described is what the reader that a Fetcher returns may be: it tells of its file
// what the message may have left out.
type Described interface {
	// Describe is the file as the platform describes it; what it does not tell is
	// empty.
	Describe() event.Attachment
}

// SendFailure says what an unsuccessful call left behind.
type SendFailure int

// What may have become of a post whose call did not succeed.
const (
	// NotSent: the platform did not take it; sending again is safe.
	NotSent SendFailure = iota
	// RateLimited: not taken; nobody may post there before RetryAfter.
	RateLimited
	// Unclear: it may have taken effect; ask before sending again.
	Unclear
	// Permanent: not taken, and will not be.
	Permanent
)

// SendError is how a Sender fails.
type SendError struct {
	Failure    SendFailure
	RetryAfter time.Duration // of RateLimited
	Err        error
}

// Error gives the cause's words.
func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }

// RefusedError says that the platform refuses our credentials or our presence:
// trying again without a change of configuration is of no use.
type RefusedError struct {
	Err  error
	Hint string // what the operator should do
}

// Error gives the cause and the hint.
func (e *RefusedError) Error() string { return fmt.Sprintf("%v (%s)", e.Err, e.Hint) }

// Unwrap gives the cause.
func (e *RefusedError) Unwrap() error { return e.Err }
