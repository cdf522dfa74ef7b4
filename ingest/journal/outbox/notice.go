package outbox

import (
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// Notice is what Parley itself says about a run that ended without an answer, or to the sender
// of a message over a budget. It is a message of its thread and of no transcript, and makes no
// reply stale.
type Notice struct {
	Text     string
	Metadata []byte // stored with the message
	Posts    []Post // show the notice on the platform; empty for none
}

// NewNotice returns a notice with metadata in the contract's terms, and further keys of it.
func NewNotice(platform event.Platform, text string, extra ...event.Extra) Notice {
	m := event.Metadata{
		Source: string(platform), SenderID: messages.SystemSender, SenderDisplayName: "Parley", SenderType: event.Bot, Extra: extra,
	}
	return Notice{Text: text, Metadata: m.Bytes()}
}

// AddNotice stores a notice with a thread_seq. Its thread must be locked.
func AddNotice(tx *storage.Txn, thread, seq int64, workspace string, run any, n Notice, now int64) {
	messages.InsertNotice(tx, thread, seq, workspace, run, n.Text, n.Metadata, now)
}
