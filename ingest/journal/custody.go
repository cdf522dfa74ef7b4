package journal

import (
	"context"
	"errors"
	"math/rand/v2"
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

	Key   event.ThreadKey // the thread's, where the payload names it
	Until time.Time       // when the claim ends, if it is not renewed
	Owner string          // the other node that has the thread; empty for none
	Idle  bool            // nobody has the thread, and it had nothing to do before
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
	var made *acceptance
	writing := about(ctx, a.Keys.Thread)
	if a.Claim {
		writing = Urgent(writing)
	} else { // more waits here than can be worked on soon
		writing = patient(writing)
	}
	err := j.engine.Write(writing, func(tx Tx) error {
		made = &acceptance{Acceptance: a, tx: tx, node: j.node, now: millis(j.now()), lease: j.lease, token: rand.Int64()}
		return made.run()
	})
	if err != nil {
		return Custody{}, err // who was not told the end must not look at what may still change
	}
	if made.id == 0 {
		return j.first(ctx, a)
	}
	custody := made.custody()
	if custody.Fence != 0 {
		custody.Until = j.until(made.now)
	}
	return custody, nil
}

// first is the custody of a payload that was in it already.
func (j *Journal) first(ctx context.Context, a Acceptance) (Custody, error) {
	c := Custody{Duplicate: true}
	err := j.engine.Read(single(ctx), func(tx Tx) error {
		found, err := tx.Row([]any{&c.ID}, `SELECT id FROM envelopes WHERE workspace = ? AND dedupe_key = ?`, a.Envelope.Workspace, a.Keys.Dedupe)
		if err == nil && !found {
			return errors.New("the payload was neither stored nor there before: it must be sent again")
		}
		return err
	})
	return c, err
}

// acceptance is one Accept inside its transaction.
type acceptance struct {
	Acceptance
	tx    Tx
	node  string
	now   int64
	lease time.Duration

	token  int64 // names this transaction in the thread that it counts in
	id     int64 // of the envelope; 0 where one with its key was there already
	thread int64
	// What is known of the thread that the payload names.
	owner          string
	fence, pending int64
}

// custody is what has become of the envelope, once the transaction has ended.
func (a *acceptance) custody() Custody {
	c := Custody{ID: a.id}
	if a.Keys.Settled != nil {
		c.Settled = a.Keys.Settled
		return c
	}
	c.Thread, c.Key, c.Only = a.thread, a.Keys.Thread, a.pending == 1
	switch {
	case a.owner == "":
		c.Idle = c.Only
	case a.owner != a.node:
		c.Owner = a.owner
	case a.Claim:
		c.Fence = a.fence
	}
	return c
}

// run stores the envelope, unless one with its key is there. No statement has to
// wait for another's answer: the first one says that the key is new and leaves a token
// in the thread, without which nothing is inserted. Where two with one key come at the
// same time, the second may think so too; it then meets the first one's row and is run
// again.
func (a *acceptance) run() error {
	if a.LearnChannel {
		if err := a.learn(); err != nil {
			return err
		}
	}
	if a.Keys.Settled != nil {
		return a.insertAlone(settledState(a.Keys.Settled))
	}
	return a.place()
}

// isNew is the condition that no envelope with a key is there, with the workspace
// and the key.
const isNew = `NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = ? AND dedupe_key = ?)`

func settledState(fate *event.Fate) string {
	if fate.Disposition == event.Dead {
		return "dead"
	}
	return "done"
}

func (a *acceptance) learn() error {
	return a.tx.Later(nil, nil, `INSERT INTO channels (workspace, id, type) VALUES (?, ?, ?)
		ON CONFLICT (workspace, id) DO UPDATE SET type = excluded.type`,
		a.Envelope.Workspace, a.Keys.Channel.ID, string(a.Keys.Channel.Type))
}

// place puts the envelope into its thread: its twin's, its holder's, the one it names,
// or its subject's. Where there is none yet, it waits without one.
func (a *acceptance) place() error {
	if a.Keys.Thread != "" {
		if err := a.upsertThread(); err != nil {
			return err
		}
		thread, args := a.named()
		if a.Keys.Twin != "" || a.Keys.Holder != "" { // it may have come since, in another thread: the token is in ours
			thread, args = thread+` OR key = ?`, append(args, string(a.Keys.Thread))
		}
		return a.insert("pending", `id FROM threads WHERE (key = `+thread+`) AND accepting = ?`, append(args, a.token)...)
	}
	if a.Keys.Subject != "" {
		thread, err := subjectThread(a.tx, a.Envelope.Workspace, a.Keys.Subject)
		if err != nil {
			return err
		}
		a.thread = thread
	}
	if a.thread == 0 {
		return a.insertAlone("pending")
	}
	if err := a.countIn(); err != nil {
		return err
	}
	return a.insert("pending", `id FROM threads WHERE id = ? AND accepting = ?`, a.thread, a.token)
}

