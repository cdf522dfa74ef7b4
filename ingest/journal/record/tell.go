package record

import (
	"fmt"
	"reflect"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// Tell is the content of the notice of a decision. Entry.Notice makes the notice from it.
type Tell struct {
	Text string // in Markdown; empty for the answer to a command
	// Message is the external id of the message that the notice answers, and Sender its author, who alone reads the
	// notice if the platform can do that. Without a Sender it is for all people of the thread.
	Message, Sender string
	// Private means that the Sender alone may read it. If the platform cannot do that, the notice has no post.
	Private bool
	// Command is the command that the notice answers, and State that of the thread before it. Record sets both.
	Command Command
	State   ThreadState
}

// madeNotice is a notice with what it tells.
type madeNotice struct {
	tell   Tell
	notice outbox.Notice
}

// fits reports whether n is the notice of t. The answer to a command that changes nothing may be about a moment before, because
// the work may change at any time.
func (n *madeNotice) fits(t Tell) bool {
	switch {
	case n == nil:
		return false
	case t.Command == CommandStatus, t.Command == CommandSchedules:
		return n.tell.Command == t.Command
	}
	return reflect.DeepEqual(n.tell, t)
}

// needsNoticeError ends a transaction, which has written nothing, because the notice of its decision is not made yet.
type needsNoticeError struct{ tell Tell }

func (e *needsNoticeError) Error() string { return "the notice of a decision is not made" }

// prepare ends the transaction with a needsNoticeError if a decision about a message needs a notice that is not made.
// Only a new message is a command; known is the stored message of any other.
func (r *recordTx) prepare(d *Decision, known *messages.Message) {
	if d.Command != "" {
		if known != nil {
			d.Tell = nil
			return
		}
		r.state = r.before(d)
	}
	if d.Tell == nil || r.told {
		return
	}
	tell := *d.Tell
	tell.Command, tell.State = d.Command, r.state
	if !r.made.fits(tell) {
		r.Fail(&needsNoticeError{tell})
	}
}

// tell stores the notice of the decision, and its deliveries.
func (r *recordTx) tell() {
	n := &r.made.notice
	outbox.AddNotice(r.Txn, r.claim.Thread, r.thread.NextSeq+r.added, r.Workspace, storage.Optional(r.out.Stopped), *n, r.now)
	r.added++
	about := r.MessageUUID
	if m := r.out.Message; m != nil {
		about = m.UUID
	}
	runs.PostNotice(r.Txn, r.claim.Thread, r.Workspace, fmt.Sprintf("%s/%d", about, r.Envelope), n.Posts, r.now) // a later edit may have another
	r.out.Told = r.out.Told || len(n.Posts) > 0
}
