package adaptertest

import (
	"context"
	"testing"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// Platform starts a fake of a platform, and an adapter that is configured for it and
// does not run yet. Both are new each time, and end with the test.
type Platform func(t *testing.T) Fake

// Fake is a platform to play with. A function that is nil is something that the
// platform does not have; the promises that need it are skipped.
type Fake struct {
	Adapter adapters.Adapter
	// Workspace and Transport are what live envelopes carry, and Self is who we are.
	Workspace, Transport string
	Self                 event.Self
	// Secrets are what no error and no line of the log may hold.
	Secrets []string
	// Room is a channel of many, Direct one of the asker and us alone.
	Room, Direct Place
	// Asker and Other are two people in the room.
	Asker, Other Person

	// Hook tells the platform where the adapter's handler stands; nil where what
	// happens comes over a connection of Run's.
	Hook func(url string)

	// Say, Edit, Delete and React are what the asker does, and what the platform then
	// tells us of, if it can. An address without a root is the channel itself.
	Say    func(to adapters.Address, text string) Delivery
	Edit   func(id, text string)
	Delete func(id string)
	React  func(id string)
	// Raw tells us of a payload as it is.
	Raw func(payload []byte) Delivery
	// Share puts a file where its attachment can be fetched; false where there is no
	// such file here.
	Share func(file File) (event.Attachment, bool)
	// Forge posts what the post would be, in another's name.
	Forge func(post adapters.Post)

	// Shown are our posts that stand there now, in their order.
	Shown func(to adapters.Address) []Shown
	// Told is what this user alone has been shown.
	Told func(user string) []string
	// Signed says whether the sign of work is shown.
	Signed func(sign adapters.Sign) bool
	// Calls counts the requests that have come.
	Calls func() int

	// Fault makes the next call of its kind fail, and returns what is closed once that
	// call has come; nil where there is no such call, or it can't fail so.
	Fault func(call Call, trouble Trouble) (met <-chan struct{})
	// Cut cuts the connection, Revoke takes our credentials away, and Close ends the
	// platform, so that connections to it are refused.
	Cut, Revoke, Close func()
}

// Place is a channel, and how the platform calls it.
type Place struct{ ID, Name string }

// Person is a user, the name that is shown, and the token that mentions them; it is
// empty where there are none.
type Person struct{ ID, Name, Mention string }

// Delivery is what the platform tells us of.
type Delivery struct {
	// ID is the external id of the message.
	ID string
	// Acknowledged waits for the end of the delivery, and says whether that is our
	// acknowledgement; nil where the platform waits for none.
	Acknowledged func(ctx context.Context) (bool, error)
}

// Shown is a post of ours as a reader sees it.
type Shown struct {
	ID, Text string
	Files    [][]byte
}

// File is one to be shared.
type File struct {
	Content []byte
	Where   Where
	// At is the address for Elsewhere and SentElsewhere.
	At string
}

// Where says what becomes of who downloads a file.
type Where string

// The ways of a download.
const (
	Here          Where = "here"           // it is served
	SentOn        Where = "sent on"        // it is served at another host of the platform's, to who shows no token there
	Unreadable    Where = "unreadable"     // we may not read it, and are sent to sign in
	Elsewhere     Where = "elsewhere"      // the platform names somebody else's address
	SentElsewhere Where = "sent elsewhere" // the platform's own address leads to somebody else's
)

// Call is a kind of call to the platform.
type Call string

// The kinds of calls, named after what they are for.
const (
	Who     Call = "who we are"
	Connect Call = "connect"
	Post    Call = "post"
	Upload  Call = "upload" // the call that shows the file
	Edit    Call = "edit"
	Remove  Call = "remove"
	Begin   Call = "begin"
	Append  Call = "append"
	End     Call = "end"
	Tell    Call = "tell"
	Sign    Call = "sign"
	Unsign  Call = "unsign"
	Read    Call = "read"      // a thread
	Past    Call = "read past" // a channel
	Name    Call = "name"      // a user's
)

// Trouble is how a call fails.
type Trouble string

// The troubles.
const (
	Limited    Trouble = "one too many"     // refused, with the time Wait
	Denied     Trouble = "refused for good" // in the platform's own words
	Broken     Trouble = "a server error"
	BrokenLate Trouble = "a server error, after the effect"
	Lost       Trouble = "cut off"
	LostLate   Trouble = "cut off, after the effect"
	Stuck      Trouble = "not answered" // until the test ends, and without effect
)

// Wait is what the platform says to wait where a call was Limited.
const Wait = 7 * time.Second
