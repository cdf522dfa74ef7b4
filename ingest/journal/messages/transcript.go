package messages

import (
	"cmp"
	"slices"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// lineColumns are the columns of a message that a run and its transcript need.
const lineColumns = `m.row, m.id, m.seq, m.external_id, m.sender_id, m.author, m.reason, m.agent, m.content, m.quotes, m.metadata,
	m.version, m.memory, m.files, m.sent_at, m.created_at, m.edited_at, m.deleted_at, m.run, m.client_run_id`

// line is the scan target for lineColumns.
func (m *Message) line() []any {
	return []any{&m.Row, &m.UUID, &m.Seq, &m.ExternalID, &m.SenderID, (*string)(&m.Author), &m.Reason, &m.Agent, &m.Content, &m.quotes, &m.Metadata,
		&m.Version, &m.Memory, &m.FileCount, &m.SentAt, &m.CreatedAt, &m.EditedAt, &m.DeletedAt, &m.Run, &m.ClientRunID}
}

// lines reads the columns of messages that a transcript shows, with their files.
func lines(tx *storage.Txn, where string, args ...any) []Message {
	return Complete(tx, storage.Rows(tx, (*Message).line, `SELECT `+lineColumns+` FROM messages m WHERE `+where, args...))
}

// ofTurn is the condition that a message m of a run is one of its turn: it asked for the run, or it is the run's answer or one of
// the rows before that. A notice of Parley about the run is not; a report or a prompt of Parley that the run answers is.
const ofTurn = `(m.author <> 'system' OR m.trigger = 'run')`

// Lines returns the messages of an unfinished run by time, without deleted ones. It has no reply.
func Lines(tx *storage.Txn, run string) []Message {
	return lines(tx, `m.run = $1 AND m.deleted_at = 0 ORDER BY m.sent_at, m.seq`, run)
}

// Questions returns the messages of a turn by time, without deleted ones and those of its agent.
func Questions(tx *storage.Txn, run string) []Message {
	return lines(tx, `m.run = $1 AND m.deleted_at = 0 AND m.author <> 'agent' AND `+ofTurn+` ORDER BY m.sent_at, m.seq`, run)
}

// TurnLine is a message of a turn, with the bounds of the turn's block.
type TurnLine struct {
	Message
	After, UpTo int64
	Gap         bool

	at, seq int64 // of the turn's first message
}

// Turns are those of a thread.
type Turns struct {
	Thread int64
	Except string // the run of a turn that is left out
	From   int64  // the thread_seq after which they begin
	Before int64  // the thread_seq before which their blocks begin; 0 is no bound
}

// Lines returns the messages of at most limit turns after the first behind ones, the newest turn first, and each turn's by
// time. The caller completes those that it shows; see Complete.
func (t Turns) Lines(tx *storage.Txn, behind, limit int) []TurnLine {
	before, args := ``, []any{t.Thread, t.Except, int64(limit), int64(behind), t.From}
	if t.Before > 0 {
		before, args = ` AND context_after < $6`, append(args, t.Before)
	}
	// SQLite would use an index of thread_seq for seq, and sort the whole thread; +seq has none.
	list := storage.Rows(tx, func(l *TurnLine) []any {
		return append([]any{&l.After, &l.UpTo, &l.Gap, &l.at, &l.seq}, l.line()...)
	}, `
		SELECT o.context_after, o.base_seq, o.gap, o.sent_at, o.seq, `+lineColumns+`
		FROM (SELECT run, context_after, base_seq, gap, sent_at, seq FROM messages WHERE thread = $1 AND context_after IS NOT NULL AND run <> $2 AND +seq > $5`+before+`
			ORDER BY sent_at DESC, seq DESC LIMIT CAST($3 AS BIGINT) OFFSET CAST($4 AS BIGINT)) AS o
		JOIN messages m ON m.run = o.run AND `+ofTurn, args...)
	// A store would write all columns of the lines once more to sort them.
	slices.SortFunc(list, func(a, b TurnLine) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.seq, a.seq), a.SentAt.Compare(b.SentAt), cmp.Compare(a.Seq, b.Seq))
	})
	return list
}

// Block is the part of a thread in front of a turn: its passive messages after a thread_seq and up to another one.
type Block struct{ Thread, After, UpTo int64 }

const (
	// passive is the condition that a message belongs to a block. A deleted message has no trigger.
	passive = `thread = $1 AND seq > $2 AND seq <= $3 AND (trigger = 'passive' OR ` + neverBegun + `) AND memory = 1 AND origin <> 'context'
		AND (content <> '' OR files > 0 OR quotes <> '')`
	// neverBegun is the condition that a message asked for a run that was stopped before it began. Then
	// no turn has the message.
	neverBegun = `trigger = 'run' AND run IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM messages AS turn WHERE turn.run = messages.run AND turn.context_after IS NOT NULL)`
)

