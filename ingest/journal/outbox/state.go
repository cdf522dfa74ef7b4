package outbox

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// late are the kinds that come after all others of a thread, each when it is due: they may wait, and delay no answer.
const late = `('unsign', 'restate')`

// StateChanged notes that the state of a run has changed that people see in one post of its own, the state post. If the
// run has none, and begins is set, the thread gets it, unless a schedule asked: no person waits for that answer, which may be
// silence. A post that was given up stays as it is.
//
// The text and the card of the row are those of its last call. The worker writes the next ones when it begins a call; see BeginSend.
func StateChanged(tx *storage.Txn, run string, now int64, begins bool) {
	const change = `UPDATE deliveries SET changes = changes + 1, due_at = CASE WHEN state IN ('held', 'sent') AND due_at < $2 THEN $2 ELSE due_at END,
		state = CASE WHEN state IN ('held', 'sent') THEN 'pending' ELSE state END
		WHERE run = $1 AND kind IN ('state', 'restate') AND state IN ('held', 'pending', 'sending', 'sent')`
	if tx.Do(change, run, now); !begins {
		return
	}
	tx.Do(insertDelivery+` SELECT id, $1, -1, $3, workspace, '', '', '', $2, 'state', 0, 0, '', '', '', '', 0, 'pending', 0, $2
		FROM threads WHERE run_id = $1 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE run = $1 AND kind IN ('state', 'restate'))
			AND NOT EXISTS (SELECT 1 FROM messages WHERE run = $1 AND reason = 'schedule')`, run, now, Key(run+"/state", 0))
}

// States reports whether the delivery is a state post.
func (d *Delivery) States() bool { return d.Kind == KindState || d.Kind == KindRestate }

// Frozen reports whether the text and the card of a state post stay for the next call: an earlier call may have posted them, and
// they never change under their key.
func (d *Delivery) Frozen() bool { return d.Kind == KindState && d.Attempts > 0 }

// state stores the address, the text and the card of a state post whose call begins. A change since the delivery was read
// remains.
func (d *Delivery) state(tx *storage.Txn) {
	if !d.States() || d.Frozen() {
		return
	}
	tx.Do(`UPDATE deliveries SET channel = $2, place = $3, payload = $4, changes = changes - $5, card = $6 WHERE id = $1`,
		d.ID, d.Post.Channel, d.Post.Place, d.Post.Text, d.Changes, tx.Pack(d.Post.Card, d.Post.Card == nil))
}

// SentState ends a call of a state post: the platform has it under this id. The post is due again at a time if its state has changed since the
// call began, and else not before that time when it changes. No claim guards that, as in Sent.
func (o *Outbox) SentState(ctx context.Context, d *Delivery, platformID string, next time.Time) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		tx.Do(`UPDATE deliveries SET kind = 'restate', platform_id = $2, error = '', due_at = $3,
			state = CASE WHEN changes > 0 THEN 'pending' ELSE 'sent' END WHERE id = $1 AND `+open, d.ID, platformID, storage.Millis(next))
	})
}

// KeepState leaves a state post as it is until its state changes: the post shows the state already, or there is nothing to post yet.
func (o *Outbox) KeepState(ctx context.Context, d *Delivery) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		update(tx, d, `changes = changes - $3, state = CASE WHEN changes > $3 THEN 'pending' WHEN platform_id IS NULL THEN 'held' ELSE 'sent' END`, d.Changes)
	})
}

// EndState gives up a state post that people do not see, such as after a change of the configuration.
func (o *Outbox) EndState(ctx context.Context, d *Delivery) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) { update(tx, d, `state = 'dropped', payload = '', card = ''`) })
}
