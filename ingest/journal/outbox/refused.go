package outbox

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// takesOver reports whether the delivery's text goes into the post of a preview, if there is one.
func (d *Delivery) takesOver() bool {
	return d.Kind == KindPost && d.Replaces != nil && d.Replaces.Kind == KindPreview
}

// IsPiece reports whether the delivery has a piece of a post that the platform has refused.
func (d *Delivery) IsPiece() bool {
	return d.Kind == KindPost && d.Part >= 0 && d.Replaces != nil && d.Replaces.Kind != KindPreview
}

// Reform replaces a post that the platform has refused by pieces, other posts with the same contents. There is at least one. They
// leave where the post would have left. The first one is the delivery itself under a new key: a text never changes under its key.
func (o *Outbox) Reform(ctx context.Context, d *Delivery, pieces []Post, cause string) error {
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		now := o.db.Now()
		first := pieces[0]
		update(tx, d, `payload = $3, key = $4, file = '', buttons = $5, replaces = id, state = 'pending', due_at = $6, reserved_at = 0, error = $7`,
			first.Text, Key(d.Key+"/piece", 0), tx.Pack(first.Buttons, first.Buttons == nil), storage.Millis(now), cause)
		tx.Do(`UPDATE deliveries SET part = part + $3 WHERE run = $1 AND part > $2`, d.Run, d.Part, int64(len(pieces)-1))
		for i, piece := range pieces[1:] {
			Add(tx, &Delivery{
				Thread: d.Thread, ThreadKey: d.ThreadKey, Workspace: d.Workspace, Run: d.Run, Kind: KindPost, Key: Key(d.Key+"/piece", i+1),
				Post: piece, State: Pending, CreatedAt: now, Replaces: d,
			}, d.Part+int64(i)+1, false)
		}
	})
}

// Refusal is the notice that a platform has refused a post.
type Refusal struct {
	Post Post
	// Aside is the thread of posts to the asker, with its Key, ID and Workspace, which is made if there is none. Without a Key, the
	// notice comes in the thread of the post.
	Aside    threads.Thread
	Platform event.Platform
}

// Refused ends a delivery that the platform has refused, as GiveUp does, and stores the notice of that, which may be nil. The notice
// of a post is stored once, however often an operator sends the post again. A refused notice needs no operator: it is dropped. Refused returns
// the thread of the notice.
func (o *Outbox) Refused(ctx context.Context, d *Delivery, cause string, notice *Refusal) (thread int64, err error) {
	err = o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		state := Failed
		if d.Tells() {
			state = Dropped
		}
		d.giveUp(tx, state, cause)
		key := Key(d.Key+"/refused", 0)
		if notice == nil || tx.Has(`SELECT 1 FROM deliveries WHERE key = $1`, key) {
			return
		}
		told := &Delivery{
			Thread: d.Thread, ThreadKey: d.ThreadKey, Workspace: d.Workspace, Run: d.Run, Kind: KindPost, Key: key,
			Post: notice.Post, State: Pending, CreatedAt: o.db.Now(), Replaces: d,
		}
		part := int64(PartTold)
		switch {
		case notice.Aside.Key != "":
			threads.Add(tx, notice.Platform, event.PersonOf(notice.Aside.Key), notice.Aside)
			tx.Row([]any{&told.Thread}, `SELECT id FROM threads WHERE key = $1`, string(notice.Aside.Key))
			told.ThreadKey, told.Replaces, part = notice.Aside.Key, nil, PartTellsAside
		case notice.Post.Alone:
			told.Kind = KindTell
		}
		Add(tx, told, part, false)
		thread = told.Thread
	})
	return thread, err
}

// AskedBy returns the external id of the newest message that a run answers, and whether a channel is a direct conversation.
func (o *Outbox) AskedBy(ctx context.Context, run, workspace, channel string) (id string, direct bool, err error) {
	_, err = o.db.Row(ctx, []any{&id, &direct}, `SELECT m.external_id, EXISTS (SELECT 1 FROM channels WHERE workspace = $2 AND id = $3 AND type = 'direct')
		FROM messages m WHERE m.run = $1 AND m.author IN ('human', 'bot') ORDER BY m.seq DESC LIMIT 1`, run, workspace, channel)
	return id, direct, err
}
