// Package adapters defines the interfaces of a chat platform, and supervises the
// configured adapters.
//
// An adapter is one package with its own Config. Every adapter implements Normalizer. An
// ability that only some platforms have is a further interface, found by type assertion:
// Connector, Stateful, Hook, Fetcher; Sender, Finder, Lister, Editor, PartialFormatter, Streamer,
// StreamFinder, Ephemeral, ButtonSender; Namer, MentionNamer; WorkingIndicator, SelfSigner; Backfiller, ContextReader; Checker.
package adapters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"parley/adapters/guard"
	"parley/ingest/event"
)

// Receipt is the result of a durable accept.
type Receipt struct {
	ID int64
	// MessageUUID is the UUID of the message that the envelope makes.
	MessageUUID string
	// Duplicate reports that the same payload was accepted before.
	Duplicate bool
	// Waits reports that the envelope is about a message that is not known yet.
	Waits bool
}

// ErrBusy means that the store cannot accept the envelope now. The adapter must not
// acknowledge it, so that the platform sends it again.
var ErrBusy = errors.New("the store cannot accept the message now")

// Results is an Inbox that knows the results of envelopes.
type Results interface {
	// Runs waits for an envelope's result, and reports whether it triggers a run or is a chat
	// command, so that an answer follows. known is false if ctx ends first.
	Runs(ctx context.Context, envelope int64) (runs, known bool)
}

// Inbox accepts envelopes durably. Adapters call it concurrently.
type Inbox interface {
	// Accept returns after the envelope is durable. Only then may the adapter acknowledge
	// it to the platform. Accept waits at most two seconds, and then fails with ErrBusy.
	Accept(ctx context.Context, envelope event.Envelope) (Receipt, error)
}

// Facts are the facts about a workspace that the daemon remembers between envelopes.
type Facts interface {
	// Self is our identity in the workspace. A zero field is unknown.
	Self() event.Self
	// ChannelType is a channel's type, which is known from payloads.
	ChannelType(channel string) event.ChannelType
}

// User is one of a platform's users, as the platform shows them.
type User struct {
	DisplayName string
	IsBot       bool
}

// Directory resolves the names that a payload leaves out.
type Directory interface {
	Facts
	// User returns a user's name. It returns false if the name is unknown; the caller
	// then uses the id instead. It may ask the platform, for at most a second.
	User(ctx context.Context, id string) (User, bool)
	// State is the workspace's state.
	State() State
}

// Normalizer turns one platform's raw payloads into events. Both methods depend on their
// arguments alone and are safe for concurrent use.
type Normalizer interface {
	// Keys reads the keys that the durable accept needs. It never fails: the Dedupe key
	// of an unreadable payload is a hash of its bytes, and intake makes that payload a
	// dead letter.
	Keys(envelope event.Envelope, facts Facts) event.Keys
	// Normalize returns the event of an envelope. An error means that this payload can
	// never be read; the error names the field. If a call of the directory's State fails
	// because the store is away, Normalize returns that error, wrapped, and is called again
	// later.
	Normalize(ctx context.Context, envelope event.Envelope, directory Directory) (event.Event, error)
}