// named is the key of the thread that the payload names, or of its twin's or its
// holder's, as an expression with its arguments.
func (a *acceptance) named() (string, []any) {
	switch {
	case a.Keys.Holder != "":
		return `coalesce((SELECT t.key FROM deliveries d JOIN threads t ON t.id = d.thread WHERE d.workspace = ? AND d.platform_id = ?), ?)`,
			[]any{a.Envelope.Workspace, a.Keys.Holder, string(a.Keys.Thread)}
	case a.Keys.Twin == "":
		return `?`, []any{string(a.Keys.Thread)}
	}
	return `coalesce((SELECT t.key FROM envelopes e JOIN threads t ON t.id = e.thread WHERE e.workspace = ? AND e.dedupe_key = ?), ?)`,
		[]any{a.Envelope.Workspace, a.Keys.Twin, string(a.Keys.Thread)}
}

// upsertThread makes the thread or finds it, counts the envelope, and claims
// the thread where that was asked for and it is free.
func (a *acceptance) upsertThread() error {
	key, args := a.named()
	node := ""
	if a.Claim {
		node = a.node
	}
	args = append(args, ThreadUUID(a.Keys.Thread), a.Envelope.Workspace, string(a.Envelope.Platform), a.Keys.Channel.ID,
		a.now, node, a.now+a.lease.Milliseconds(), a.token, a.Envelope.Workspace, a.Keys.Dedupe)
	// What the row would have had, if it were new, is the argument.
	const claimable = `excluded.owner <> '' AND threads.owner <> excluded.owner AND (threads.owner = '' OR threads.lease_until <= excluded.intake_at)`
	return a.tx.Later(nil, []any{&a.thread, &a.owner, &a.fence, &a.pending}, `
		INSERT INTO threads (key, uuid, workspace, platform, channel, pending, intake_at, owner, lease_until, fence, accepting)
		SELECT `+key+`, ?, ?, ?, ?, 1, ?, ?, ?, 1, ? WHERE `+isNew+`
		ON CONFLICT (key) DO UPDATE SET
			pending     = threads.pending + 1,
			accepting   = excluded.accepting,
			intake_at   = coalesce(threads.intake_at, excluded.intake_at),
			fence       = CASE WHEN `+claimable+` THEN threads.fence + 1 ELSE threads.fence END,
			lease_until = CASE WHEN `+claimable+` THEN excluded.lease_until ELSE threads.lease_until END,
			owner       = CASE WHEN `+claimable+` THEN excluded.owner ELSE threads.owner END
		RETURNING id, CASE WHEN lease_until >= ? OR owner = ? THEN owner ELSE '' END, fence, pending`,
		append(args, a.now, a.node)...)
}

// countIn counts the envelope in a thread that is known by its id.
func (a *acceptance) countIn() error {
	return a.tx.Later(nil, []any{&a.owner, &a.pending}, `UPDATE threads SET pending = pending + 1, accepting = ?, intake_at = coalesce(intake_at, ?)
		WHERE id = ? AND `+isNew+` RETURNING CASE WHEN lease_until > ? AND owner <> ? THEN owner ELSE '' END, pending`,
		a.token, a.now, a.thread, a.Envelope.Workspace, a.Keys.Dedupe, a.now, a.node)
}

// insertAlone stores an envelope that has no thread.
func (a *acceptance) insertAlone(state string) error {
	return a.insert(state, `CAST(NULL AS BIGINT) WHERE `+isNew, a.Envelope.Workspace, a.Keys.Dedupe)
}

// insert stores the envelope. thread is the end of a SELECT, with its arguments: the
// thread's id, if the envelope is to be stored.
func (a *acceptance) insert(state, thread string, args ...any) error {
	fate := event.Fate{}
	if a.Keys.Settled != nil {
		fate = *a.Keys.Settled
	}
	return a.tx.Later(nil, []any{&a.id}, `
		INSERT INTO envelopes (workspace, platform, transport, dedupe_key, kind, subject, received_at, accepted_at,
			state, disposition, reason, error, body, thread)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, `+thread+` RETURNING id`,
		append([]any{a.Envelope.Workspace, string(a.Envelope.Platform), a.Envelope.Transport, a.Keys.Dedupe, string(a.Keys.Kind),
			a.Keys.Subject, millis(a.Envelope.ReceivedAt), a.now,
			state, string(fate.Disposition), fate.Reason, fate.Error, blob(a.Envelope.Body)}, args...)...)
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
