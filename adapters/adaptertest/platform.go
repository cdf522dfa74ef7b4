package adaptertest

import (
	"context"
	"testing"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// Platform starts a fake of a platform and an adapter that is configured for it. The adapter
// does not run yet. Each call returns new ones, which end with the test.
type Platform func(t *testing.T) Fake

// Fake is a platform under the test's control. If the platform lacks an ability, its function
// is nil, and the promises that need it are skipped.
type Fake struct {
	Adapter  adapters.Adapter
	Platform adapters.Platform
	// Workspace and Transport are those of live envelopes. Self is our own identity.
	Workspace, Transport string
	Self                 event.Self
	// Secrets are the values that no error and no line of the log may contain.
	Secrets []string
	// Room is a channel with several members. Direct is the asker's direct messages with us.
	Room, Direct Place
	// Asker and Other are two people in the room.
	Asker, Other Person

	// Hook gives the platform the URL of the adapter's handler. It is nil if events arrive
	// over a connection of Run's.
	Hook func(url string)

	// Say, Edit, Delete and React operation as the asker. The platform then sends an event, if it
	// can. An address without a root is the channel itself.
	Say func(to adapters.Address, text string) Delivery
	// Open begins a thread with a root, and returns the root's id and the address of replies.
	// It is nil if a message in the room begins a thread.
	Open   func(text string) (root string, to adapters.Address)
	Edit   func(id, text string)
	Delete func(id string)
	React  func(id string)
	// Raw sends a payload unchanged.
	Raw func(payload []byte) Delivery
	// Share shares a file and returns its attachment. It returns false if the platform has no
	// such file.
	Share func(file File) (event.Attachment, bool)
	// FileAlone says that a post has a text or a file, and never both.
	FileAlone bool
	// Forge posts the same message in another user's name.
	Forge func(post adapters.Post)

	// Shown returns our posts in their order, as they are shown now.
	Shown func(to adapters.Address) []Shown
	// Ephemerals returns the ephemeral messages that a user has seen.
	Ephemerals func(user string) []string
	// Working reports whether the sign of work is shown.
	Working func(sign adapters.Sign) bool
	// Calls returns the number of requests that have arrived.
	Calls func() int

	// Fault makes the next call of its kind fail, and returns a channel that is closed when
	// that call has arrived. It returns nil if there is no such call or it cannot fail so.
	Fault func(call Call, failure Failure) (met <-chan struct{})
	// Cut cuts the connection. Revoke revokes our credentials. Close stops the platform, so
	// that it refuses connections.
	Cut, Revoke, Close func()
}

// Place is a channel with its name on the platform.
type Place struct{ ID, Name string }

// Person is a user with the displayed name and the token that mentions them. The token is
// empty if the platform has none.
type Person struct{ ID, Name, Mention string }

// Delivery is an event that the platform sends.
type Delivery struct {
	// ID is the external id of the message.
	ID string
	// Acknowledged waits for the end of the delivery, and reports whether we acknowledged it.
	// It is nil if the platform does not wait for an acknowledgement.
	Acknowledged func(ctx context.Context) (bool, error)
}

// Shown is a post of ours as a reader sees it.
type Shown struct {
	ID, Text string
	Files    [][]byte
}

// File is a file for Share.
type File struct {
	Content []byte
	Where   Where
	// At is the address for Elsewhere and SentElsewhere.
	At string
}

// Where determines the result of a file's download.
type Where string

// The results of a download.
const (
	Here          Where = "here"           // the platform serves the file
	SentOn        Where = "sent on"        // another host of the platform serves it, but only without credentials
	Unreadable    Where = "unreadable"     // we have no right to read it, and get a sign-in page
	Elsewhere     Where = "elsewhere"      // the platform names a foreign address
	SentElsewhere Where = "sent elsewhere" // the platform's own address redirects to a foreign one
)

// Call is a kind of call to the platform.
type Call string

// The kinds of calls, named after their purpose.
const (
	Who           Call = "who we are"
	Connect       Call = "connect"
	Post          Call = "post"
	Upload        Call = "upload" // the call that shows the file
	Edit          Call = "edit"
	Remove        Call = "remove"
	Begin         Call = "begin"
	Append        Call = "append"
	End           Call = "end"
	PostEphemeral Call = "post ephemeral"
	ShowWorking   Call = "show working"
	ClearWorking  Call = "clear working"
	Read          Call = "read" // a thread
	ReadChannel   Call = "read channel"
	Name          Call = "name" // of a user
)

// Failure is the way in which a call fails.
type Failure string

// The ways in which a call fails.
const (
	Limited    Failure = "rate limited"        // refused for the time Wait
	Denied     Failure = "refused permanently" // with the platform's own error
	Broken     Failure = "a server error"
	BrokenLate Failure = "a server error, after the effect"
	Lost       Failure = "connection cut"
	LostLate   Failure = "connection cut, after the effect"
	Stuck      Failure = "not answered" // until the test ends, and without effect
)

// Wait is the pause that the platform requests if a call is Limited.
const Wait = 7 * time.Second
