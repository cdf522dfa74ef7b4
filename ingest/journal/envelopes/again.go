package envelopes

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// retaken is the condition that Again may take up the message that an envelope e is about.
const retaken = `EXISTS (SELECT 1 FROM envelopes a WHERE a.workspace = e.workspace AND a.message_id = e.message_id AND a.disposition IN ('ignored', 'dead')
	AND a.reason = '` + event.ReasonStrangerAsked + `' AND length(a.body) > 0)`

// Again makes the envelope of a stranger's message pending again, which was ignored with the reason ReasonStrangerAsked: now the policy
// may admit it. It returns the thread, whose intake is due; 0 if there is nothing to record any more, because the envelope was taken up before or
// its author has deleted the message.
func (e *Envelopes) Again(ctx context.Context, id int64) (thread int64, err error) {
	var key event.ThreadKey
	found, err := e.db.Row(ctx, []any{&thread, (*string)(&key)}, `SELECT t.id, t.key FROM envelopes e JOIN threads t ON t.id = e.thread WHERE e.id = $1`, id)
	if err != nil || !found {
		return 0, err
	}
	return storage.Write(ctx, e.db, storage.WriteOptions{Thread: key}, func(tx *storage.Txn) int64 {
		if !tx.Has(`SELECT 1 FROM threads WHERE id = $1 FOR UPDATE`, thread) || tx.Exec(`UPDATE envelopes SET state = 'pending', disposition = '', reason = '', attempts = 0, claims = 0, not_before = 0
			WHERE id = $1 AND state = 'done' AND reason = $2 AND length(body) > 0`, id, event.ReasonStrangerAsked) == 0 {
			return 0
		}
		threads.AddPending(tx, thread, 1, storage.Millis(e.db.Now()))
		return thread
	})
}

// Drop empties the body of an envelope that Again could take up.
func (e *Envelopes) Drop(ctx context.Context, id int64) error {
	return e.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE envelopes SET body = substr(body, 1, 0) WHERE id = $1 AND state = 'done' AND reason = $2`, id, event.ReasonStrangerAsked)
	})
}
