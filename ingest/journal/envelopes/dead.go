package envelopes

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// ErrRemoved means that the payload of a dead letter is gone, because its author has deleted the message.
var ErrRemoved = errors.New("its payload was removed, because the author deleted the message; discard it")

// Letter is a dead letter.
type Letter struct {
	Pending
	Thread int64           // 0: its keys could not be read
	Key    event.ThreadKey // of the thread
}

// Letter returns a dead letter with its payload. It fails with ErrSettled if the envelope is none any more, and with
// ErrNotFound if there is no such envelope.
func (e *Envelopes) Letter(ctx context.Context, id int64) (l Letter, err error) {
	var dead bool
	err = e.db.One(ctx, append(l.dest(), &l.Thread, (*string)(&l.Key), &dead), `
		SELECT `+pendingColumns+`, coalesce(thread, 0), coalesce((SELECT key FROM threads WHERE threads.id = envelopes.thread), ''), state = 'dead'
		FROM envelopes WHERE id = $1`, id)
	if err == nil && !dead {
		err = ErrSettled
	}
	return l, err
}

// Resubmit makes a dead letter pending again, with the id, the dedupe key and the message UUID that it had,
// so that nothing can be recorded twice. It keeps its thread; a letter without one gets the thread that the
// keys name, or the result that they have. The result is as of Accept, without a claim. Resubmit fails with ErrSettled
// if the envelope is no dead letter any more.
func (e *Envelopes) Resubmit(ctx context.Context, l Letter, keys event.Keys) (AcceptResult, error) {
	if len(l.Envelope.Body) == 0 {
		return AcceptResult{}, ErrRemoved
	}
	secret, err := e.ids.Secret(ctx)
	if err != nil {
		return AcceptResult{}, err
	}
	if l.Thread != 0 {
		keys.Result = nil
	}
	keys.Dedupe = "" // the key is the letter's own, and must not count as stored before
	made, err := storage.Write(ctx, e.db, storage.WriteOptions{Thread: cmp.Or(l.Key, keys.Thread)}, func(tx *storage.Txn) *acceptTx {
		made := &acceptTx{AcceptRequest: AcceptRequest{Envelope: l.Envelope, Keys: keys}, Txn: tx, db: e.db, secret: secret,
			now: storage.Millis(e.db.Now()), token: rand.Int64(), messageUUID: l.MessageUUID}
		made.resubmit(l)
		return made
	})
	if err != nil {
		return AcceptResult{}, err
	}
	return made.result(), nil
}

// resubmit stores the state of a letter that was read again.
func (a *acceptTx) resubmit(l Letter) {
	a.id, a.row.Thread, a.row.Key = l.ID, l.Thread, l.Key
	if a.row.Thread != 0 {
		a.Later(nil, []any{new(int64)}, `SELECT id FROM threads WHERE id = $1 FOR UPDATE`, a.row.Thread) // first, as in every transaction
		threads.AddPending(a.Txn, a.row.Thread, 1, a.now)
	} else {
		l.Kind, l.MessageID = a.Keys.Kind, a.Keys.MessageID
		a.reseat()
	}
	channel, state, result := "", "pending", event.Result{}
	if a.row.Thread == 0 {
		channel = a.Keys.Channel.ID
	}
	if a.Keys.Result != nil {
		result, state = *a.Keys.Result, "done"
	}
	if result.Disposition == event.Dead {
		state = "dead"
	}
	a.Must(ErrSettled, `UPDATE envelopes SET state = $2, disposition = $3, reason = $4, error = $5, resubmitted_at = $6, thread = $7,
		kind = $8, message_id = $9, channel = $10, attempts = 0, claims = 0, not_before = 0,
		body = CASE WHEN $2 = 'done' THEN substr(body, 1, 0) ELSE body END WHERE id = $1 AND state = 'dead'`,
		l.ID, state, string(result.Disposition), result.Reason, result.Error, a.now, threadOrNull(a.row.Thread), string(l.Kind), l.MessageID, channel)
}

// reseat finds or makes the thread of a letter that had none, and counts the letter there. A letter that
// names none waits for the message that it is about. The transaction fails with ErrNotFound if the payload
// names a thread by a UUID that is another thread's.
func (a *acceptTx) reseat() {
	if a.Keys.Result != nil {
		return
	}
	if a.Keys.Channel.Type != event.ChannelUnknown {
		threads.LearnChannel(a.Txn, a.Envelope.Workspace, a.Keys.Channel)
	}
	key := a.threadKey()
	if alt := a.Keys.AltKey; alt != "" {
		a.Row([]any{(*string)(&key)}, `SELECT t.key FROM envelopes e JOIN threads t ON t.id = e.thread WHERE e.workspace = $1 AND e.dedupe_key = $2`,
			a.Envelope.Workspace, alt)
	}
	if key == "" {
		return
	}
	a.count(key, "")
	if a.Has(`SELECT 1 FROM envelopes WHERE id = $1`, a.id); a.row.Thread == 0 { // the row of the thread has been read by now
		a.Fail(storage.ErrNotFound)
	}
}

// threadOrNull returns the value of a column that names a thread.
func threadOrNull(thread int64) any {
	if thread == 0 {
		return nil
	}
	return thread
}

// Discard settles a dead letter without a result, and empties its body. It fails with ErrSettled if the
// envelope is no dead letter. A discarded one stays discarded.
func (e *Envelopes) Discard(ctx context.Context, id int64) error {
	return e.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Must(ErrSettled, `UPDATE envelopes SET state = 'done', reason = $2 WHERE id = $1 AND disposition = 'dead'`, id, Discarded)
		EmptyBody(tx, id)
	})
}

// Discarded is the reason of a dead letter that an operator has discarded.
const Discarded = "discarded"
