package envelopes

import (
	"parley/ingest/event"
	"parley/ingest/journal/threads"
)

// First is an envelope whose message may be the first of its thread. The statements of First change nothing if it is
// not, so that the accept can go on as usual.
type First struct {
	threads.Accepting
	MessageUUID string // for the new row
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
	f := &First{Accepting: a.accepting(a.Keys.Thread, a.Keys.AltKey), MessageUUID: a.messageUUID, accept: a}
	f.Token++
	return f
}

// adopt takes over the rows of a first message. It returns false if none were made.
func (a *acceptTx) adopt(f *First) bool {
	if f.Thread == 0 {
		return false
	}
	a.id, a.row = f.Envelope, threads.Accepted{Thread: f.Thread, Key: f.Key, Owner: a.db.Node, Fence: 1, Pending: 1, Free: true}
	return true
}

// MakeThread makes the thread of the message; see threads.AddFirst.
func (f *First) MakeThread(m threads.First) {
	threads.AddFirst(f.accept.Txn, f.accept.db, f.Accepting, m)
}

// MakeEnvelope stores the envelope, which is settled already, if the thread was made.
func (f *First) MakeEnvelope(result event.Result) {
	a := f.accept
	a.Do(insertFirst, a.values("done", result, "", string(f.Key), f.Token)...)
}
