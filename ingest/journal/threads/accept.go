package threads

import (
	"fmt"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Accepting is an envelope that a thread counts, with the values of a new thread.
type Accepting struct {
	Key       event.ThreadKey
	UUID      string // of the thread
	Workspace string
	Platform  event.Platform
	Channel   event.Channel
	Now       int64
	Token     int64  // identifies the transaction in the thread's row
	Dedupe    string // of the envelope
	AltKey    string // the dedupe key of another payload about the same message; empty for none
	// Claim claims the thread for this node if it is free, or extends this node's claim.
	Claim bool
}

// Accepted is the row of a thread that has counted an envelope.
type Accepted struct {
	Thread         int64
	Key            event.ThreadKey
	Owner          string // the node that has claimed it; empty for none
	Fence, Pending int64
	Free           bool // it has no run, and no turn that waits
}

var (
	acceptByKey     = accept(`$1`, unusedUUID)
	acceptByPayload = accept(`coalesce((SELECT t.key FROM envelopes e JOIN threads t ON t.id = e.thread WHERE e.workspace = $3 AND e.dedupe_key = $14), $1)`, "")
)

// accept returns the statement of Accept for a key, $1 or another one, under one more condition.
func accept(key, condition string) string {
	// excluded is the row that a new thread would have. An accept that reaches the server late
	// shortens no lease.
	const ours = `excluded.owner <> '' AND threads.owner = excluded.owner AND threads.lease_until < excluded.lease_until`
	const free = `excluded.owner <> '' AND threads.owner <> excluded.owner AND (threads.owner = ''
		OR threads.lease_until <= $11 AND threads.pending = 0 AND threads.run_id IS NULL)`
	return fmt.Sprintf(`
		INSERT INTO threads (key, uuid, workspace, platform, channel, parent, owner, lease_until, fence, pending, intake_at, accepting)
		SELECT %s, $2, $3, $4, $5, $13, $7, $8, 1, 1, $6, $9 WHERE NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND dedupe_key = $10)%s
		ON CONFLICT (key) DO UPDATE SET
			parent      = CASE WHEN threads.parent = '' THEN excluded.parent ELSE threads.parent END,
			pending     = threads.pending + 1,
			accepting   = excluded.accepting,
			intake_at   = coalesce(threads.intake_at, excluded.intake_at),
			fence       = CASE WHEN `+free+` THEN threads.fence + 1 ELSE threads.fence END,
			lease_until = CASE WHEN `+ours+` OR `+free+` THEN excluded.lease_until ELSE threads.lease_until END,
			owner       = CASE WHEN `+free+` THEN excluded.owner ELSE threads.owner END
		RETURNING id, key, CASE WHEN lease_until > $11 OR owner = $12 THEN owner ELSE '' END, fence, pending, run_id IS NULL AND turn_since IS NULL`, key, condition)
}

// Accept makes the thread of an envelope or finds it, and counts the envelope there, unless an envelope with its
// dedupe key is stored. If another payload about the same message is stored, its thread is the one. Accept leaves made as it is, now or
// later, if another thread has the UUID. A thread whose owner ended during its work is not claimed. See storage.Tx for Later.
func Accept(tx *storage.Txn, db *storage.DB, a Accepting, made *Accepted) {
	node := ""
	if a.Claim {
		node = db.Node
	}
	query, args := acceptByKey, []any{string(a.Key), a.UUID, a.Workspace, string(a.Platform), a.Channel.ID, a.Now, node, a.Now + db.Lease.Milliseconds(),
		a.Token, a.Dedupe, LeasesEnded(storage.Instant(a.Now), db.Lease), db.Node, a.Channel.Parent}
	if a.AltKey != "" {
		query, args = acceptByPayload, append(args, a.AltKey)
	}
	tx.Later(nil, []any{&made.Thread, (*string)(&made.Key), &made.Owner, &made.Fence, &made.Pending, &made.Free}, query, args...)
}

// First is a message that may be the first of its thread, and what follows from it.
type First struct {
	MessageID string // external id
	OpenedOn  string // external id of the message of another thread on which the thread was opened; empty for none
	// Run is the id of the run that begins with the message, and that another node may resume at Due. If it is empty, a turn
	// is due at Due. Due is 0 if there is no turn either.
	Run   string
	Agent string // of the run or the turn
	Due   int64
}

// AddFirst makes the thread of a first message, with a claim of this node, unless the thread, the message or the payload is known,
// or envelopes wait for the message. The message's envelope, which is settled, does not count.
func AddFirst(tx *storage.Txn, db *storage.DB, a Accepting, m First) {
	turn := []any{nil, "", nil, nil, int64(0), int64(0)}
	switch {
	case m.Run != "":
		turn = []any{m.Run, m.Agent, m.Due, nil, a.Now, int64(1)}
	case m.Due != 0:
		turn = []any{nil, m.Agent, m.Due, a.Now, int64(0), int64(0)}
	}
	tx.Do(`
		INSERT INTO threads (key, uuid, workspace, platform, channel, parent, owner, lease_until, fence, accepting, next_seq, last_at, opened_on,
			run_id, agent, turn_at, turn_since, run_begun_at, begun_seq, run_fence, run_left)
		SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BIGINT), 1, CAST($9 AS BIGINT), 2, CAST($13 AS BIGINT), $14,
			CAST($15 AS TEXT), $16, CAST($17 AS BIGINT), CAST($18 AS BIGINT), CAST($19 AS BIGINT), CAST($20 AS BIGINT), CAST($20 AS BIGINT), CAST($20 AS BIGINT)
		WHERE true`+unusedUUID+` AND NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND dedupe_key = $10)
			AND NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND dedupe_key = $11)
			AND NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND message_id = $12 AND state = 'pending' AND thread IS NULL)
			AND NOT EXISTS (SELECT 1 FROM messages WHERE workspace = $3 AND external_id = $12)
		ON CONFLICT (key) DO NOTHING`,
		append([]any{string(a.Key), a.UUID, a.Workspace, string(a.Platform), a.Channel.ID, a.Channel.Parent, db.Node, a.Now + db.Lease.Milliseconds(),
			a.Token, a.Dedupe, a.AltKey, m.MessageID, a.Now, m.OpenedOn}, turn...)...)
}

// Add makes a thread without a claim, unless there is one with its key.
func Add(tx *storage.Txn, platform event.Platform, channel string, t Thread) {
	tx.Do(`INSERT INTO threads (key, uuid, workspace, platform, channel) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING`,
		string(t.Key), t.ID, t.Workspace, string(platform), channel)
}
