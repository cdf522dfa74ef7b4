package journal

import (
	"slices"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// carry notes the messages whose words a recorded message quotes or its envelope contains. The words
// of one that is deleted already are dropped at once.
func (r *recordTx) carry(m *Message) {
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
		var isDeleted bool
		r.Row([]any{&isDeleted}, `INSERT INTO carried (workspace, message_id, message) VALUES ($1, $2, $3)
			ON CONFLICT (workspace, message_id, message) DO UPDATE SET message = excluded.message
			RETURNING EXISTS (SELECT 1 FROM messages m WHERE m.workspace = $1 AND m.external_id = $2 AND m.deleted_at > 0)`, r.Workspace, id, m.Row)
		if isDeleted {
			r.dropWords(id, id)
		}
	}
}

// dropWords removes a message's words, by one of its ids, from the messages that quote it, from the
// bodies of their envelopes, and from dead letters about it.
func (r *recordTx) dropWords(externalID, platformID string) {
	r.changeQuotes(externalID, platformID, func(*event.Quote) bool { return false })
	r.Do(`UPDATE envelopes SET body = substr(body, 1, 0) WHERE state = 'dead' AND workspace = $1 AND message_id IN ($2, $3)`,
		r.Workspace, externalID, platformID)
	r.erased = true
}

// renewWords gives the messages that quote an edited message its present words, and empties the bodies of
// their envelopes, which have the earlier ones.
func (r *recordTx) renewWords(m *Message) {
	r.changeQuotes(m.ExternalID, m.ExternalID, func(q *event.Quote) bool {
		if !q.Hidden {
			q.Content, q.Names = m.Content, m.Quotes.Names
		}
		return true
	})
}

// changeQuotes changes the quotations of a message, by one of its ids, in the messages that quote it, and
// empties the bodies of their envelopes. It removes a quotation for which change returns false.
func (r *recordTx) changeQuotes(externalID, platformID string, change func(q *event.Quote) (keep bool)) {
	for _, m := range storage.Rows(r.Txn, func(m *Message) []any { return []any{&m.Row, &m.quotes, &m.envelopes} },
		`SELECT row, quotes, envelopes FROM messages WHERE row IN (SELECT message FROM carried WHERE workspace = $1 AND message_id IN ($2, $3))`,
		r.Workspace, externalID, platformID) {
		unpack(r.Txn, &m)
		isGone := func(q *event.Quote) bool {
			return (q.ExternalID == externalID || q.ExternalID == platformID) && !change(q)
		}
		if q := m.Quotes.Quoted; q != nil && isGone(q) {
			m.Quotes.Quoted = nil
		}
		var left []event.Quote
		for _, q := range m.Quotes.Forwarded {
			if !isGone(&q) {
				left = append(left, q)
			}
		}
		m.Quotes.Forwarded = left
		r.Do(`UPDATE messages SET quotes = $2 WHERE row = $1`, m.Row, packQuotes(r.Txn, m.Quotes))
		r.blankEnvelopes(&m)
		r.erased = true
	}
}
