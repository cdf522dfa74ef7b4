package outbox

import (
	"cmp"
	"slices"

	"parley/ingest/journal/storage"
)

// ofParts are the states of a reply, by the states of its parts: the first one that a part has.
var ofParts = []State{Failed, Dropped, Unknown, Sending, Pending, Sent}

// StateOf returns the state of a reply's parts as a whole, the platform's id of the first part, and the first error.
// A reply without parts is sent. A reply of which only some parts are sent is being sent.
func StateOf(tx *storage.Txn, run string) (state State, platformID, cause string) {
	type part struct {
		state     State
		id, cause string
	}
	parts := storage.Rows(tx, func(p *part) []any { return []any{(*string)(&p.state), &p.id, &p.cause} },
		`SELECT state, platform_id, error FROM deliveries WHERE run = $1 AND part >= 0 ORDER BY part`, run)
	state, rank := Sent, func(s State) int { return slices.Index(ofParts, s) }
	for i, p := range parts {
		if i == 0 {
			state, platformID = p.state, p.id
		}
		cause = cmp.Or(cause, p.cause)
		switch {
		case rank(p.state) < rank(state):
			if state == Sent && p.state == Pending {
				p.state = Sending
			}
			state = p.state
		case state == Pending && p.state == Sent:
			state = Sending
		}
	}
	if state == Dropped {
		state = Failed
	}
	return state, platformID, cause
}
