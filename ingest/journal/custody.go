package journal

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
)

// Custody is what Accept made of an envelope.
type Custody struct {
	ID        int64 // of the envelope, or of the first one with its key
	Duplicate bool
	// Thread is where the envelope will be worked on; 0 where it is settled
	// already or waits for its subject.
	Thread int64
	// Fence is not 0 where Accept has claimed the thread for this node.
	Fence int64
	// Only says that the thread has no other envelope to be worked on: intake may
	// begin with this one without reading it again.
	Only bool
	// Settled is the fate of an envelope that needs no more work.
	Settled *event.Fate
}

// Acceptance is an envelope with what Accept needs to know about it.
type Acceptance struct {
	Envelope event.Envelope
	Keys     event.Keys
	// LearnChannel is the channel's type where this payload is the first to
	// tell it; it is remembered in the same transaction.
	LearnChannel bool
	// Claim takes the thread for this node, if nobody has it: the caller has a
	// worker free.
	Claim bool
}

// Accept makes an envelope durable, once, and finds the thread it belongs to.
func (j *Journal) Accept(ctx context.Context, a Acceptance) (Custody, error) {
	custody, err := j.accept(ctx, a)
	if errors.Is(err, errRaced) {
		return j.accept(ctx, a)
	}
	return custody, err
}

// errRaced undoes an Accept that another one with the same key has overtaken,
// where the engine lets transactions go on side by side.
var errRaced = errors.New("the same payload was accepted meanwhile")

func (j *Journal) accept(ctx context.Context, a Acceptance) (Custody, error) {
	return write(Urgent(ctx), j, func(tx Tx) (c Custody, err error) {
		accept := acceptance{tx: tx, Acceptance: a, node: j.node, now: millis(j.now()), lease: j.lease}
		err = accept.run(&c)
		return c, err
	})
}

// acceptance is one Accept inside its transaction.
type acceptance struct {
	Acceptance
	tx    Tx
	node  string
	now   int64
	lease time.Duration
}

func (a *acceptance) run(c *Custody) error {
	if err := a.lookUp(c); err != nil || c.Duplicate {
		return err
	}
	if a.LearnChannel {
		if err := a.learn(); err != nil {
			return err
		}
	}
	if a.Keys.Settled != nil {
		c.Settled, c.Thread = a.Keys.Settled, 0
		return a.insert(c, settledState(a.Keys.Settled), nil)
	}
	if err := a.place(c); err != nil {
		return err
	}
	if c.Thread == 0 {
		return a.insert(c, "pending", nil)
	}
	return a.insert(c, "pending", c.Thread)
}

// lookUp finds the first envelope with this key, or else the thread of its twin.
func (a *acceptance) lookUp(c *Custody) (err error) {
	c.Duplicate, err = a.tx.Row([]any{&c.ID}, `SELECT id FROM envelopes WHERE workspace = ? AND dedupe_key = ?`,
		a.Envelope.Workspace, a.Keys.Dedupe)
	if err != nil || c.Duplicate || a.Keys.Twin == "" {
		return err
	}
	_, err = a.tx.Row([]any{&c.Thread}, `SELECT coalesce(thread, 0) FROM envelopes WHERE workspace = ? AND dedupe_key = ?`,
		a.Envelope.Workspace, a.Keys.Twin)
	return err
}

func settledState(fate *event.Fate) string {
	if fate.Disposition == event.Dead {
		return "dead"
	}
	return "done"
}

func (a *acceptance) learn() error {
	_, err := a.tx.Exec(`INSERT INTO channels (workspace, id, type) VALUES (?, ?, ?)
		ON CONFLICT (workspace, id) DO UPDATE SET type = excluded.type`,
		a.Envelope.Workspace, a.Keys.Channel.ID, string(a.Keys.Channel.Type))
	return err
}

// place finds the envelope's thread: its twin's, the one it names, or its
// subject's; and counts it there.
func (a *acceptance) place(c *Custody) error {
	if c.Thread == 0 && a.Keys.Thread != "" {
		return a.upsertThread(c)
	}
	if c.Thread == 0 && a.Keys.Subject != "" {
		thread, err := subjectThread(a.tx, a.Envelope.Workspace, a.Keys.Subject)
		if err != nil {
			return err
		}
		c.Thread = thread
	}
	if c.Thread == 0 {
		return nil
	}
	return addPending(a.tx, c.Thread, 1, a.now)
}

