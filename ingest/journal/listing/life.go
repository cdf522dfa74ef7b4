package listing

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// Life has the journal's facts about one message.
type Life struct {
	Workspace string
	Platform  event.Platform
	// Thread, ThreadID, Channel and Parent are the place of the message; empty if it is unknown.
	Thread          event.ThreadKey
	ThreadID        string
	Channel, Parent string
	Private         bool // it is of no known room: of a direct message, a small group, or unknown
	// Message is nil if the message is not stored.
	Message *messages.Listed
	// Payloads are the envelopes that contain the message or a change of it, in the order of their arrival.
	Payloads []Payload
	// Run is the run that answers the message, or whose reply the message is; nil for none.
	Run *Run
	// Again says that the messages of Run were asked again, so that another run has them now.
	Again bool
	// Turn is the number of the messages of the run.
	Turn int64
	// Deliveries carry the answer.
	Deliveries []Delivery
}

// Payload is an envelope, as operators see it.
type Payload struct {
	ID         int64
	Transport  string
	Kind       event.Kind
	ReceivedAt time.Time // zero if the arrival is unknown
	AcceptedAt time.Time
	State      string // pending, done, dead
	Attempts   int64  // that failed
	event.Result

	workspace, platform, thread, channel string
}

// maxSteps bounds the envelopes and the deliveries of one message.
const maxSteps = 200

// LifeOf returns the life of the message with an external id, or that of the answer whose post has the id, in
// one of the workspaces. It fails with ErrNotFound if the journal knows neither the message nor an
// envelope of it.
func (l *Listing) LifeOf(ctx context.Context, id string, workspaces []string) (*Life, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) *Life {
		for _, workspace := range workspaces {
			life := &Life{Workspace: workspace}
			if !life.find(tx, `m.workspace = $1 AND m.external_id = $2`, workspace, id) {
				life.find(tx, `m.run = (SELECT run FROM deliveries WHERE workspace = $1 AND platform_id = $2) AND m.author IN ('agent', 'system')`, workspace, id)
			}
			life.payloads(tx, id)
			if life.Message != nil || len(life.Payloads) > 0 {
				life.complete(tx)
				return life
			}
		}
		tx.Fail(storage.ErrNotFound)
		return nil
	})
}

// LifeByID returns the life of the message with our id for it, or that of the first message of the run to which an id leads;
// see RunID.
func (l *Listing) LifeByID(ctx context.Context, id string) (*Life, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) *Life {
		life := &Life{}
		if !life.find(tx, `m.id = $1`, id) && !life.find(tx, `m.run = $1 AND m.trigger = 'run' ORDER BY m.author = 'system', m.seq LIMIT 1`, runID(tx, id)) {
			if life.bare(tx, runID(tx, id)); life.Run == nil {
				tx.Fail(storage.ErrNotFound)
				return nil
			}
			return life
		}
		life.payloads(tx, life.Message.ExternalID)
		life.complete(tx)
		return life
	})
}

// find reads the message that meets a condition, and its place. It returns false if there is none.
func (l *Life) find(tx *storage.Txn, where string, args ...any) bool {
	var row int64
	if !tx.Row([]any{&row}, `SELECT m.row FROM messages m WHERE `+where, args...) {
		return false
	}
	if l.Message = messages.ByRow(tx, row); l.Message == nil {
		return false
	}
	tx.Row([]any{(*string)(&l.Thread), &l.ThreadID, &l.Workspace, (*string)(&l.Platform), &l.Channel, &l.Parent},
		`SELECT key, uuid, workspace, platform, channel, parent FROM threads WHERE id = $1`, l.Message.Thread)
	return true
}

