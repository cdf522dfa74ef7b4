package journal

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// previews reads a run's previews that may be on the platform, in their order: their id, deadline
// and address, and the platform's id of their post.
func previews(tx *storage.Txn, run string) []Delivery {
	return storage.Rows(tx, func(d *Delivery) []any { return []any{&d.ID, &d.PlatformID, &d.SendBy, &d.Post.Channel, &d.Post.Place} },
		`SELECT id, platform_id, send_by, channel, place FROM deliveries
		WHERE run = $1 AND kind = 'preview' AND state IN ('sending', 'sent', 'unknown') ORDER BY id`, run)
}

// BeginPreview marks a preview of an unfinished run as sending, if no delivery of its thread is
// open and its channel's pace has room for it now. Otherwise it returns nil and the time of the
// next attempt. at is the number of the run's previews before this one. If an earlier attempt of
// the run, or a call with an unclear outcome, has made it, BeginPreview returns that one with its
// PlatformID: the text of its post is unknown. BeginPreview fails with ErrFenced if the run is no
// longer the thread's.
func (j *Journal) BeginPreview(ctx context.Context, claim *places.Claim, run *Run, at int64, post Post, stream bool, send Send) (*Delivery, time.Time, error) {
	type result struct {
		begun *Delivery
		again time.Time
	}
	made, err := storage.Write(ctx, j.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) result {
		now := j.db.Now()
		switch earlier := earlierPreview(tx, run, at); {
		case earlier != nil && earlier.PlatformID == "":
			return result{again: now.Add(unclearFor)}
		case earlier != nil:
			earlier.Workspace, earlier.Post.Asker = run.Workspace, post.Asker
			return result{begun: earlier}
		}
		if again := admitPreview(tx, claim, run, post.Channel, storage.Millis(now), send); !again.IsZero() {
			return result{again: again}
		}
		d := run.delivery(DeliveryPreview, post, now)
		// run.Previews does not count a preview that a call with an unclear outcome has made.
		d.Key, d.Stream = DeliveryKey(uuid.Must(uuid.NewV7()).String(), noPart), stream
		d.State, d.Attempts, d.SendBy = DeliverySending, 1, now.Add(send.Timeout)
		addDelivery(tx, d, noPart, false) // due at SendBy, unless its result is recorded before
		return result{begun: d}
	})
	if made.begun != nil && made.begun.PlatformID == "" {
		run.Previews++
	}
	return made.begun, made.again, err
}

// earlierPreview returns the run's preview with a number of previews before it; nil for none.
func earlierPreview(tx *storage.Txn, run *Run, at int64) *Delivery {
	if run.Previews > at {
		if list := previews(tx, run.ID); int64(len(list)) > at {
			return &list[at]
		}
	}
	return nil
}

// busyFor is how long a preview waits for open deliveries of its thread.
const busyFor = 250 * time.Millisecond

// unclearFor is how long a preview waits while the outbox asks the platform whether an earlier
// call for it took effect.
const unclearFor = 2 * time.Second

// admitPreview returns the time of the next attempt; zero if the preview may be shown
// now.
func admitPreview(tx *storage.Txn, claim *places.Claim, run *Run, channel string, now int64, send Send) time.Time {
	lockRun(tx, claim, run, []any{new(int64)}, `id`)
	if tx.Has(`SELECT 1 FROM deliveries WHERE thread = $1 AND kind <> 'unsign' AND `+open+` LIMIT 1`, run.Thread) {
		return storage.Instant(now).Add(busyFor)
	}
	return spare(tx, run.Workspace, channel, now, send.Every)
}

// ChangePreview marks the post of a preview as changing, if its channel's pace has room
// for that now. Otherwise it returns the time of the next attempt.
func (j *Journal) ChangePreview(ctx context.Context, claim *places.Claim, run *Run, d *Delivery, send Send) (Slot, error) {
	return storage.Write(ctx, j.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) Slot {
		now := j.db.Now()
		if again := admitPreview(tx, claim, run, d.Post.Channel, storage.Millis(now), send); !again.IsZero() {
			return Slot{Wait: again}
		}
		sendBy := now.Add(send.Timeout)
		tx.Must(storage.ErrFenced, `UPDATE deliveries SET send_by = $2 WHERE id = $1 AND state = 'sent'`, d.ID, storage.Millis(sendBy))
		return Slot{SendBy: sendBy}
	})
}

// MarkSigned notes, before the call that shows it, that a message has the sign of work
// for the duration of the run: a held delivery will remove the sign when the run ends.
// The text of sign is the external id of the message.
func (j *Journal) MarkSigned(ctx context.Context, claim *places.Claim, run *Run, sign Post, timeout time.Duration) error {
	err := j.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		lockRun(tx, claim, run, []any{new(int64)}, `id`)
		now := j.db.Now()
		tx.Do(insertDelivery+` VALUES ($1, $2, -1, $3, $4, $5, $6, $7, $8, 'unsign', 0, 0, '', '', '', $9, 'held', 0, $8)
			ON CONFLICT (key) DO UPDATE SET send_by = excluded.send_by, place = excluded.place`,
			run.Thread, run.ID, DeliveryKey(run.ID+"/unsign/"+sign.Text, 0), run.Workspace, sign.Channel, sign.Place, sign.Text,
			storage.Millis(now), storage.Millis(now.Add(timeout)))
	})
	if err == nil || errors.Is(err, storage.ErrUnclear) { // the run's end must not leave the row
		run.Sign = sign.Text
	}
	return err
}

// Repost gives up the previews whose posts the platform does not let us change. The
// delivery and the rest of its reply become new posts, and further deliveries remove the
// previews after them.
func (j *Journal) Repost(ctx context.Context, d *Delivery, cause string) error {
	type removal struct {
		Delivery
		preview int64
	}
	return j.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		update(tx, d, `state = 'pending'`)
		const follow = `run = $1 AND kind = 'post' AND replaces <> 0 AND ` + open
		for _, r := range storage.Rows(tx, func(r *removal) []any { return []any{&r.Key, &r.Post.Channel, &r.Post.Place, &r.preview, &r.CreatedAt} },
			`SELECT key, channel, place, replaces, created_at FROM deliveries WHERE `+follow+` ORDER BY id`, d.Run) {
			r.Thread, r.Run, r.Workspace, r.Kind, r.State = d.Thread, d.Run, d.Workspace, DeliveryRemove, DeliveryPending
			r.Key, r.Replaces = DeliveryKey(r.Key+"/remove", int(r.preview)), &Delivery{ID: r.preview}
			addDelivery(tx, &r.Delivery, noPart, false)
		}
		tx.Do(`UPDATE deliveries SET replaces = 0, due_at = $2, error = $3 WHERE `+follow, d.Run, storage.Millis(j.db.Now()), cause)
	})
}
