package envelopes

import (
	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// First is an envelope whose message may be the first of its thread. The statements of First change nothing if it is
// not, so that the accept can go on as usual.
type First struct {
	// MessageUUID and ThreadUUID are for the new rows.
	MessageUUID, ThreadUUID string
	Platform                event.Platform
	Channel                 event.Channel
	Dedupe                  string
	// Token identifies the transaction in the thread's row.
	Token int64
	// Thread and Envelope are the rows that were made, which the statement of the message returns; 0 for none.
	Thread, Envelope int64

	accept *acceptTx
}

// first returns the envelope if its message may be the first of a thread; nil if not. Of a known thread, it returns
// nil only if the store is embedded: asking a server would take a round trip.
func (a *acceptTx) first() *First {
	if a.Keys.Result != nil || a.Keys.Thread == "" || a.Keys.PostID != "" || !a.Claim ||
		a.db.Lease == 0 && a.Has(`SELECT 1 FROM threads WHERE key = $1`, string(a.Keys.Thread)) {
		return nil
	}
	return &First{MessageUUID: a.messageUUID, Platform: a.Envelope.Platform, Channel: a.Keys.Channel, Dedupe: a.Keys.Dedupe, ThreadUUID: threads.ThreadUUID(a.secret, a.Keys.Thread, storage.Instant(a.now)), Token: a.token + 1, accept: a}
}

// adopt takes over the rows of a first message. It returns false if none were made.
func (a *acceptTx) adopt(f *First) bool {
	if f.Thread == 0 {
		return false
	}
	a.id, a.thread, a.key, a.owner, a.fence, a.pending, a.free = f.Envelope, f.Thread, string(a.Keys.Thread), a.db.Node, 1, 1, true
	return true
}

// InsertThread returns the statement of MakeThread. The arguments of the further columns begin with $13.
func InsertThread(also threads.Also) string {
	also.Columns, also.Values = `accepting, `+also.Columns, `CAST($9 AS BIGINT), `+also.Values
	return threads.Insert(` AND NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND dedupe_key IN ($10, $11))
		AND NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND message_id = $12 AND state = 'pending' AND thread IS NULL)
		AND NOT EXISTS (SELECT 1 FROM messages WHERE workspace = $3 AND external_id = $12)`, also)
}

// MakeThread makes the thread by a statement of InsertThread, unless it, the message or the payload is known, or
// envelopes wait for the message.
func (f *First) MakeThread(query, messageID string, args ...any) {
	a := f.accept
	a.Do(query, append([]any{string(a.Keys.Thread), f.ThreadUUID, a.Envelope.Workspace, string(a.Envelope.Platform), a.Keys.Channel.ID, a.Keys.Channel.Parent,
		a.db.Node, a.now + a.db.Lease.Milliseconds(), f.Token, a.Keys.Dedupe, a.Keys.AltKey, messageID}, args...)...)
}

// MakeEnvelope stores the envelope, which is settled already, if the thread was made.
func (f *First) MakeEnvelope(result event.Result) {
	a := f.accept
	a.Do(insertFirst, a.row("done", result, "", string(a.Keys.Thread), f.Token)...)
}