// payloads reads the envelopes of the message: those whose words it has, and those of its id.
func (l *Life) payloads(tx *storage.Txn, id string) {
	const columns = `SELECT e.id, e.transport, e.kind, e.received_at, e.accepted_at, e.state, e.attempts, e.disposition, e.reason, e.error, e.workspace,
		e.platform, coalesce(t.key, ''), coalesce(t.channel, e.channel) FROM envelopes e LEFT JOIN threads t ON t.id = e.thread WHERE `
	add := func(where string, args ...any) {
		for _, p := range storage.Rows(tx, (*Payload).dest, columns+where, args...) {
			if !slices.ContainsFunc(l.Payloads, func(known Payload) bool { return known.ID == p.ID }) && len(l.Payloads) < maxSteps {
				l.Payloads = append(l.Payloads, p)
			}
		}
	}
	if l.Message != nil {
		for row := range strings.SplitSeq(l.Message.Envelopes, ",") {
			if n, err := strconv.ParseInt(row, 10, 64); err == nil {
				add(`e.id = $1`, n)
			}
		}
	}
	if id != "" && l.Workspace != "" {
		add(`e.workspace = $1 AND e.dedupe_key IN ($2, $3)`, l.Workspace, "message:"+id, "app_mention:"+id)
		add(`e.workspace = $1 AND e.message_id = $2 AND e.disposition IN ('ignored', 'dead') ORDER BY e.id LIMIT 50`, l.Workspace, id)
	}
	slices.SortFunc(l.Payloads, func(a, b Payload) int { return int(a.ID - b.ID) })
}

func (p *Payload) dest() []any {
	return []any{&p.ID, &p.Transport, (*string)(&p.Kind), &p.ReceivedAt, &p.AcceptedAt, &p.State, &p.Attempts, (*string)(&p.Disposition), &p.Reason, &p.Error,
		&p.workspace, &p.platform, &p.thread, &p.channel}
}

// complete reads the run of the message and its deliveries, or the place of a message that is not stored.
func (l *Life) complete(tx *storage.Txn) {
	if l.Message != nil {
		l.run(tx, l.Message.Run)
		l.announcement(tx)
	} else {
		first := l.Payloads[0]
		l.Platform, l.Thread, l.Channel = event.Platform(first.platform), event.ThreadKey(first.thread), first.channel
		tx.Row([]any{&l.ThreadID, &l.Parent}, `SELECT uuid, parent FROM threads WHERE key = $1`, first.thread)
	}
	l.Private = !tx.Has(`SELECT 1 FROM channels WHERE workspace = $1 AND id = $2 AND type = 'room'`, l.Workspace, l.Channel)
}

// run reads a run and its deliveries; nothing for an empty id.
func (l *Life) run(tx *storage.Txn, id string) {
	if id == "" {
		return
	}
	l.Run = findRun(tx, id)
	tx.Row([]any{&l.Turn}, `SELECT count(*) FROM (SELECT 1 FROM messages WHERE run = $1 AND author IN ('human', 'bot') LIMIT 1000) AS few`, id)
	l.Deliveries = storage.Rows(tx, (*Delivery).dest, `SELECT `+deliveryColumns+ofDeliveries+`WHERE d.run = $1 ORDER BY d.id LIMIT CAST($2 AS BIGINT)`, id, int64(maxSteps))
}

// bare reads a run whose messages have another run since, and its place. Run is nil if there is none with the id.
func (l *Life) bare(tx *storage.Txn, id string) {
	if l.run(tx, id); l.Run == nil {
		return
	}
	l.Again = true
	tx.Row([]any{(*string)(&l.Thread), &l.ThreadID, &l.Workspace, (*string)(&l.Platform), &l.Channel, &l.Parent},
		`SELECT key, uuid, workspace, platform, channel, parent FROM threads WHERE key = $1`, string(l.Run.Thread))
	l.Private = !tx.Has(`SELECT 1 FROM channels WHERE workspace = $1 AND id = $2 AND type = 'room'`, l.Workspace, l.Channel)
}

// announcement reads the deliveries that have shown the message to people, before those of its answer.
func (l *Life) announcement(tx *storage.Txn) {
	if l.Message.Author == messages.ByAgent {
		return
	}
	l.Deliveries = append(storage.Rows(tx, (*Delivery).dest, `SELECT `+deliveryColumns+ofDeliveries+`WHERE d.run = $1 ORDER BY d.id LIMIT CAST($2 AS BIGINT)`, l.Message.UUID, int64(maxSteps)), l.Deliveries...)
}

// FirstStart returns the time at which the store was made, or that of its first message if that is earlier: the store may
// be a copy.
func (l *Listing) FirstStart(ctx context.Context) (time.Time, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) (first time.Time) {
		var made int64
		tx.Row([]any{&made}, `SELECT applied_at FROM schema_migrations ORDER BY version LIMIT 1`)
		tx.Row([]any{&first}, `SELECT created_at FROM messages ORDER BY row LIMIT 1`)
		if at := time.Unix(made, 0).UTC(); first.IsZero() || at.Before(first) {
			first = at
		}
		return first
	})
}
