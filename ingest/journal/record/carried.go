package record

import (
	"slices"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
)

// carry notes the messages whose words a recorded message quotes or its envelope contains. The words
// of one that is deleted already are dropped at once.
func (r *recordTx) carry(m *messages.Message) {
	ids := slices.Clone(r.Event.Carries)
	if q := m.Quotes.Quoted; q != nil {
		ids = append(ids, q.ExternalID)
	}
	for _, q := range m.Quotes.Forwarded {
		ids = append(ids, q.ExternalID)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if id == "" || id == m.ExternalID {
			continue
		}
		if messages.Carries(r.Txn, r.Workspace, id, m.Row) {
			r.dropWords(id, id)
		}
	}
}

// dropWords removes a message's words, by one of its ids, from the messages that quote it, from the
// bodies of their envelopes, from the kept inputs of their threads, and from dead letters about it.
func (r *recordTx) dropWords(externalID, platformID string) {
	r.erased = true
	if externalID == "" && platformID == "" { // the message has no id: nothing is about it
		return
	}
	for _, thread := range r.changeQuotes(externalID, platformID, func(*event.Quote) bool { return false }) {
		runs.ForgetInputs(r.Txn, thread, r.now)
		if r.forgets {
			runs.ForgetSessions(r.Txn, thread)
		}
	}
	envelopes.EmptyDead(r.Txn, r.Workspace, externalID, platformID)
}

// renewWords gives the messages that quote an edited message its present words, and empties the bodies of
// their envelopes, which have the earlier ones.
func (r *recordTx) renewWords(m *messages.Message) {
	r.changeQuotes(m.ExternalID, m.ExternalID, func(q *event.Quote) bool {
		if !q.Hidden {
			q.Content, q.Names = m.Content, m.Quotes.Names
		}
		return true
	})
}

// changeQuotes changes the quotations of a message, by one of its ids, in the messages that quote it, and
// empties the bodies of their envelopes. It removes a quotation for which change returns false. It returns
// the threads of those messages, each once.
func (r *recordTx) changeQuotes(externalID, platformID string, change func(q *event.Quote) (keep bool)) (threads []int64) {
	for _, m := range messages.ChangeQuotes(r.Txn, r.Workspace, externalID, platformID, change) {
		envelopes.EmptyBodies(r.Txn, &m)
		r.erased = true
		threads = append(threads, m.Thread)
	}
	slices.Sort(threads)
	return slices.Compact(threads)
}
