package journal

import (
	"github.com/google/uuid"

	"parley/ingest/event"
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

// SystemSender is the sender_id of notices.
const SystemSender = "system:parley"

// NewNotice returns a notice with metadata in the contract's terms, and further keys of it.
func NewNotice(platform event.Platform, text string, extra ...event.Extra) Notice {
	m := event.Metadata{
		Source: string(platform), SenderID: SystemSender, SenderDisplayName: "Parley", SenderType: event.Bot, Extra: extra,
	}
	return Notice{Text: text, Metadata: m.Bytes()}
}

// addNotice stores a notice with a thread_seq. Its thread must be locked.
func addNotice(tx *storage.Txn, thread, seq int64, workspace string, run any, n Notice, now int64) {
	tx.Do(`INSERT INTO messages (id, thread, seq, workspace, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at, run)
		VALUES ($1, $2, $3, $4, $5, 'system', 'none', $6, $7, $8, 'live', $9, $9, $10)`,
		uuid.Must(uuid.NewV7()).String(), thread, seq, workspace, SystemSender, n.Text, storage.Bytes(n.Metadata), int64(ContractVersion), now, run)
}

// tell stores the notice of the run's end, and its deliveries. The run's thread must be
// locked. A notice without a text is none.
func (e *endRunTx) tell(n Notice) {
	e.deliver(n.Posts, nil)
	if n.Text == "" {
		return
	}
	addNotice(e.Txn, e.run.Thread, e.nextSeq, e.run.Workspace, e.run.ID, n, e.now)
	e.added = 1
}
