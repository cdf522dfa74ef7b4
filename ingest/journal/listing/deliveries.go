package listing

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Delivery is one call that puts a part of a reply on a platform.
type Delivery struct {
	ID        int64
	Workspace string
	Thread    event.ThreadKey
	Channel   string // of its post
	Run       string
	Kind      string // post, preview, remove, close, tell, copy, unsign, react
	Part      int64  // of the reply, from 0; -1: it carries no part
	Parts     int64  // of the reply
	State     string // held, pending, sending, sent, unknown, failed, dropped
	Attempts  int64  // calls that were begun
	// DueAt is the time of a worker's next look at the delivery. If the delivery has ended, DueAt is about the time of the end.
	DueAt, CreatedAt time.Time
	Error            string
	PlatformID       string // the platform's id of its post; empty for none
	Private          bool   // it is of no known room: of a direct message, a small group, or unknown
}

const (
	deliveryColumns = `d.id, d.workspace, t.key, d.channel, d.run, d.kind, d.part, d.state, d.attempts, d.due_at, d.created_at, d.error, coalesce(d.platform_id, ''),
		(SELECT count(*) FROM deliveries o WHERE o.run = d.run AND o.part >= 0),
		NOT EXISTS (SELECT 1 FROM channels c WHERE c.workspace = t.workspace AND c.id = t.channel AND c.type = 'room')`
	ofDeliveries = ` FROM deliveries d JOIN threads t ON t.id = d.thread `
)

// dest is the scan target for deliveryColumns.
func (d *Delivery) dest() []any {
	return []any{&d.ID, &d.Workspace, (*string)(&d.Thread), &d.Channel, &d.Run, &d.Kind, &d.Part, &d.State, &d.Attempts, &d.DueAt, &d.CreatedAt, &d.Error, &d.PlatformID,
		&d.Parts, &d.Private}
}

// notSent is the condition of the index of deliveries that have ended without being sent. SQLite uses that index
// only for a query with the same words.
const notSent = `state IN ('unknown', 'failed', 'dropped')`

// deliveriesIn are the conditions for the states of deliveries, each in the words of an index.
var deliveriesIn = map[string]string{
	"pending": `d.state IN ('pending', 'sending') AND d.state = 'pending'`,
	"sending": `d.state IN ('pending', 'sending') AND d.state = 'sending'`,
	"sent":    `d.state = 'sent'`,
	"unknown": `d.` + notSent + ` AND d.state = 'unknown'`,
	"failed":  `d.` + notSent + ` AND d.state = 'failed'`,
	"dropped": `d.` + notSent + ` AND d.state = 'dropped'`,
}

// DeliveryStates returns the states by which Deliveries can be listed.
func DeliveryStates() []string {
	return []string{"pending", "sending", "sent", "unknown", "failed", "dropped"}
}

// Deliveries returns the deliveries before an id, the newest first; 0 for the newest ones. They are in one of some
// states of DeliveryStates; no state means all of them.
func (l *Listing) Deliveries(ctx context.Context, states []string, before int64, limit int) ([]Delivery, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	conditions := []string{`d.state <> 'held'`}
	if len(states) > 0 {
		conditions = nil
	}
	for _, s := range states {
		conditions = append(conditions, deliveriesIn[s])
	}
	return storage.Read(ctx, l.db, func(tx *storage.Txn) (list []Delivery) {
		for _, condition := range conditions {
			list = append(list, storage.Rows(tx, (*Delivery).dest, `SELECT `+deliveryColumns+ofDeliveries+
				`WHERE `+condition+` AND d.id < $1 ORDER BY d.id DESC LIMIT CAST($2 AS BIGINT)`, before, int64(limit))...)
		}
		slices.SortFunc(list, func(a, b Delivery) int { return cmp.Compare(b.ID, a.ID) })
		return list[:min(len(list), limit)]
	})
}

// Delivery returns a delivery. It fails with ErrNotFound if there is none with the id.
func (l *Listing) Delivery(ctx context.Context, id int64) (d Delivery, err error) {
	err = l.db.One(ctx, d.dest(), `SELECT `+deliveryColumns+ofDeliveries+`WHERE d.id = $1`, id)
	return d, err
}
