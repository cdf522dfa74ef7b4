package adapters

import (
	"context"
	"errors"
	"io"
	"time"

	"parley/ingest/event"
)

// Backfiller is an adapter that can read missed messages. Its calls keep to the
// platform's pace, however long that takes, and may run concurrently. They fail with
// *RefusedError if only a change by the operator, other than new credentials, makes the
// messages readable; the caller does not try again then.
type Backfiller interface {
	// Channels returns the channels whose messages reach us.
	Channels(ctx context.Context) ([]string, error)
	// Began returns the thread's channel and the platform's time of its first message; a
	// zero time is older than any gap. It returns false if no message of the thread can
	// be missed. Pure.
	Began(thread event.ThreadKey) (channel string, at time.Time, ok bool)
	// ReadThread hands over the thread's messages in the gap, oldest first.
	ReadThread(ctx context.Context, thread event.ThreadKey, read Reading) error
	// ReadChannel hands over the channel's messages in the gap, oldest first, except
	// those of the threads that it returns. These threads have further messages in the
	// gap; the caller reads them with ReadThread.
	ReadChannel(ctx context.Context, read Reading) (Found, error)
}

// SlowHistory is a Backfiller whose platform may show a message in its history, or name a
// channel, later than it happened.
type SlowHistory interface {
	// HistoryLag returns the time after which everything is shown. Pure.
	HistoryLag() time.Duration
}

// Reading is one read of a Backfiller.
type Reading struct {
	Gap event.Gap
	// Messages bounds the messages that ReadChannel hands over; it hands over the newest.
	Messages int
	// Urgent is closed once a turn waits for the read. Until then, the read leaves a
	// fifth of the platform's calls to others.
	Urgent <-chan struct{}
	// Hand takes messages of one thread, maybe none: the thread is read then. ReadChannel
	// hands over all its messages of a thread in one call. An error of Hand ends the read,
	// which returns it.
	Hand func(thread event.ThreadKey, list []Missed) error
}

// Found is the rest of ReadChannel's result.
type Found struct {
	Threads []event.ThreadKey
	Cut     bool // ReadChannel left messages out, to keep within the bound
}

// Missed is a possibly missed message, as envelopes with the Transport event.Backfilled
// and the keys of the platform's own events.
type Missed struct {
	// New is the event of the message. It is nil if the message is older than the gap, or
	// was deleted.
	New *event.Envelope
	// Change is the event of the message's last edit, or of its deletion; nil if there is
	// neither. It has no effect on a message that New makes known.
	Change *event.Envelope
}

// ContextReader is an adapter that can read the messages of a thread from before the
// journal knew the thread.
type ContextReader interface {
	// Root returns the external id of the thread's root message. It returns false if the
	// thread has none, or if the beginning of such a thread is always known. Pure.
	Root(thread event.ThreadKey) (id string, ok bool)
	// ReadHistory reads the thread's root, and at most newest of the latest messages between
	// the root and the message with the external id upTo. It does not wait for the
	// platform's pace. An error means that it read nothing.
	ReadHistory(ctx context.Context, thread event.ThreadKey, upTo string, newest int) (ThreadHistory, error)
}

// QuotedReader is an adapter whose payloads name the message that another one answers only by its id.
type QuotedReader interface {
	// ReadQuoted returns an event of the message with an external id.
	ReadQuoted(ctx context.Context, id string) (event.Envelope, error)
}

// ThreadHistory is the result of such a read.
type ThreadHistory struct {
	// Envelopes are events of the messages, with the Transport event.Reread, in the order
	// of the messages.
	Envelopes []event.Envelope
	// Earlier is the number of messages left out between the root and the others.
	Earlier int
	// Gap says that the messages behind the root could not be read.
	Gap bool
}

// Finder is a Sender that can find one of our posts.
type Finder interface {
	// Find searches our own messages for the post with post.Key. An error means that the
	// search failed, not that the post is missing.
	Find(ctx context.Context, post Post) (id string, found bool, err error)
}

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

// ErrUndelivered means that the platform took a post, and could not deliver it.
var ErrUndelivered = errors.New("the platform could not deliver the post")

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

// Namer is an adapter that can look up a user on its platform.
type Namer interface {
	// LookupUser returns a user's name. It fails with ErrNoName if the platform answers that
	// it has none.
	LookupUser(ctx context.Context, id string) (User, error)
}

// MentionNamer is a Namer that can also name the groups and channels that messages mention.
type MentionNamer interface {
	// LookupMention returns the name behind a token without a label, such as "<#C06RY3YBSLE>", in a
	// message of the channel in. It fails with ErrNoName if there is none, or if not everybody in that
	// channel may know it.
	LookupMention(ctx context.Context, in, token string) (string, error)
}

// PlaceNamer is a Namer that can name the places of conversations.
type PlaceNamer interface {
	// LookupPlace returns the names of a channel's place. It fails with ErrNoName if there are none.
	LookupPlace(ctx context.Context, channel string) (event.Place, error)
}

// ChannelTyper is a Sender that can tell a channel's type before a payload does.
type ChannelTyper interface {
	// TypeOf returns a channel's type. It takes at most a call.
	TypeOf(ctx context.Context, channel string) (event.ChannelType, error)
}

// PlaceKeeper is a PlaceNamer whose platform reports every change of some channels' names.
type PlaceKeeper interface {
	// KnownPlace returns the present names of a channel's place, or false if the platform does not report them here.
	KnownPlace(channel string) (event.Place, bool)
}

// ErrNoName means that the platform has no name for an id or a token.
var ErrNoName = errors.New("the platform has no such name")

// Viewer is an adapter that knows who can read a channel.
type Viewer interface {
	// Sees reports whether a user can read a channel of the workspace now. An error says that it is not known.
	Sees(ctx context.Context, channel, user string) (bool, error)
}

// GroupsTime is how long a Grouper may keep the groups of people.
const GroupsTime = 10 * time.Minute

// Grouper is an adapter that knows in which groups people are: roles on Discord, user groups on Slack.
type Grouper interface {
	// GroupsOf returns the groups of a user, at least those among of. They are at most GroupsTime old. An error says that they are not known.
	GroupsOf(ctx context.Context, user string, of []string) ([]string, error)
}
