package envelopes

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// AcceptResult is the result of Accept.
type AcceptResult struct {
	ID          int64  // of the envelope, or of the first one with its key
	MessageUUID string // UUID of the message that the envelope makes; empty if it is settled
	Duplicate   bool
	// Claim is this node's claim of the envelope's thread. The thread is 0 if the envelope
	// is settled already or waits for its message; the fence is 0 if this node has no claim.
	threads.Claim
	// Only reports that the thread has no other pending envelope: intake may begin
	// with this one without reading it again.
	Only bool
	// Result is the result of an envelope that needs no further work.
	Result *event.Result
	At     time.Time // of the transaction: the claim's lease begins then
	Owner  string    // the other node that has claimed the thread; empty for none
}

// AcceptRequest is an envelope with the keys that its adapter found.
type AcceptRequest struct {
	Envelope event.Envelope
	Keys     event.Keys
	// LearnChannel stores the channel's type, because this payload is the first to
	// name it.
	LearnChannel bool
	// Claim requests a claim of the thread, because the caller has a free worker: Accept
	// claims the thread for this node if it is free, or extends this node's claim. It
	// leaves a thread whose owner ended during its work to the scheduler, which counts
	// such claims.
	Claim bool
}

// Accept makes an envelope durable, once, and finds its thread. It fails with ErrNotFound if the
// payload names a thread by a UUID that is another thread's.
func (e *Envelopes) Accept(ctx context.Context, a AcceptRequest) (AcceptResult, error) {
	return AcceptThen[struct{}](ctx, e, a, nil)
}

// Then is further work in the transaction of an accept.
type Then[T any] struct {
	// First stores a message that may be the first of its thread, with its envelope and its thread, by
	// statements that change nothing if the thread or the message is known. It returns false, and has
	// queued no statement, if it does not. An engine may run the statements later.
	First func(*storage.Txn, *First) (T, bool)
	// Idle is called for an envelope whose thread is idle: this node has the claim, and the thread has no
	// other envelope that is not settled, no turn that waits and no run.
	Idle func(*storage.Txn, AcceptResult) T
	// Committed gets the results of one of them, as storage.WriteOptions.Committed.
	Committed func(AcceptResult, T)
}

// AcceptThen is Accept with further work; nil for none.
func AcceptThen[T any](ctx context.Context, e *Envelopes, a AcceptRequest, then *Then[T]) (AcceptResult, error) {
	secret, err := e.ids.Secret(ctx)
	if err != nil {
		return AcceptResult{}, err
	}
	type accepted struct {
		*acceptTx
		more T
	}
	options := storage.WriteOptions{Urgent: true, Thread: a.Keys.Thread, Queued: a.Envelope.Queued, Batch: a.Envelope.Batch}
	var committed func(accepted)
	if then != nil {
		committed = func(made accepted) {
			if made.isIdle() {
				then.Committed(made.result(), made.more)
			}
		}
	}
	made, err := storage.WriteThen(ctx, e.db, options, func(tx *storage.Txn) (made accepted) {
		made.acceptTx = &acceptTx{AcceptRequest: a, Txn: tx, db: e.db, secret: secret, now: storage.Millis(e.db.Now()), token: rand.Int64(), messageUUID: uuid.Must(uuid.NewV7()).String(), atOnce: then != nil}
		made.learn()
		if then == nil {
			made.run()
			return made
		}
		first, queued := made.first(), false
		if first != nil {
			made.more, queued = then.First(tx, first)
		}
		if queued && made.adopt(first) {
			return made
		}
		if made.run(); !(queued && made.adopt(first)) && made.isIdle() {
			made.more = then.Idle(tx, made.result())
		}
		return made
	}, committed)
	switch {
	case err != nil:
		return AcceptResult{}, err
	case made.id == 0: // it was stored before, or removed meanwhile: then it must be sent again
		return e.Accepted(ctx, a.Envelope.Workspace, a.Keys.Dedupe)
	}
	return made.result(), nil
}

