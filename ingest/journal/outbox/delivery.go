package outbox

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// CloseButtons stores a delivery that takes the buttons from the post of a run's question.
func CloseButtons(tx *storage.Txn, question string, now int64) {
	tx.Do(insertDelivery+` SELECT thread, run, -1, $2, workspace, channel, place, payload, $3, 'close', id, 0, '', '', '', 0, 'pending', 0, $3
		FROM deliveries WHERE run = $1 AND buttons <> '' AND NOT EXISTS (SELECT 1 FROM deliveries WHERE key = $2)`, question, Key(question+"/close", 0), now)
}

// ReleaseUnsign lets the delivery go that removes the sign of work of a run.
func ReleaseUnsign(tx *storage.Txn, run string, now int64) {
	tx.Do(`UPDATE deliveries SET state = 'pending', due_at = $2 WHERE run = $1 AND state = 'held'`, run, now)
}

// HoldUnsign stores the delivery that will remove the sign of work of a run.
func HoldUnsign(tx *storage.Txn, thread int64, run, workspace string, sign Post, now time.Time, timeout time.Duration) {
	tx.Do(insertDelivery+` VALUES ($1, $2, -1, $3, $4, $5, $6, $7, $8, 'unsign', 0, 0, '', '', '', $9, 'held', 0, $8)
		ON CONFLICT (key) DO UPDATE SET send_by = excluded.send_by, place = excluded.place`,
		thread, run, Key(run+"/unsign/"+sign.Text, 0), workspace, sign.Channel, sign.Place, sign.Text,
		storage.Millis(now), storage.Millis(now.Add(timeout)))
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

// EmptyPosts empties the posts of a run, and makes the copies of their files due for a check. A post that
// is still to be sent remains: its payload never changes.
func EmptyPosts(tx *storage.Txn, run string) {
	for _, column := range storage.Rows(tx, storage.Self[string], `SELECT file FROM deliveries WHERE run = $1 AND file <> ''`, run) {
		var file File
		if tx.Fail(storage.Unpack(column, &file)); file.Path != "" {
			files.CheckCopy(tx, file.Bucket, file.Path, time.Time{})
		}
	}
	tx.Do(`UPDATE deliveries SET payload = '', file = '', buttons = '' WHERE run = $1 AND state NOT IN ('pending', 'sending')`, run)
}

// IsOpen reports whether a delivery of a thread is open that is not the removal of a sign of work.
func IsOpen(tx *storage.Txn, thread int64) bool {
	return tx.Has(`SELECT 1 FROM deliveries WHERE thread = $1 AND kind <> 'unsign' AND `+open+` LIMIT 1`, thread)
}

// NoPart is the part of deliveries that carry no part of a reply.
const NoPart = -1

// Add stores a delivery. A delivery that may begin at once is marked as sending
// if no other one of its thread is open and neither its channel nor its workspace must
// wait. Its id and state are known once the transaction has ended.
func Add(tx *storage.Txn, d *Delivery, part int64, begin bool) {
	due, replaces := d.CreatedAt, int64(0)
	if d.State == Sending {
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

// Key returns the idempotency key of one part of a run's reply: 25 of [a-z2-7],
// because Discord's nonce holds no more. It begins with the time of the run's UUIDv7, if the
// id is one, so that new keys are neighbours in the index; 77 bits of a hash follow.
func Key(runID string, part int) string {
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

// Post is one part of a reply in the platform's form.
type Post struct {
	Channel, Place string // its address; only the adapter reads Place
	Text           string
	// Asker is the platform's id of the user whom the post answers; empty for none.
	Asker string
	// Alone says that only the asker sees it.
	Alone bool
	// Clears says that it removes the sign of work from the message that Text names instead.
	Clears bool
	// File, if it is not nil, is posted beside the text.
	File *File
	// Buttons are shown below the text.
	Buttons []PostButton
}

// PostButton is a button of a post; see Button.
type PostButton struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// File is a file of a reply: a text, or the place of a stored copy.
type File struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Text     string `json:"text,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Path     string `json:"path,omitempty"`
}

// IsPost reports whether an external id is the id of one of our posts.
func IsPost(tx *storage.Txn, workspace, externalID string) bool {
	return tx.Has(`SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`, workspace, externalID)
}

// ErrDelivered means that the delivery has ended or was begun by another node. The claim may still
// hold.
var ErrDelivered = fmt.Errorf("the delivery has ended or another node has it: %w", storage.ErrFenced)
