package journal

import (
	"context"
	"errors"
	"time"
)

// Preview is a post of ours that shows, or has shown, a reply while it grew. Its
// first text is journalled like any delivery's; the later ones are not.
type Preview struct {
	ID    int64 // of the delivery
	State DeliveryState
	// PlatformID is the platform's id of the post; empty where there is none.
	PlatformID string
	// Stream says that it was begun as a stream.
	Stream bool
	// SendBy ends the call that was last begun for it.
	SendBy time.Time
}

// previewRow is where a preview's columns are scanned to.
type previewRow struct {
	p      Preview
	state  string
	sendBy int64
}

func (r *previewRow) dest() []any {
	return []any{&r.p.ID, &r.state, &r.p.PlatformID, &r.p.Stream, &r.sendBy}
}

// preview is what was scanned; nil for none.
func (r *previewRow) preview() *Preview {
	if r.p.ID == 0 {
		return nil
	}
	p := r.p
	p.State, p.SendBy = DeliveryState(r.state), instant(r.sendBy)
	return &p
}

// shown is the condition that a delivery is a preview that may stand on its platform.
const shown = `kind = 'preview' AND state IN ('sending', 'sent', 'unknown')`

// previews reads a run's previews that may stand on the platform, in their order.
func previews(tx Tx, run int64) (list []Preview, err error) {
	err = tx.Rows(func(scan func(...any) error) error {
		var row previewRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		list = append(list, *row.preview())
		return nil
	}, `SELECT id, state, coalesce(platform_id, ''), stream, send_by FROM deliveries WHERE run = ? AND `+shown+` ORDER BY id`, run)
	return list, err
}

// Previews returns the run's previews that may stand on the platform, in their order:
// those of earlier attempts, too.
func (j *Journal) Previews(ctx context.Context, run *Run) (list []Preview, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		list, err = nil, nil
		list, err = previews(tx, run.Row)
		return err
	})
	return list, err
}

// BeginPreview marks a further preview of a run that is going on as being sent, if
// nothing of its thread is to be delivered before it and its channel's pace has room
// for it now. Else it returns nil and when to come again. It also returns nil, with
// ErrFenced, where the run is not the thread's any more.
func (j *Journal) BeginPreview(ctx context.Context, lease *Lease, run *Run, post Post, stream bool, send Send) (*Delivery, time.Time, error) {
	var again time.Time
	d, err := write(about(ctx, lease.Key), j, func(tx Tx) (*Delivery, error) {
		p := previewing{tx: tx, now: millis(j.now()), lease: lease, run: run, send: send}
		var err error
		again, err = p.admit(post.Channel)
		if err != nil || !again.IsZero() {
			return nil, err
		}
		return p.begin(post, stream)
	})
	if d != nil {
		run.Previews++
	}
	return d, again, err
}

// previewing is one write about a preview inside its transaction.
type previewing struct {
	tx    Tx
	now   int64
	lease *Lease
	run   *Run
	send  Send
}

// busyFor is how long a preview waits for what is to be delivered before it.
const busyFor = 250 * time.Millisecond

// admit says when to come again; zero where the preview may be shown now.
func (p *previewing) admit(channel string) (time.Time, error) {
	var current, deliverAt int64
	if err := lockNow(p.tx, p.lease, []any{&current, &deliverAt}, `run, coalesce(deliver_at, 0)`); err != nil {
		return time.Time{}, err
	}
	switch {
	case current != p.run.Row:
		return time.Time{}, ErrFenced
	case deliverAt != 0:
		return instant(p.now).Add(busyFor), nil
	}
	return spare(p.tx, p.run.Workspace, channel, p.now, p.send.Every)
}

func (p *previewing) begin(post Post, stream bool) (*Delivery, error) {
	d := &Delivery{
		Thread: p.run.Thread, ThreadKey: p.run.ThreadKey, Workspace: p.run.Workspace, Platform: p.run.Platform, Run: p.run.Row,
		Key: DeliveryKey(p.run.ID, -1-int(p.run.Previews)), Kind: DeliveryPreview, Post: post, Stream: stream,
		State: DeliverySending, Attempts: 1, SendBy: instant(p.now).Add(p.send.Timeout), CreatedAt: instant(p.now),
	}
	if err := d.insert(p.tx, noPart); err != nil {
		return nil, err
	}
	if err := p.tx.Later(nil, nil, `UPDATE runs SET previews = previews + 1 WHERE row = ?`, p.run.Row); err != nil {
		return nil, err
	}
	return d, deliverAt(p.tx, p.lease, millis(d.SendBy)) // if nobody says before then what became of it
}