// Newest returns the newest messages of the block by time, at most limit, the newest first. Only the last ones that
// were recorded, among them, are put in the order of time, so that the cost is bounded.
func (b Block) Newest(tx *storage.Txn, limit, among int) []Message {
	return lines(tx, `row IN (SELECT row FROM (SELECT row, sent_at, seq FROM messages WHERE `+passive+` ORDER BY seq DESC LIMIT CAST($5 AS BIGINT)) AS last
		ORDER BY sent_at DESC, seq DESC LIMIT CAST($4 AS BIGINT)) ORDER BY sent_at DESC, seq DESC`,
		b.Thread, b.After, b.UpTo, int64(limit), int64(among))
}

// Count returns the number of messages of the block, at most limit.
func (b Block) Count(tx *storage.Txn, limit int) int {
	var n int64
	tx.Row([]any{&n}, `SELECT count(*) FROM (SELECT 1 FROM messages WHERE `+passive+` LIMIT CAST($4 AS BIGINT)) AS earlier`,
		b.Thread, b.After, b.UpTo, int64(limit))
	return int(n)
}

// Root returns the first message of a thread, if it belongs to a block; nil if it does not.
func Root(tx *storage.Txn, thread int64) *Message {
	if list := lines(tx, `row IN (SELECT row FROM messages WHERE `+passive+`)`, thread, int64(0), int64(1)); len(list) > 0 {
		return &list[0]
	}
	return nil
}

// ReadBefore returns the passive messages between two thread_seqs, which one transaction has stored as the history of a thread, the newest
// first. A deleted one, or one that a run has, is not passive any more.
func ReadBefore(tx *storage.Txn, thread, first, last int64) []Message {
	return lines(tx, `thread = $1 AND seq BETWEEN $2 AND $3 AND trigger = 'passive'
		AND (content <> '' OR files > 0 OR quotes <> '') ORDER BY sent_at DESC, seq DESC LIMIT CAST($4 AS BIGINT)`, thread, first, last, last-first+1)
}

// mostBelow bounds the further messages of another thread that stand below its first post.
const mostBelow = 20

// Opening returns the message on which a thread was opened, by the platform's id, and the other messages of its turn, by time. It is
// one of another thread. A reply of ours has the ids of its posts, and a message that a post of ours has shown to people has that of
// the post.
func Opening(tx *storage.Txn, thread int64, workspace, openedOn string) []Message {
	const elsewhere = ` AND thread <> $3 AND deleted_at = 0 AND seq IS NOT NULL`
	opening := find(tx, `workspace = $1 AND external_id = $2`+elsewhere, workspace, openedOn, thread)
	if opening == nil {
		opening = find(tx, replyOf+`)`+elsewhere, workspace, openedOn, thread)
	}
	if opening == nil {
		opening = find(tx, `id = (SELECT run FROM deliveries WHERE workspace = $1 AND platform_id = $2) AND author IN ('human', 'bot')`+elsewhere, workspace, openedOn, thread)
	}
	switch {
	case opening == nil:
		return nil
	case opening.Run != "":
		turn := lines(tx, `m.run = $1 AND m.author <> 'system' AND m.memory = 1 AND m.deleted_at = 0 ORDER BY m.sent_at, m.seq`, opening.Run)
		return append(turn, goesOn(tx, opening)...)
	}
	LoadFiles(tx, opening)
	return []Message{*opening}
}

// goesOn reads the messages after the turn of an opening, up to the first message of a person. People see these messages below the opening, if only
// Parley and programs ask in that thread.
func goesOn(tx *storage.Txn, opening *Message) []Message {
	const asked = ` AND m.author <> 'agent' AND m.reason <> 'schedule' AND m.author <> 'system' AND m.external_id NOT LIKE 'injected:%'`
	if tx.Has(`SELECT 1 FROM messages m WHERE m.run = $1`+asked+` LIMIT 1`, opening.Run) {
		return nil
	}
	return lines(tx, `m.thread = $1 AND m.seq > (SELECT max(seq) FROM messages WHERE run = $2) AND m.author <> 'system' AND m.memory = 1 AND m.deleted_at = 0
		AND m.seq < coalesce((SELECT min(m.seq) FROM messages m WHERE m.thread = $1 AND m.seq > (SELECT max(seq) FROM messages WHERE run = $2)`+asked+`), 9223372036854775807)
		ORDER BY m.seq LIMIT CAST($3 AS BIGINT)`, opening.Thread, opening.Run, int64(mostBelow))
}

// Told returns the passive messages in which Parley has told a run of its workstreams after a thread_seq.
func Told(tx *storage.Txn, thread, after int64) []Message {
	return lines(tx, `m.thread = $1 AND m.seq > $2 AND m.trigger = 'passive' AND m.reason = $3 ORDER BY m.seq`, thread, after, string(event.ReasonWorkstream))
}
