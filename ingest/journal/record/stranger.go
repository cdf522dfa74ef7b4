package record

import (
	"parley/ingest/journal/strangers"
)

// Stranger implements Look.
func (r *recordTx) Stranger(sender string) strangers.Stranger {
	return strangers.Of(r.Txn, r.Workspace, sender)
}

// Carries implements Look.
func (r *recordTx) Carries(envelope int64) bool {
	return envelope != 0 && (envelope == r.Envelope || r.judged != nil && r.judged.HasEnvelope(envelope))
}

// StrangerOf implements Look. A question of another workspace is none.
func (r *recordTx) StrangerOf(question string) (s strangers.Stranger) {
	if found := strangers.OfQuestion(r.Txn, question); found.Workspace == r.Workspace {
		s = found
	}
	return s
}

// Strangers implements Look.
func (r *recordTx) Strangers() int { return int(strangers.Open(r.Txn, r.Workspace)) }

// stranger stores the question or the answer of an ignored message. A message that asks keeps its payload, which is recorded if an approver
// admits it.
func (r *recordTx) stranger(d *Decision) {
	switch {
	case d.Asks != nil:
		asks := *d.Asks
		asks.Workspace, asks.Envelope = r.Workspace, r.Envelope
		strangers.Ask(r.Txn, asks, r.now)
		r.kept, r.tells, r.out.Strangers = true, d.Tell, true
	case d.Decides != nil:
		r.out.Strangers = strangers.Answer(r.Txn, d.Decides.Question, d.Decides.State, d.Decides.By, r.now)
	}
}