// ChangePreview marks a preview's post as being changed, if its channel's pace has
// room for that now. Else it returns when to come again.
func (j *Journal) ChangePreview(ctx context.Context, lease *Lease, run *Run, d *Delivery, send Send) (Slot, error) {
	return write(about(ctx, lease.Key), j, func(tx Tx) (Slot, error) {
		p := previewing{tx: tx, now: millis(j.now()), lease: lease, run: run, send: send}
		again, err := p.admit(d.Post.Channel)
		if err != nil || !again.IsZero() {
			return Slot{Wait: again}, err
		}
		sendBy := instant(p.now).Add(send.Timeout)
		return Slot{SendBy: sendBy}, tx.Later(ErrFenced, nil, `UPDATE deliveries SET send_by = ? WHERE id = ? AND state = 'sent'`, millis(sendBy), d.ID)
	})
}

// HoldUp makes a channel wait until a time, as its platform has asked.
func (j *Journal) HoldUp(ctx context.Context, workspace, channel string, until time.Time) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		return block(tx, &Delivery{Workspace: workspace, Post: Post{Channel: channel}}, millis(until))
	})
}

// MarkSigned notes, before the call that puts it there, that a message is to have the
// sign of work for as long as the run goes on. The run's end takes it away.
func (j *Journal) MarkSigned(ctx context.Context, lease *Lease, run *Run, message string, timeout time.Duration) error {
	var by time.Time
	err := j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		var current int64
		if err := lockNow(tx, lease, []any{&current}, `run`); err != nil {
			return err
		}
		if current != run.Row {
			return ErrFenced
		}
		by = j.now().Add(timeout)
		return tx.Later(nil, nil, `UPDATE runs SET sign = ?, sign_by = ? WHERE row = ?`, message, millis(by), run.Row)
	})
	if err == nil {
		run.Sign, run.SignBy = message, by
	}
	return err
}

// Known returns those of some platform ids that deliveries of the workspace have.
func (j *Journal) Known(ctx context.Context, workspace string, platformIDs []string) (map[string]bool, error) {
	var known map[string]bool
	err := j.engine.Read(ctx, func(tx Tx) error {
		known = map[string]bool{}
		for _, id := range platformIDs {
			var one int64
			found, err := tx.Row([]any{&one}, `SELECT 1 FROM deliveries WHERE workspace = ? AND platform_id = ?`, workspace, id)
			if err != nil {
				return err
			}
			known[id] = found
		}
		return nil
	})
	return known, err
}

// Repost gives up the previews whose posts the platform does not let us change: the
// delivery, and what follows it of its reply, is posted anew, and the previews are
// taken away afterwards.
func (j *Journal) Repost(ctx context.Context, lease *Lease, d *Delivery, cause string) error {
	if d.Replaces == nil {
		return errors.New("the delivery replaces nothing")
	}
	return j.engine.Write(about(ctx, lease.Key), func(tx Tx) error {
		if err := checkFence(tx, lease); err != nil {
			return err
		}
		const follow = `run = ? AND id >= ? AND kind = 'post' AND state IN ('pending', 'sending') AND replaces <> 0`
		var posts []Delivery
		if err := tx.Rows(func(scan func(...any) error) error {
			o := Delivery{Thread: d.Thread, Run: d.Run, Workspace: d.Workspace, Kind: DeliveryRemove, State: DeliveryPending, Replaces: &Preview{}}
			var at int64
			err := scan(&o.Key, &o.Post.Channel, &o.Post.Root, &o.Replaces.ID, &at)
			o.CreatedAt = instant(at)
			posts = append(posts, o)
			return err
		}, `SELECT key, channel, root, replaces, created_at FROM deliveries WHERE `+follow+` ORDER BY id`, d.Run, d.ID); err != nil {
			return err
		}
		for _, o := range posts {
			o.Key = DeliveryKey(o.Key+"/remove", int(o.Replaces.ID))
			if err := o.insert(tx, noPart); err != nil {
				return err
			}
		}
		if err := tx.Later(nil, nil, `UPDATE deliveries SET replaces = 0, state = 'pending', not_before = 0, error = ? WHERE `+follow, cause, d.Run, d.ID); err != nil {
			return err
		}
		return nextDelivery(tx, lease, millis(j.now()), new(int64))
	})
}

// takeOver gives a delivery the platform's id that its preview has had.
func (d *Delivery) takeOver(tx Tx) error {
	if d.Replaces == nil || d.Kind != DeliveryPost {
		return nil
	}
	return tx.Later(nil, nil, `UPDATE deliveries SET platform_id = NULL WHERE id = ?`, d.Replaces.ID)
}

// giveUpRest ends what follows a failed part of a reply.
func (d *Delivery) giveUpRest(tx Tx) error {
	if err := tx.Later(nil, nil, `UPDATE deliveries SET kind = 'remove' WHERE run = ? AND kind = 'post' AND state = 'pending' AND replaces <> 0`, d.Run); err != nil {
		return err
	}
	return tx.Later(nil, nil, `UPDATE deliveries SET state = 'failed', error = 'an earlier part of this reply failed'
		WHERE run = ? AND kind = 'post' AND state = 'pending'`, d.Run)
}

// paced says whether the delivery has a place in its channel's pace: nobody is shown
// anything by the others.
func (d *Delivery) paced() bool { return d.Kind != DeliveryRemove && d.Kind != DeliveryUnsign }
