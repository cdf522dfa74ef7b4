package outbox

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Delivery is one call that puts one part of a reply on a platform.
type Delivery struct {
	ID        int64
	Thread    int64
	ThreadKey event.ThreadKey
	Workspace string
	Channel   string // of the thread
	Parent    string // of the channel; see event.Channel
	Run       string // id of the run whose reply it carries
	Part      int64  // of the reply, from 0; NoPart or another negative number if it carries none
	Key       string
	Kind      Kind
	Post      Post
	State     State
	// Attempts counts the calls that were begun. Every write about the delivery names the
	// number that its caller knows, so a node that lost the delivery changes nothing.
	Attempts int64
	// PlatformID is the platform's id of its post; empty for none.
	PlatformID string
	// Replaces is the earlier delivery whose post it takes over, removes or closes; nil for none. A piece of a post
	// that the platform has refused names the delivery of that post, which may be itself.
	// Of that one, only ID, Kind, PlatformID and SendBy are known.
	Replaces *Delivery
	// Stream means that a preview was begun as a stream.
	Stream bool
	// SendBy is the deadline of the last call.
	SendBy time.Time
	// Changes counts the changes of a state post since its last call began.
	Changes int64
	// DueAt is the time at which a worker must look at it next.
	DueAt     time.Time
	CreatedAt time.Time
	// NotBefore is a time by the platform's clock before which its post cannot exist: that of the
	// newest message that its run answers; CreatedAt if there is none.
	NotBefore time.Time
	// AskedAt is when the oldest message that its run answers was stored; zero if there is none.
	AskedAt time.Time
}

// Kind is the action of a delivery.
type Kind string

// The kinds of deliveries.
const (
	KindPost    Kind = "post"    // posts a part of a reply, or takes over the post of a preview
	KindPreview Kind = "preview" // posts the beginning of an unfinished reply
	KindRemove  Kind = "remove"  // removes a preview's post
	KindClose   Kind = "close"   // takes the buttons from the post of a question
	KindTell    Kind = "tell"    // shows a text to the asker alone
	KindCopy    Kind = "copy"    // posts an answer to the program whose message it answers
	KindUnsign  Kind = "unsign"  // removes the sign of work from the message that its text names
	KindReact   Kind = "react"   // adds an emoji to a message; its text is the emoji, a space and the message's external id
	KindState   Kind = "state"   // posts the state of a run; see StateChanged
	KindRestate Kind = "restate" // changes that post, which its PlatformID names
)

// State is the state of a delivery.
type State string

// The states of a delivery. The row of a sign of work is held until its run ends; no worker
// reads it before.
const (
	Pending State = "pending"
	Sending State = "sending"
	Sent    State = "sent"
	Unknown State = "unknown"
	Failed  State = "failed"
)

// open is the condition that a delivery has not ended.
const open = `state IN ('pending', 'sending')`

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
	// Card, if it is not nil, is shown in the platform's own form, and the text beside it.
	Card *card.View
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
	// Mentions are the tokens that keep their effect if the text becomes posts.
	Mentions []string `json:"mentions,omitempty"`
}

// ErrDelivered means that the delivery has ended or was begun by another node. The claim may still
// hold.
var ErrDelivered = fmt.Errorf("the delivery has ended or another node has it: %w", storage.ErrFenced)

// Begins reports whether the delivery is the first part of a reply that no preview has shown before.
func (d *Delivery) Begins() bool {
	return d.Part == 0 && (d.Replaces == nil || d.Replaces.PlatformID == "")
}

// IsRead reports whether the delivery is a text for people or programs. Others change or remove one, or are no text.
func (d *Delivery) IsRead() bool {
	return d.Kind == KindPost || d.Kind == KindTell || d.Kind == KindCopy
}

// The parts of deliveries that carry no part of a reply.
const (
	NoPart = -1
	// PartTold is the part of a notice in the thread of a refused reply, and PartTellsAside the part of a notice to the asker in a
	// direct conversation.
	PartTold, PartTellsAside = -2, -3
)

// Tells reports whether the delivery is a notice that a reply was refused.
func (d *Delivery) Tells() bool { return d.Part <= PartTold }

// Add stores a delivery. A delivery that may begin at once is marked as sending
// if no other one of its thread is open and neither its channel nor its workspace must
// wait. Its id and state are known once the transaction has ended.
func Add(tx *storage.Txn, d *Delivery, part int64, begin bool) {
	d.Part = part
	due, replaces := d.CreatedAt, int64(0)
	if d.State == Sending {
		due = d.SendBy
	}
	if d.Replaces != nil {
		replaces = d.Replaces.ID
	}
	query, dest := insertDelivery+` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) RETURNING id`, []any{&d.ID}
	args := []any{d.Thread, d.Run, part, d.Key, d.Workspace, d.Post.Channel, d.Post.Place, d.Post.Text, storage.Millis(d.CreatedAt), string(d.Kind), replaces,
		storage.Number(d.Stream), d.Post.Asker, tx.Pack(d.Post.File, d.Post.File == nil), tx.Pack(d.Post.Buttons, d.Post.Buttons == nil), tx.Pack(d.Post.Card, d.Post.Card == nil), storage.Millis(d.SendBy), string(d.State), d.Attempts, storage.Millis(due)}
	if begin {
		query, dest = beginDelivery, []any{&d.ID, (*string)(&d.State), &d.Attempts}
		args = args[:17]
	}
	tx.Later(nil, dest, query, args...)
}

const insertDelivery = `INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload,
	created_at, kind, replaces, stream, asker, file, buttons, card, send_by, state, attempts, due_at)`

// beginDelivery marks the delivery as sending if no delivery comes before it and neither
// its channel nor its workspace must wait. Otherwise the delivery is pending, and due at once. Without LIMIT, PostgreSQL would
// look once for each use of free.
const beginDelivery = insertDelivery + ` SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, CASE WHEN free = 1 THEN CAST($17 AS BIGINT) ELSE 0 END,
	CASE WHEN free = 1 THEN 'sending' ELSE 'pending' END, free, CASE WHEN free = 1 THEN CAST($17 AS BIGINT) ELSE $9 END
	FROM (SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM deliveries WHERE thread = $1 AND ` + open + ` AND kind NOT IN ` + late + `)
		AND NOT EXISTS (SELECT 1 FROM paces WHERE workspace = $5 AND channel = $6 AND blocked_until > $9)
		AND NOT EXISTS (SELECT 1 FROM paces WHERE workspace = $5 AND channel = '' AND blocked_until > $9) THEN 1 ELSE 0 END AS free LIMIT 1) AS f
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