// claimable says, with the node as ?7 and now as ?6, whether Accept may claim.
const claimable = `?7 <> '' AND threads.owner <> ?7 AND (threads.owner = '' OR threads.lease_until <= ?6)`

// upsertThread makes the thread or finds it, counts the envelope, and claims
// the thread where that was asked for and it is free.
func (a *acceptance) upsertThread(c *Custody) error {
	node := ""
	if a.Claim {
		node = a.node
	}
	until := a.now + a.lease.Milliseconds()
	var owner string
	var fence, pending int64
	_, err := a.tx.Row([]any{&c.Thread, &owner, &fence, &pending}, `
		INSERT INTO threads (key, uuid, workspace, platform, channel, pending, intake_at, owner, lease_until, fence)
		VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, 1)
		ON CONFLICT (key) DO UPDATE SET
			pending     = threads.pending + 1,
			intake_at   = coalesce(threads.intake_at, ?6),
			fence       = CASE WHEN `+claimable+` THEN threads.fence + 1 ELSE threads.fence END,
			lease_until = CASE WHEN `+claimable+` THEN ?8 ELSE threads.lease_until END,
			owner       = CASE WHEN `+claimable+` THEN ?7 ELSE threads.owner END
		RETURNING id, owner, fence, pending`,
		string(a.Keys.Thread), ThreadUUID(a.Keys.Thread), a.Envelope.Workspace, string(a.Envelope.Platform), a.Keys.Channel.ID,
		a.now, node, until)
	if err == nil && node != "" && owner == node {
		c.Fence, c.Only = fence, pending == 1
	}
	return err
}

func (a *acceptance) insert(c *Custody, state string, thread any) error {
	fate := event.Fate{}
	if a.Keys.Settled != nil {
		fate = *a.Keys.Settled
	}
	claims := int64(0)
	if c.Fence != 0 {
		claims = 1
	}
	made, err := a.tx.Row([]any{&c.ID}, `
		INSERT INTO envelopes (workspace, platform, transport, dedupe_key, kind, thread, subject, received_at, accepted_at,
			state, claims, disposition, reason, error, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace, dedupe_key) DO NOTHING RETURNING id`,
		a.Envelope.Workspace, string(a.Envelope.Platform), a.Envelope.Transport, a.Keys.Dedupe, string(a.Keys.Kind),
		thread, a.Keys.Subject, millis(a.Envelope.ReceivedAt), a.now,
		state, claims, string(fate.Disposition), fate.Reason, fate.Error, blob(a.Envelope.Body))
	if err == nil && !made {
		return errRaced
	}
	return err
}

// subjectThread finds the thread of the message, or of the delivery of ours,
// that an external id names; 0 where neither is there.
func subjectThread(tx Tx, workspace, subject string) (thread int64, err error) {
	found, err := tx.Row([]any{&thread}, `SELECT thread FROM messages WHERE workspace = ? AND external_id = ?`, workspace, subject)
	if err != nil || found {
		return thread, err
	}
	_, err = tx.Row([]any{&thread}, `SELECT thread FROM deliveries WHERE workspace = ? AND platform_id = ?`, workspace, subject)
	return thread, err
}

// addPending counts envelopes that a thread has got without being named.
func addPending(tx Tx, thread, n, now int64) error {
	_, err := tx.Exec(`UPDATE threads SET pending = pending + ?, intake_at = coalesce(intake_at, ?) WHERE id = ?`, n, now, thread)
	return err
}

// ThreadUUID is the id by which agents know a thread: a web thread's own UUID,
// else the UUIDv5 of "parley:" and the key in the URL namespace.
func ThreadUUID(key event.ThreadKey) string {
	if id, ok := webUUID(key); ok {
		return id
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:"+string(key))).String()
}

// webUUID reads the UUID at the end of a web thread's key.
func webUUID(key event.ThreadKey) (string, bool) {
	const prefix, length = "web:", 36
	if len(key) < len(prefix)+length || key[:len(prefix)] != prefix {
		return "", false
	}
	id := string(key[len(key)-length:])
	return id, uuid.Validate(id) == nil
}
