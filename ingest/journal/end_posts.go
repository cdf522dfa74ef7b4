package journal

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/storage"
)

// deliver stores the posts of the run's end. They take over the posts of its live
// previews; deliveries remove the other previews and the sign of work.
func (e *endRunTx) deliver(posts []Post, send *Send) {
	var shown []Delivery
	if e.run.Previews > 0 {
		shown = previews(e.Txn, e.run.ID)
	}
	for i, post := range posts {
		d := e.run.delivery(DeliveryPost, post, storage.Instant(e.now))
		d.Key = DeliveryKey(e.run.ID, i)
		if !post.Alone && post.File == nil && post.Buttons == nil && len(shown) > 0 {
			d.Replaces, shown = &shown[0], shown[1:]
		}
		if i == 0 && send != nil && send.Every == 0 {
			e.Begun = d
			d.SendBy = storage.Instant(e.now).Add(send.Timeout)
		}
		addDelivery(e.Txn, d, int64(i), d == e.Begun)
	}
	for i := range shown {
		d := e.run.delivery(DeliveryRemove, shown[i].Post, storage.Instant(e.now))
		d.Key, d.Replaces = DeliveryKey(e.run.ID+"/remove", int(shown[i].ID)), &shown[i]
		addDelivery(e.Txn, d, noPart, false)
	}
	if e.run.Sign != "" {
		e.Do(`UPDATE deliveries SET state = 'pending', due_at = $2 WHERE run = $1 AND state = 'held'`, e.run.ID, e.now)
	}
}

// delivery returns a delivery of the run, not stored yet. A post for the asker alone is told.
func (run *Run) delivery(kind DeliveryKind, post Post, now time.Time) *Delivery {
	switch {
	case post.Alone:
		kind = DeliveryTell
	case post.Clears:
		kind = DeliveryUnsign
	}
	notBefore := now
	if len(run.Messages) > 0 {
		notBefore = slices.MaxFunc(run.Messages, func(a, b Message) int { return a.SentAt.Compare(b.SentAt) }).SentAt
	}
	return &Delivery{
		Thread: run.Thread, ThreadKey: run.ThreadKey, Workspace: run.Workspace, Channel: run.Channel, Parent: run.Parent, Run: run.ID,
		Kind: kind, Post: post, State: DeliveryPending, CreatedAt: now, NotBefore: notBefore,
	}
}

// noPart is the part of deliveries that carry no part of a reply.
const noPart = -1

// addDelivery stores a delivery. A delivery that may begin at once is marked as sending
// if no other one of its thread is open and neither its channel nor its workspace must
// wait. Its id and state are known once the transaction has ended.
func addDelivery(tx *storage.Txn, d *Delivery, part int64, begin bool) {
	due, replaces := d.CreatedAt, int64(0)
	if d.State == DeliverySending {
		due = d.SendBy
	}
	if d.Replaces != nil {
		replaces = d.Replaces.ID
	}
	query, dest := insertDelivery+` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) RETURNING id`, []any{&d.ID}
	args := []any{d.Thread, d.Run, part, d.Key, d.Workspace, d.Post.Channel, d.Post.Place, d.Post.Text, storage.Millis(d.CreatedAt), string(d.Kind), replaces,
		storage.Number(d.Stream), d.Post.Asker, tx.Pack(d.Post.File, d.Post.File == nil), tx.Pack(d.Post.Buttons, d.Post.Buttons == nil), storage.Millis(d.SendBy), string(d.State), d.Attempts, storage.Millis(due)}
	if begin {
		query, dest = beginDelivery, []any{&d.ID, (*string)(&d.State), &d.Attempts}
		args = args[:16]
	}
	tx.Later(nil, dest, query, args...)
}

const insertDelivery = `INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload,
	created_at, kind, replaces, stream, asker, file, buttons, send_by, state, attempts, due_at)`

// beginDelivery marks the delivery as sending if no delivery comes before it and neither
// its channel nor its workspace must wait. Otherwise the delivery is pending, and due at once.
const beginDelivery = insertDelivery + ` SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, CASE WHEN free = 1 THEN CAST($16 AS BIGINT) ELSE 0 END,
	CASE WHEN free = 1 THEN 'sending' ELSE 'pending' END, free, CASE WHEN free = 1 THEN CAST($16 AS BIGINT) ELSE $9 END
	FROM (SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM deliveries WHERE thread = $1 AND ` + open + ` AND kind <> 'unsign')
		AND NOT EXISTS (SELECT 1 FROM paces WHERE workspace = $5 AND channel IN ($6, '') AND blocked_until > $9) THEN 1 ELSE 0 END AS free) AS f
	WHERE true RETURNING id, state, attempts`

// DeliveryKey returns the idempotency key of one part of a run's reply: 25 of [a-z2-7],
// because Discord's nonce holds no more. It begins with the time of the run's UUIDv7, if the
// id is one, so that new keys are neighbours in the index; 77 bits of a hash follow.
func DeliveryKey(runID string, part int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", runID, part))
	var key [16]byte
	copy(key[copy(key[:], madeAt(runID)):], sum[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(key[:]))[:25]
}

// madeAt returns the 48 bits of a UUIDv7 that hold its time; nil if the id does not begin
// with one.
func madeAt(id string) []byte {
	made, err := uuid.Parse(id[:min(len(id), len(uuid.Nil.String()))])
	if err != nil || made.Version() != 7 {
		return nil
	}
	return made[:6]
}
