package outbox

import (
	"context"

	"parley/ingest/journal/storage"
)

// Previews reads a run's previews that may be on the platform, in their order: their id, kind, deadline
// and address, and the platform's id of their post.
func Previews(tx *storage.Txn, run string) []Delivery {
	return storage.Rows(tx, func(d *Delivery) []any {
		return []any{&d.ID, (*string)(&d.Kind), &d.PlatformID, &d.SendBy, &d.Post.Channel, &d.Post.Place}
	},
		`SELECT id, kind, platform_id, send_by, channel, place FROM deliveries
		WHERE run = $1 AND kind = 'preview' AND state IN ('sending', 'sent', 'unknown') ORDER BY id`, run)
}

// Repost gives up the previews whose posts the platform does not let us change. The
// delivery and the rest of its reply become new posts, and further deliveries remove the
// previews after them.
func (o *Outbox) Repost(ctx context.Context, d *Delivery, cause string) error {
	type removal struct {
		Delivery
		preview int64
	}
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		update(tx, d, `state = 'pending'`)
		const follow = `run = $1 AND kind = 'post' AND replaces <> 0 AND ` + open
		for _, r := range storage.Rows(tx, func(r *removal) []any { return []any{&r.Key, &r.Post.Channel, &r.Post.Place, &r.preview, &r.CreatedAt} },
			`SELECT key, channel, place, replaces, created_at FROM deliveries WHERE `+follow+` ORDER BY id`, d.Run) {
			r.Thread, r.Run, r.Workspace, r.Kind, r.State = d.Thread, d.Run, d.Workspace, KindRemove, Pending
			r.Key, r.Replaces = Key(r.Key+"/remove", int(r.preview)), &Delivery{ID: r.preview}
			Add(tx, &r.Delivery, NoPart, false)
		}
		tx.Do(`UPDATE deliveries SET replaces = 0, due_at = $2, error = $3 WHERE `+follow, d.Run, storage.Millis(o.db.Now()), cause)
	})
}
