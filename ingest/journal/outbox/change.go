package outbox

import (
	"context"
	"time"

	"parley/ingest/card"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// CloseButtons stores a delivery that takes the buttons from the post of a run's question.
func CloseButtons(tx *storage.Txn, question string, now int64) { closeButtons(tx, question, "", now) }

// closeButtons is CloseButtons with another text for the post; an empty one leaves the text.
func closeButtons(tx *storage.Txn, question, text string, now int64) {
	tx.Do(insertDelivery+` SELECT thread, run, -1, $2, workspace, channel, place, CASE WHEN $4 <> '' THEN $4 ELSE payload END, $3, 'close', id, 0, '', '', '', '', 0, 'pending', 0, $3
		FROM deliveries WHERE run = $1 AND buttons <> '' AND NOT EXISTS (SELECT 1 FROM deliveries WHERE key = $2)`, question, Key(question+"/close", 0), now, text)
}

// CloseWith stores a delivery that takes the buttons from a post and replaces its text, by the id in place of a run's. It returns the thread of the
// deliveries; 0 if there is no such post.
func (o *Outbox) CloseWith(ctx context.Context, id, text string) (thread int64, err error) {
	return storage.Write(ctx, o.db, storage.WriteOptions{}, func(tx *storage.Txn) (thread int64) {
		if !tx.Row([]any{&thread}, `SELECT thread FROM deliveries WHERE run = $1 AND buttons <> '' FOR UPDATE`, id) {
			return 0
		}
		closeButtons(tx, id, text, storage.Millis(o.db.Now()))
		return thread
	})
}

// ReleaseUnsign lets the delivery go that removes the sign of work of a run.
func ReleaseUnsign(tx *storage.Txn, run string, now int64) {
	tx.Do(`UPDATE deliveries SET state = 'pending', due_at = $2 WHERE run = $1 AND state = 'held'`, run, now)
}

// HoldUnsign stores the delivery that will remove the sign of work of a run.
func HoldUnsign(tx *storage.Txn, thread int64, run, workspace string, sign Post, now time.Time, timeout time.Duration) {
	tx.Do(insertDelivery+` VALUES ($1, $2, -1, $3, $4, $5, $6, $7, $8, 'unsign', 0, 0, '', '', '', '', $9, 'held', 0, $8)
		ON CONFLICT (key) DO UPDATE SET send_by = excluded.send_by, place = excluded.place`,
		thread, run, Key(run+"/unsign/"+sign.Text, 0), workspace, sign.Channel, sign.Place, sign.Text,
		storage.Millis(now), storage.Millis(now.Add(timeout)))
}

// AddReaction stores the delivery of a reaction, whose id is in place of a run's, and returns its state. One that has failed is
// tried again. Its thread must be locked.
func AddReaction(tx *storage.Txn, thread int64, id, workspace string, p Post, now int64) (state State) {
	key := Key(id, NoPart)
	tx.Do(insertDelivery+` VALUES ($1, $2, -1, $3, $4, $5, $6, $7, $8, 'react', 0, 0, '', '', '', '', 0, 'pending', 0, $8)
		ON CONFLICT (key) DO UPDATE SET state = 'pending', due_at = excluded.due_at, created_at = excluded.created_at, payload = excluded.payload, error = ''
			WHERE deliveries.state IN ('failed', 'dropped')`,
		thread, id, key, workspace, p.Channel, p.Place, p.Text, now)
	tx.Row([]any{(*string)(&state)}, `SELECT state FROM deliveries WHERE key = $1`, key)
	return state
}

// MarkChanging marks the post of a preview as changing until a time. The transaction fails with ErrFenced
// if it was not sent.
func MarkChanging(tx *storage.Txn, d *Delivery, until time.Time) {
	tx.Must(storage.ErrFenced, `UPDATE deliveries SET send_by = $2 WHERE id = $1 AND state = 'sent'`, d.ID, storage.Millis(until))
}

// DropButtons notes that the post of a run's question has no buttons any more. It returns false if the
// platform's id is that of no such post.
func DropButtons(tx *storage.Txn, workspace, platformID, run string) bool {
	return tx.Exec(`UPDATE deliveries SET buttons = '' WHERE workspace = $1 AND platform_id = $2 AND run = $3`, workspace, platformID, run) > 0
}

// CardButton returns a button of a card of a run's reply in a thread, by its id; nil if there is none.
func CardButton(tx *storage.Txn, thread int64, run, id string) *card.Press {
	for _, column := range storage.Rows(tx, storage.Self[string], `SELECT card FROM deliveries WHERE run = $1 AND thread = $2 AND card <> ''`, run, thread) {
		var v card.View
		if tx.Fail(storage.Unpack(column, &v)); v.Button(id) != nil {
			return v.Button(id)
		}
	}
	return nil
}

// EmptyPosts empties the posts of a run, and makes the copies of their files due for a check. A post that
// is still to be sent remains: its payload never changes.
func EmptyPosts(tx *storage.Txn, run string) {
	for _, column := range storage.Rows(tx, storage.Self[string], `SELECT file FROM deliveries WHERE run = $1 AND file <> ''`, run) {
		var file File
		if tx.Fail(storage.Unpack(column, &file)); file.Path != "" {
			files.CheckCopy(tx, file.Bucket, file.Path, time.Time{})
		}
	}
	tx.Do(`UPDATE deliveries SET payload = '', file = '', buttons = '', card = '' WHERE run = $1 AND state NOT IN ('pending', 'sending')`, run)
}

// Move moves the deliveries of a thread to another one, at an address there.
func Move(tx *storage.Txn, from, to int64, address Post) {
	tx.Do(`UPDATE deliveries SET thread = $2, channel = $3, place = $4 WHERE thread = $1`, from, to, address.Channel, address.Place)
}

// IsOpen reports whether a delivery of a thread is open that others wait for.
func IsOpen(tx *storage.Txn, thread int64) bool {
	return tx.Has(`SELECT 1 FROM deliveries WHERE thread = $1 AND kind NOT IN `+late+` AND `+open+` LIMIT 1`, thread)
}

// IsPost reports whether an external id is the id of one of our posts.
func IsPost(tx *storage.Txn, workspace, externalID string) bool {
	return tx.Has(`SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`, workspace, externalID)
}

// PostsOf returns the platform's ids of the posts of a run.
func PostsOf(tx *storage.Txn, run string) []string {
	return storage.Rows(tx, storage.Self[string], `SELECT platform_id FROM deliveries WHERE run = $1 AND platform_id IS NOT NULL`, run)
}

// Deleted returns the runs whose reply is deleted and whose posts have ended since a time with their words: they were on their way when the
// reply was deleted.
func Deleted(ctx context.Context, db *storage.DB, since time.Time) ([]string, error) {
	return storage.List(ctx, db, storage.Self[string], `SELECT DISTINCT d.run FROM deliveries d JOIN messages m ON m.run = d.run AND m.author = 'agent'
		WHERE d.state IN ('sent', 'unknown', 'failed') AND (d.payload <> '' OR d.file <> '') AND d.due_at >= $1 AND m.deleted_at > 0`, storage.Millis(since))
}