// Adapter is one configured account on a platform.
type Adapter interface {
	Normalizer
	// Limits returns the size of one post and the pace of posts.
	Limits() Limits
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

// Connector is an adapter with connections, or with another task that runs all the time.
type Connector interface {
	// Connections returns the adapter's connections. It is called once. The supervisor
	// runs each of them on its own.
	Connections() []Connection
}

// Stateful is an adapter that needs the workspace's state in calls besides Run.
type Stateful interface {
	// UseState passes the state. It is called once, before every other call.
	UseState(State)
}

// Connection is one connection of an adapter to its platform: a gateway session, a set of
// sockets, or a poller.
type Connection struct {
	// Name distinguishes the connection from the adapter's others; the only one needs none.
	Name string
	// Exclusive says that only one node at a time may run the connection, however many
	// nodes share the store. Then Run must close it before it returns, and must return
	// within a second after its ctx ends, because another node may connect soon after
	// that. If Run returns for another reason, another node may run next. So Run should
	// handle a platform's everyday events by itself, such as a request to reconnect.
	Exclusive bool
	// Run hands the envelopes of the connection to inbox, and reports its state through
	// link. It may repair a broken connection without returning. It returns when ctx
	// ends. After an error that is not a *RefusedError, the supervisor calls Run again,
	// with backoff.
	Run func(ctx context.Context, inbox Inbox, link Link) error
	// Split replaces Run if only the platform knows of which connections this one consists:
	// it asks the platform for them. Each of them then runs on its own. Its errors are those
	// of Run.
	Split func(ctx context.Context) ([]Connection, error)
}

// Link is how a connection reports its state. One goroutine at a time calls Up and Down, and
// none calls them after Run has returned.
type Link struct {
	// Up reports that our identity is known and that events can arrive. Run calls it
	// again after each interruption; messages of that interruption may be missing.
	Up func(event.Self)
	// Down reports that events have been unable to arrive for a while, and why. Run keeps
	// trying. The next Up ends this state.
	Down func(error)
	// Missed reports that messages of a channel may have been missed since a time, by the
	// platform's clock; the connection need not have been interrupted. An empty channel
	// means every channel. The messages are read like those of an interruption. It may be
	// called concurrently and never waits.
	Missed func(channel string, since time.Time)
	// State is the workspace's state.
	State State
	Log   *slog.Logger
	// Wants returns the present wants of the workspace, which a reload can change.
	Wants func() Wants
}

// Hook is an adapter that receives envelopes over HTTP.
type Hook interface {
	// Handler serves the POST requests of the workspace's hook. It authenticates each
	// request, hands the body to inbox, and acknowledges it after the durable accept. It
	// refuses a request through the guard: if the address or the headers show that the
	// caller is not the platform, before it reads the body. It reads the body with
	// guard.Body if they prove that the caller is, and else with guard.Unverified.
	Handler(inbox Inbox, guard *guard.Guard) http.Handler
	// HookOnly reports whether envelopes, as the adapter is configured, arrive at the hook
	// alone. Such an adapter has no connection whose end it would notice.
	HookOnly() bool
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
}

// Button is a button of a post.
type Button struct {
	ID    string // at most 100 of [a-z0-9-]; it begins with ButtonPrefix
	Label string
}

// ButtonPrefix begins the ids of our buttons.
const ButtonPrefix = "parley-"

// ButtonSender is a Sender whose Send shows buttons. A press of one is an event of kind action
// whose message has the id as Pressed.
type ButtonSender interface {
	// ButtonLimits returns the bounds of a post with buttons. Pure.
	ButtonLimits() ButtonLimits
}

// ButtonLimits are the bounds of a post with buttons.
type ButtonLimits struct {
	Buttons     int // number
	Label, Text int // characters of a label, and of the text as Format returned it
}

// Address is the destination of a reply. Only the adapter that made it reads Place.
type Address struct {
	// Channel is the key of the pace: the posts of one channel share it. It is not empty.
	Channel string
	// Place is the destination within the channel in the adapter's own form, such as a
	// Slack thread_ts or the message to reply to. It may be empty.
	Place string
}

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

// Sign identifies the turn for which the platform shows that the agent is at work.
type Sign struct {
	To Address
	// Message is the external id of the message that the turn answers.
	Message string
	// Text describes the work of the agent, in one line of plain text; empty for the platform's
	// own words. A sign without a text ignores it.
	Text string
}

// WorkingIndicator is an adapter that can show people that the agent is at work. Both
// calls may be repeated. Their errors are *SendError.
type WorkingIndicator interface {
	// ShowWorking shows that the agent is at work.
	ShowWorking(ctx context.Context, sign Sign) error
	// ClearWorking removes that sign. It is no error if none is shown.
	ClearWorking(ctx context.Context, sign Sign) error
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

// Finder is a Sender that can find one of our posts.
type Finder interface {
	// Find searches our own messages for the post with post.Key. An error means that the
	// search failed, not that the post is missing.
	Find(ctx context.Context, post Post) (id string, found bool, err error)
}

// ErrUndelivered means that the platform took a post, and could not deliver it.
var ErrUndelivered = errors.New("the platform could not deliver the post")

// Lister is a Sender on a platform that stores no mark of a post, or only for a while. It can list
// our posts that look like one. If it is also a Finder, List is called for a post that Find did not
// find.
type Lister interface {
	// List returns, oldest first, the ids of our own messages at post.To since post.NotBefore
	// that look like the post. One that no delivery and no recorded message has is the post.
	// ErrUndelivered means that the platform could not deliver any of them; any other error, that
	// the search failed.
	List(ctx context.Context, post Post) (ids []string, err error)
	// Settles returns how long after the end of its call the post may still appear. Pure.
	Settles(post Post) time.Duration
}

// StreamFinder is a Streamer that can find our streams.
type StreamFinder interface {
	// FindStream returns, oldest first, the ids of our own messages at post.To since
	// post.NotBefore that carry no key. One that no delivery knows is the stream that
	// Begin made of post. An error means that the search failed.
	FindStream(ctx context.Context, post Post) (ids []string, err error)
}

// Fetcher is an adapter that can read an attachment's bytes. It connects to the platform
// only, never to an address that a message names.
type Fetcher interface {
	Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error)
}

// Described is an optional interface of the reader that Fetch returns. It adds facts
// about the file that the message may have left out.
type Described interface {
	// Describe returns the platform's description of the file. An unknown field is empty.
	Describe() event.Attachment
}

// SendFailure is the effect of a failed call.
type SendFailure int

// The possible effects of a failed call.
const (
	// NotSent means that the platform did not take the post. Sending again is safe.
	NotSent SendFailure = iota
	// RateLimited means that the platform did not take the post, and takes no such call
	// in the Scope before RetryAfter.
	RateLimited
	// Unclear means that the call may have taken effect. The caller looks for the post
	// before it sends again.
	Unclear
	// Permanent means that the platform did not take the post and never will.
	Permanent
)

// Scope is the extent of a rate limit.
type Scope int

// The scopes of rate limits. The posts of a channel or of a workspace wait until the limit
// has ended. The adapter itself refuses further calls of a method until then.
const (
	ScopeChannel   Scope = iota // the calls about the channel of the Address
	ScopeMethod                 // the calls of one method
	ScopeWorkspace              // every call
)

// SendError is the error of a Sender's calls.
type SendError struct {
	Failure    SendFailure
	RetryAfter time.Duration // only of RateLimited
	Scope      Scope         // only of RateLimited
	Err        error
}

// Error returns the text of the cause.
func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// RetryAfter returns the wait that a rate limit demands, and false for another error.
func RetryAfter(err error) (wait time.Duration, limited bool) {
	failure, ok := errors.AsType[*SendError](err)
	if !ok || failure.Failure != RateLimited {
		return 0, false
	}
	return failure.RetryAfter, true
}

// Permanently returns a permanent failure without a call.
func Permanently(message string) *SendError {
	return &SendError{Failure: Permanent, Err: errors.New(message)}
}

// WithoutEffect returns the failure of a call that has no visible effect by itself, and that may
// be repeated therefore: an unclear one is NotSent. It returns any other error unchanged.
func WithoutEffect(err error) error {
	if failure, ok := errors.AsType[*SendError](err); ok && failure.Failure == Unclear {
		return &SendError{Failure: NotSent, Err: err}
	}
	return err
}

// RefusedError means that the platform refuses our credentials or our presence. Another
// try without a change of configuration is useless.
type RefusedError struct {
	Err  error
	Hint string // the operator's remedy
}

// Error returns the cause and the hint.
func (e *RefusedError) Error() string { return fmt.Sprintf("%v (%s)", e.Err, e.Hint) }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }
