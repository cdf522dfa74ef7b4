package record

import (
	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/messages"
)

// decide judges a message, or the new state of a known one.
func (r *recordTx) decide(m *event.Message, known *messages.Message) Decision {
	r.judged = known
	d := r.Decide(m, r)
	r.budgets = d.Budgets
	asks := d.Trigger == messages.TriggerRun && (known == nil || known.Seq == 0 || r.raises(known, d))
	if spent := r.exhausted(asks); spent != nil && !r.joins() {
		if m.RunID != "" && m.Injected == nil && m.Internal == nil { // its client asks again under the same id
			return Decision{Ignore: true, Reason: event.ReasonLimit}
		}
		d = r.Over(m, r, *spent)
	}
	r.prepare(&d, known)
	return d
}

// exhausted returns a budget of a message that asks for a run, of which nothing is left: the last one, if there are several; nil for none.
func (r *recordTx) exhausted(asks bool) (exhausted *budgets.Budget) {
	if !asks {
		return nil
	}
	for i, b := range r.budgets {
		spent, told := budgets.Spend(r.Txn, r.Workspace, b, 0, r.now)
		if i == 0 {
			r.told = told
		}
		if b.Most > 0 && spent >= b.Most {
			exhausted = &b
		}
	}
	return exhausted
}

// joins reports whether a message that asks for a run joins a turn that waits already: the newest
// other message that waits is for the same agent, and came without an id for its run.
func (r *recordTx) joins() bool {
	if r.Coalesce == 0 || !r.thread.Waiting {
		return false
	}
	var asks int64
	if r.asks != nil {
		asks = r.asks.Row
	}
	return messages.JoinsWaiting(r.Txn, r.claim.Thread, r.Agent, asks)
}

// count adds the run that the message asks for to its budgets, or tells its sender that there
// is none left.
func (r *recordTx) count() {
	if r.asks != nil && !r.joins() {
		for _, b := range r.budgets {
			if b.Until.IsZero() { // else its runs pay when they end
				budgets.Spend(r.Txn, r.Workspace, b, 1, r.now)
			}
		}
	}
	if r.tells == nil || r.told || r.Err != nil {
		return
	}
	r.tell()
	if r.out.Reason == event.ReasonLimit {
		budgets.SetTold(r.Txn, r.Workspace, r.budgets[0])
	}
}