// Accepted returns the result of Accept for an envelope that is stored already. It fails with
// ErrNotFound if there is none. It costs a tenth of Accept.
func (e *Envelopes) Accepted(ctx context.Context, workspace, dedupe string) (AcceptResult, error) {
	r := AcceptResult{Duplicate: true}
	err := e.db.One(ctx, []any{&r.ID, &r.MessageUUID}, `SELECT id, message_uuid FROM envelopes WHERE workspace = $1 AND dedupe_key = $2`, workspace, dedupe)
	return r, err
}

// acceptTx is one Accept inside its transaction.
type acceptTx struct {
	AcceptRequest
	*storage.Txn
	db          *storage.DB
	secret      []byte // of the ids of threads
	now         int64
	messageUUID string

	token int64            // identifies this transaction in its thread's row
	id    int64            // of the envelope; 0 if its key was stored before
	row   threads.Accepted // of the thread, if the envelope has one

	atOnce bool // the thread's row is needed in the transaction
}

// isIdle reports whether the envelope is stored in an idle thread; see AcceptThen.
func (a *acceptTx) isIdle() bool {
	return a.Err == nil && a.id != 0 && a.row.Free && a.row.Pending == 1 && a.Claim && a.row.Owner == a.db.Node
}

// result is valid after the transaction has ended, or if atOnce is set.
func (a *acceptTx) result() AcceptResult {
	r := AcceptResult{ID: a.id, Result: a.Keys.Result}
	if r.Result != nil {
		return r
	}
	r.MessageUUID, r.Thread, r.Key, r.Workspace, r.Only = a.messageUUID, a.row.Thread, a.row.Key, a.Envelope.Workspace, a.row.Pending == 1
	switch {
	case a.row.Owner == "":
	case a.row.Owner != a.db.Node:
		r.Owner = a.row.Owner
	case a.Claim:
		r.Fence, r.At = a.row.Fence, storage.Instant(a.now)
	}
	return r
}

func (a *acceptTx) learn() {
	if a.LearnChannel {
		threads.LearnChannel(a.Txn, a.Envelope.Workspace, a.Keys.Channel)
	}
}

// run stores the envelope, unless its key is stored already. No statement waits for
// another's result: the first one finds that the key is new and leaves a token in the
// thread, and the second one stores nothing without the token. If two payloads with one
// key arrive at the same time, the second may also find that the key is new; the unique
// key then makes its transaction run again.
func (a *acceptTx) run() {
	switch {
	case a.Keys.Result == nil:
		a.place()
	case a.Keys.Result.Disposition == event.Dead:
		a.insert("dead", insertApart)
	default:
		a.insert("done", insertApart)
	}
}

// place puts the envelope into its thread: the thread of the other payload about the same
// message, or of the post that carries a pressed button, or the thread that the payload
// names, or its target's. Without any of them, the envelope waits for its target.
func (a *acceptTx) place() {
	switch key := a.threadKey(); {
	case key == "":
		a.insert("pending", insertApart)
	case a.Keys.AltKey != "":
		a.count(key, a.Keys.AltKey)
		a.insert("pending", insertByPayload, string(key), a.token, a.Keys.AltKey)
	default:
		a.count(key, "")
		a.insert("pending", insertByKey, string(key), a.token)
	}
}

// threadKey returns the key of the envelope's thread, as far as its own keys show it; empty for none.
func (a *acceptTx) threadKey() (known event.ThreadKey) {
	switch {
	case a.Keys.PostID != "":
		_, known = postThread(a.Txn, a.Envelope.Workspace, a.Keys.PostID)
	case a.Keys.Thread == "" && a.Keys.MessageID != "":
		_, known = messageThread(a.Txn, a.Envelope.Workspace, a.Keys.MessageID)
	}
	return cmp.Or(known, a.Keys.Thread)
}

