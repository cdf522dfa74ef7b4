package journal

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// deliver stores the reply's posts. They take the places of what was shown of it
// while it grew; what is left of that, and the sign of work, are taken away.
func (e *ending) deliver(posts []Post, send *Send) error {
	shown, err := e.shown()
	if err != nil {
		return err
	}
	for i, post := range posts {
		d := e.delivery(DeliveryPost, post)
		d.Key = DeliveryKey(e.run.ID, i)
		switch {
		case post.Alone:
			d.Kind = DeliveryTell
		case post.File == nil && len(shown) > 0:
			d.Replaces, shown = &shown[0], shown[1:]
		}
		if i == 0 && send != nil && e.deliverAt == 0 {
			d.beginAtOnce(*send, e.blocked, e.now)
		}
		if err := d.insert(e.tx, int64(i)); err != nil {
			return err
		}
		if d.State == DeliverySending {
			e.begun = d
		}
	}
	if len(posts) > 0 && e.deliverAt == 0 {
		e.deliverAt = e.now
	}
	return e.clear(shown)
}

// shown are the run's previews that may stand on the platform.
func (e *ending) shown() ([]Preview, error) {
	if e.run.Previews == 0 {
		return nil, nil
	}
	return previews(e.tx, e.run.Row)
}

// clearAll takes away what a run has shown that ends without a reply.
func (e *ending) clearAll() error {
	shown, err := e.shown()
	if err != nil {
		return err
	}
	return e.clear(shown)
}

// clear takes previews and the run's sign of work away.
func (e *ending) clear(shown []Preview) error {
	for i := range shown {
		d := e.delivery(DeliveryRemove, Post{Channel: e.run.Channel})
		d.Key, d.Replaces = DeliveryKey(e.run.ID+"/remove", int(shown[i].ID)), &shown[i]
		if err := e.further(d); err != nil {
			return err
		}
	}
	if e.run.Sign == "" {
		return nil
	}
	d := e.delivery(DeliveryUnsign, Post{Channel: e.run.Channel, Text: e.run.Sign})
	d.Key, d.SendBy = DeliveryKey(e.run.ID+"/unsign", int(e.run.Claims)), e.run.SignBy
	if err := e.further(d); err != nil {
		return err
	}
	return e.tx.Later(nil, nil, `UPDATE runs SET sign = '' WHERE row = ?`, e.run.Row)
}

// delivery is a delivery of the run that is about to be stored.
func (e *ending) delivery(kind DeliveryKind, post Post) *Delivery {
	return &Delivery{
		Thread: e.run.Thread, ThreadKey: e.run.ThreadKey, Workspace: e.run.Workspace, Platform: e.run.Platform, Run: e.run.Row,
		Kind: kind, Post: post, State: DeliveryPending, CreatedAt: instant(e.now),
	}
}

// further stores a delivery that is no part of the reply.
func (e *ending) further(d *Delivery) error {
	if e.deliverAt == 0 {
		e.deliverAt = e.now
	}
	return d.insert(e.tx, noPart)
}

// noPart is the part of deliveries that carry none of a reply.
const noPart = -1

// insert stores the delivery. Its id is known once the transaction has ended.
func (d *Delivery) insert(tx Tx, part int64) error {
	file, err := pack(d.Post.File, d.Post.File == nil)
	if err != nil {
		return err
	}
	var replaces, stream int64
	if d.Replaces != nil {
		replaces = d.Replaces.ID
	}
	if d.Stream {
		stream = 1
	}
	return tx.Later(nil, []any{&d.ID}, `INSERT INTO deliveries (thread, run, part, key, workspace, channel, root, payload, state, attempts,
			not_before, send_by, created_at, kind, replaces, stream, asker, file)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		d.Thread, d.Run, part, d.Key, d.Workspace, d.Post.Channel, d.Post.Root, d.Post.Text, string(d.State), d.Attempts,
		millis(d.NotBefore), millis(d.SendBy), millis(d.CreatedAt), string(d.Kind), replaces, stream, d.Post.Asker, file)
}

// DeliveryKey is the idempotency key of one part of a run's reply: 25 of
// [a-z2-7], since Discord's nonce holds no more.
func DeliveryKey(runID string, part int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", runID, part))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:25]
}
