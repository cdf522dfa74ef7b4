package journal

import "github.com/google/uuid"

// Notice is what Parley itself says about a run that ended without an answer. It is a
// message of its thread and of no transcript, and makes no reply stale.
type Notice struct {
	Text     string
	Metadata []byte // stored with the message
	Posts    []Post // show the notice on the platform; empty for none
}

// SystemSender is the sender_id of notices.
const SystemSender = "system:parley"

// tell stores the notice of the run's end, and its deliveries. The run's thread must be
// locked. A notice without a text is none.
func (e *endRunTx) tell(n Notice) {
	e.deliver(n.Posts, nil)
	if n.Text == "" {
		return
	}
	e.do(`INSERT INTO messages (id, thread, seq, workspace, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at, run)
		VALUES ($1, $2, $3, $4, $5, 'system', 'none', $6, $7, $8, 'live', $9, $9, $10)`,
		uuid.Must(uuid.NewV7()).String(), e.run.Thread, e.nextSeq, e.run.Workspace, SystemSender, n.Text, blob(n.Metadata), int64(ContractVersion), e.now, e.run.ID)
	e.added = 1
}
