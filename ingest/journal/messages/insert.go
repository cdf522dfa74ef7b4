package messages

import (
	"cmp"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// contextAfter is the thread_seq after which the block of the thread's next turn begins.
const contextAfter = `CASE WHEN context_from > begun_seq THEN context_from ELSE begun_seq END`

// awaiting is the condition that an envelope waits for a target: $1 is the workspace, $2
// the target.
const awaiting = `envelopes.workspace = $1 AND envelopes.message_id = $2 AND envelopes.state = 'pending' AND envelopes.thread IS NULL`

// insertMessage stores a message with the thread's next thread_seq, and locks the thread
// for the rest of the transaction. If a run's id is given, and the turn need not wait,
// the run begins with the message.
const insertMessage = `
	INSERT INTO messages (id, thread, seq, workspace, external_id, client_message_id, sender_id, author, trigger, content, quotes,
		metadata, version, origin, revision, files, envelopes, sent_at, created_at, reason, agent, memory,
		sender_base_seq, latest_seen_seq, server_seq, client_run_id, run_input, files_until, continues, run, context_after, base_seq)
	SELECT $5, t.id, CASE WHEN $6 = 1 THEN t.next_seq END, $1, $7, $8, $9, $10, $11, $12, $13,
		$14, $15, $16, $17, $18, $19, $20, $21, $23, $24, $25,
		CAST($26 AS BIGINT), CAST($27 AS BIGINT), CASE WHEN $28 = 1 THEN t.next_seq - 1 END, $29, $30, $31, CAST($32 AS TEXT), t.begins, CASE WHEN t.begins IS NOT NULL THEN t.behind END, CASE WHEN t.begins IS NOT NULL THEN t.next_seq END
	FROM (SELECT id, next_seq, ` + contextAfter + ` AS behind, CASE WHEN $4 <> '' AND run_id IS NULL AND turn_since IS NULL AND pending = 1
			AND NOT EXISTS (SELECT 1 FROM envelopes WHERE ` + awaiting + `) THEN CAST($4 AS TEXT) END AS begins
		FROM threads WHERE id = $3 AND fence = $22`

const insertMessageEnd = ` FOR UPDATE) AS t WHERE true ON CONFLICT DO NOTHING
	RETURNING row, seq, run, context_after, EXISTS (SELECT 1 FROM envelopes WHERE ` + awaiting + `)`

// Insertion is a message to store.
type Insertion struct {
	*Message
	Workspace string
	Fence     int64 // of the claim of its thread
	Now       int64
	// Begins is the id of the run that begins with the message; empty for none.
	Begins          string
	Noted, NoMemory bool
	Known           *event.Known // of an agent outside Parley; nil for none
	RunInput        string
	Continues       any // the run that has the message whose rest it is; null for none
}

// Inserted is a message that was stored.
type Inserted struct {
	ContextAfter int64 // of the run that has begun with it
	Awaited      bool  // envelopes wait for it
}

// Insert stores a message, and sets its row, its thread_seq and its run. If an envelope is given,
// it stores the message only if the envelope is pending in the thread, and the thread is open and has no
// question. It returns false, and has stored nothing, if the condition does not hold, the claim has ended,
// or the message is known.
func Insert(tx *storage.Txn, n Insertion, envelope int64) (made Inserted, ok bool) {
	const fresh = ` AND mode = 'open' AND question = '' AND EXISTS (SELECT 1 FROM envelopes WHERE envelopes.id = $33 AND envelopes.thread = threads.id AND envelopes.state = 'pending')`
	m, known := n.Message, cmp.Or(n.Known, &event.Known{})
	args := []any{n.Workspace, m.ExternalID, m.Thread, n.Begins, m.UUID, storage.Number(!n.Noted), storage.Optional(m.ExternalID), storage.Optional(m.ClientMessageID), m.SenderID,
		string(m.Author), string(m.Trigger), m.Content, packQuotes(tx, m.Quotes), storage.Bytes(m.Metadata), m.Version, string(m.Origin), m.Revision,
		m.FileCount, m.Envelopes, storage.Millis(m.SentAt), n.Now, n.Fence, m.Reason, m.Agent, storage.Number(!n.NoMemory),
		storage.Nullable(known.BaseSeq), storage.Nullable(known.LatestSeenSeq), storage.Number(n.Known != nil), storage.Optional(m.ClientRunID), n.RunInput, storage.Millis(m.FilesUntil), n.Continues}
	query := insertMessage + insertMessageEnd
	if envelope != 0 {
		query, args = insertMessage+fresh+insertMessageEnd, append(args, envelope)
	}
	ok = tx.Row([]any{&m.Row, &m.Seq, &m.Run, &made.ContextAfter, &made.Awaited}, query, args...)
	return made, ok
}

// insertFirst stores a message with the thread_seq 1 if the transaction has made its thread and its envelope. A run
// may begin with it.
const insertFirst = `
	INSERT INTO messages (id, thread, seq, workspace, external_id, client_message_id, sender_id, author, trigger, content, quotes,
		metadata, version, origin, revision, envelopes, sent_at, created_at, reason, agent, memory,
		sender_base_seq, latest_seen_seq, server_seq, client_run_id, run_input, run, context_after, base_seq)
	SELECT $4, t.id, 1, $3, $5, $6, $7, $8, $9, $10, $11,
		$12, $13, $14, $15, CAST(e.id AS TEXT), $16, $17, $18, $19, $20,
		CAST($21 AS BIGINT), CAST($22 AS BIGINT), CAST($23 AS BIGINT), $24, $25, CAST($26 AS TEXT), CAST($27 AS BIGINT), CAST($28 AS BIGINT)
	FROM threads t JOIN envelopes e ON e.workspace = $3 AND e.dedupe_key = $29 AND e.thread = t.id WHERE t.key = $1 AND t.accepting = $2
	RETURNING row, thread, CAST(envelopes AS BIGINT)`

// First is the thread and the envelope of a message that is the first of its thread.
type First struct {
	Key    event.ThreadKey
	Token  int64  // of the transaction, in the thread's row
	Dedupe string // of the envelope
	// Thread and Envelope get their rows.
	Thread, Envelope *int64
}

// InsertFirst stores a message that is the first of its thread, if the transaction has made the thread and the
// envelope. It sets their rows and the message's, now or later; see storage.Tx.
func InsertFirst(tx *storage.Txn, n Insertion, first First) {
	m, known := n.Message, cmp.Or(n.Known, &event.Known{})
	var after, base, server any
	if m.Seq = 1; n.Begins != "" {
		m.Run, after, base = n.Begins, int64(0), int64(1)
	}
	if n.Known != nil {
		server = int64(0)
	}
	tx.Later(nil, []any{&m.Row, first.Thread, first.Envelope}, insertFirst, string(first.Key), first.Token, n.Workspace, m.UUID, storage.Optional(m.ExternalID), storage.Optional(m.ClientMessageID),
		m.SenderID, string(m.Author), string(m.Trigger), m.Content, packQuotes(tx, m.Quotes), storage.Bytes(m.Metadata), m.Version, string(m.Origin), m.Revision,
		storage.Millis(m.SentAt), n.Now, m.Reason, m.Agent, storage.Number(!n.NoMemory), storage.Nullable(known.BaseSeq), storage.Nullable(known.LatestSeenSeq), server,
		storage.Optional(m.ClientRunID), n.RunInput, storage.Optional(m.Run), after, base, first.Dedupe)
}

// AddFiles stores the message's files from a part on.
func AddFiles(tx *storage.Txn, row *Message, part int, list []event.Attachment) {
	row.Attachments = append(row.Attachments, files.Add(tx, row.Row, part, list)...)
}

// InsertReply stores the reply of a run with the thread's next thread_seq, and sets its row and its
// thread_seq. base is the highest thread_seq in the agent's input, and filesRead the number of the files in
// it. It returns false, and has stored nothing, if the run is not the thread's any more, if it has a later
// answer and isLater is not set, if every message of the turn was deleted, or if the input was incomplete,
// unless isLast is set.
func InsertReply(tx *storage.Txn, m *Message, workspace string, fence, base, files int64, isLater, isLast bool, filesRead int64) bool {
	return tx.Row([]any{&m.Row, &m.Seq}, `
		INSERT INTO messages (id, external_id, thread, seq, workspace, sender_id, author, trigger, content, metadata, version, origin,
			sent_at, created_at, run, base_seq, latest_seen_seq, server_seq, files)
		SELECT $4, $4, t.id, t.next_seq, $5, $6, 'agent', 'none', $7, $8, $9, 'live', $10, $10, t.run_id, $11, $11, t.next_seq - 1, $13
		FROM (SELECT id, next_seq, run_id FROM threads WHERE id = $1 AND fence = $2 AND run_id = $3 AND run_left > 0
			AND (run_answer IS NULL OR $12 = 1) AND ($14 = 1 OR NOT (`+incomplete(`$1`, `$3`, `$15`)+`)) FOR UPDATE) AS t WHERE true
		RETURNING row, seq`,
		m.Thread, fence, m.Run, m.UUID, workspace, m.SenderID, m.Content, m.Metadata, m.Version, storage.Millis(m.CreatedAt), base, storage.Number(isLater), files,
		storage.Number(isLast), filesRead)
}

// SystemSender is the sender_id of notices.
const SystemSender = "system:parley"

// InsertNotice stores what Parley itself says, with a thread_seq. Its thread must be locked.
func InsertNotice(tx *storage.Txn, thread, seq int64, workspace string, run any, text string, metadata []byte, now int64) {
	tx.Do(`INSERT INTO messages (id, thread, seq, workspace, sender_id, author, trigger, content, metadata, version, origin, sent_at, created_at, run)
		VALUES ($1, $2, $3, $4, $5, 'system', 'none', $6, $7, $8, 'live', $9, $9, $10)`,
		uuid.Must(uuid.NewV7()).String(), thread, seq, workspace, SystemSender, text, storage.Bytes(metadata), int64(ContractVersion), now, run)
}

// InsertRow stores a stage of work that an agent has finished in a run, with a thread_seq. No agent and no platform gets
// the row. Its thread must be locked.
func InsertRow(tx *storage.Txn, thread, seq int64, workspace, agent, text string, metadata []byte, now int64) {
	tx.Do(`INSERT INTO messages (id, thread, seq, workspace, sender_id, author, trigger, memory, content, metadata, version, origin, sent_at, created_at)
		VALUES ($1, $2, $3, $4, $5, 'tool', 'none', 0, $6, $7, $8, 'live', $9, $9)`,
		uuid.Must(uuid.NewV7()).String(), thread, seq, workspace, "agent:"+agent, text, storage.Bytes(metadata), int64(ContractVersion), now)
}

// Renumber gives a message a later thread_seq.
func Renumber(tx *storage.Txn, m *Message, seq int64) {
	m.Seq = seq
	tx.Do(`UPDATE messages SET seq = $2 WHERE row = $1`, m.Row, seq)
}

// InsertFinished stores a message of a turn that has ended: one of another system, or a post of ours. after
// and base are the bounds of the block of the turn whose first message it is; null for another one.
func InsertFinished(tx *storage.Txn, m *Message, workspace string, after, base any) {
	tx.Row([]any{&m.Row}, `INSERT INTO messages (id, thread, seq, workspace, external_id, sender_id, author, trigger, content, metadata, version, origin,
			sent_at, created_at, run, context_after, base_seq, files)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'none', $8, $9, $10, $11, $12, $12, $13, $14, $15, $16) RETURNING row`,
		m.UUID, m.Thread, m.Seq, workspace, m.ExternalID, m.SenderID, string(m.Author), m.Content, storage.Bytes(m.Metadata), m.Version, string(m.Origin),
		storage.Millis(m.CreatedAt), m.Run, after, base, m.FileCount)
}