// The statements that store an envelope in the thread with a key, or first in the thread of
// another payload, which $18 names. The other payload may have been stored after the thread has counted the
// envelope, in another thread; then the token is in the thread with the key.
var (
	insertByKey     = insertFirst + ` RETURNING id`
	insertFirst     = insertEnvelope(`id FROM threads WHERE key = $16 AND accepting = $17`)
	insertByPayload = insertEnvelope(`id FROM threads WHERE (key = $16 OR key = coalesce((SELECT t.key FROM envelopes e JOIN threads t ON t.id = e.thread
		WHERE e.workspace = $1 AND e.dedupe_key = $18), $16)) AND accepting = $17`) + ` RETURNING id`
	// insertApart stores an envelope without a thread if its key is new.
	insertApart = insertEnvelope(`CAST(NULL AS BIGINT) WHERE NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $1 AND dedupe_key = $4)`) + ` RETURNING id`
)

// accepting returns the envelope as its thread counts it.
func (a *acceptTx) accepting(key event.ThreadKey, alt string) threads.Accepting {
	return threads.Accepting{
		Key: key, UUID: threads.ThreadUUID(a.secret, key, storage.Instant(a.now)), Workspace: a.Envelope.Workspace, Platform: a.Envelope.Platform, Channel: a.Keys.Channel,
		Now: a.now, Token: a.token, Dedupe: a.Keys.Dedupe, AltKey: alt, Claim: a.Claim,
	}
}

// count makes the thread or finds it, and counts the envelope. If the caller asked
// for a claim, it claims the thread or extends this node's claim. A thread whose owner
// ended during its work is not claimed here; see AcceptRequest.
func (a *acceptTx) count(key event.ThreadKey, alt string) {
	threads.Accept(a.Txn, a.db, a.accepting(key, alt), &a.row)
}

// insertEnvelope returns the statement that stores an envelope. thread is the end of a SELECT,
// whose arguments begin with $16: the thread's id, if the envelope is to be stored.
func insertEnvelope(thread string) string {
	return `
		INSERT INTO envelopes (workspace, platform, transport, dedupe_key, kind, message_id, received_at, accepted_at,
			state, disposition, reason, error, message_uuid, body, channel, thread)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, ` + thread
}

// insert stores the envelope by one of these statements, with its further arguments.
func (a *acceptTx) insert(state, query string, args ...any) {
	result, channel := event.Result{}, ""
	if a.Keys.Result != nil {
		result = *a.Keys.Result
	}
	if query == insertApart {
		channel = a.Keys.Channel.ID
	}
	args = a.values(state, result, channel, args...)
	if a.atOnce {
		a.Row([]any{&a.id}, query, args...)
	} else {
		a.Later(nil, []any{&a.id}, query, args...)
	}
}

// values returns the arguments of insertEnvelope.
func (a *acceptTx) values(state string, result event.Result, channel string, further ...any) []any {
	body := storage.Bytes(a.Envelope.Body)
	if result.Disposition == event.Ignored { // nobody reads it, and a delete of its message would not find it
		body = storage.Bytes(nil)
	}
	return append([]any{a.Envelope.Workspace, string(a.Envelope.Platform), a.Envelope.Transport, a.Keys.Dedupe, string(a.Keys.Kind),
		a.Keys.MessageID, storage.Millis(a.Envelope.ReceivedAt), a.now,
		state, string(result.Disposition), result.Reason, result.Error, a.messageUUID, body, channel}, further...)
}

// messageThread finds the thread of the message, or of the delivery of ours, that an
// external id names; 0 for none.
func messageThread(tx *storage.Txn, workspace, id string) (thread int64, key event.ThreadKey) {
	if !tx.Row([]any{&thread, (*string)(&key)},
		`SELECT t.id, t.key FROM messages m JOIN threads t ON t.id = m.thread WHERE m.workspace = $1 AND m.external_id = $2`, workspace, id) {
		return postThread(tx, workspace, id)
	}
	return thread, key
}

// postThread finds the thread of the post of ours with a platform id; 0 for none.
func postThread(tx *storage.Txn, workspace, id string) (thread int64, key event.ThreadKey) {
	tx.Row([]any{&thread, (*string)(&key)},
		`SELECT t.id, t.key FROM deliveries d JOIN threads t ON t.id = d.thread WHERE d.workspace = $1 AND d.platform_id = $2`, workspace, id)
	return thread, key
}
