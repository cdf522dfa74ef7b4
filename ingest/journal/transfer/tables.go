package transfer

import "strings"

// kind is what a column holds, the same on every engine.
type kind string

const (
	integer kind = "int"
	text    kind = "text"
	blob    kind = "bytes"
)

// column is one column of a table.
type column struct {
	name     string
	kind     kind
	nullable bool
	// carried is what a copy has in this place, as an expression on the source's
	// row; empty for the same value.
	carried string
}

// table is one table of the journal's schema.
type table struct {
	name string
	// columns begin with those of the primary key.
	columns []column
	key     int // how many columns are the primary key
	// own is the condition that a row is the journal's, where the table also
	// holds rows about the store itself; empty for all.
	own string
	// thread is the thread that a row belongs to, as an expression; empty where
	// no row belongs to any.
	thread string
}

// left are the tables that are not copied: what nodes hold for a while, and the
// engine's own account of its schema.
func left() []string { return []string{"holds", "schema_migrations"} }

// tables are what is copied, in this order. A copy of a thread belongs to nobody,
// and its fence is higher than what any node has seen.
func tables() []table {
	return []table{
		{name: "workspaces", key: 1, columns: columns(`id text, self text`)},
		{name: "channels", key: 2, columns: columns(`workspace text, id text, type text`)},
		{name: "threads", key: 1, thread: "id", columns: columns(`id int, key text, uuid text, workspace text,
			platform text, channel text, agent text, mode text, opened_on text, next_seq int, begun_seq int,
			pending int, owner text = '', lease_until int = 0, fence int = fence + 1, intake_at int null,
			turn_at int null, turn_since int null, run int, deliver_at int null, bot_channel text null, accepting int,
			viewing text, preface text`)},
		{name: "envelopes", key: 1, thread: "thread", columns: columns(`id int, workspace text, platform text,
			transport text, dedupe_key text, kind text, thread int null, subject text, received_at int,
			accepted_at int, state text, attempts int, claims int, not_before int, disposition text, reason text,
			error text, message int null, body bytes`)},
		{name: "aside", key: 1, columns: columns(`id int, workspace text, channel text, dedupe_key text, platform text,
			transport text, received_at int, body bytes`)},
		{name: "messages", key: 1, thread: "thread", columns: columns(`id int, thread int, seq int null,
			workspace text, external_id text null, client_message_id text null, sender_id text, author text,
			trigger text, content text, quotes text, metadata bytes, version int, origin text, revision text,
			files int, reactions text, envelopes text, sent_at int, created_at int, edited_at int, deleted_at int,
			run int null, base_seq int null, latest_seen_seq int null, server_seq int null`)},
		{name: "attachments", key: 1, thread: "(SELECT m.thread FROM messages m WHERE m.id = attachments.message)",
			columns: columns(`id int, message int, part int, external_id text, name text, mime_type text, size int,
			state text, bucket text, path text, sha256 text`)},
		{name: "runs", key: 1, thread: "thread", columns: columns(`row int, id text, thread int, agent text,
			parent text, workstream text, state text, first_seq int, context_after int, base_seq int, attempts int,
			claims int, reruns int, not_before int, begun_at int, answered_at int, ended_at int, deadline int,
			bot_channel text null, input bytes null, error text, previews int, sign text, sign_by int`)},
		{name: "run_events", key: 2, thread: "(SELECT r.thread FROM runs r WHERE r.row = run_events.run)",
			columns: columns(`run int, seq int, type int, workstream text, activity text, text text,
			details bytes null, final int, at int`)},
		{name: "deliveries", key: 1, thread: "thread", columns: columns(`id int, thread int, run int, part int,
			key text, workspace text, channel text, root text, payload text, state text, attempts int,
			reserved_at int, not_before int, send_by int, created_at int, platform_id text null, error text,
			kind text, replaces int, stream int, asker text, file text`)},
		{name: "paces", key: 2, columns: columns(`workspace text, channel text, next_at int, blocked_until int,
			left_at int`)},
		{name: "cursors", key: 2, own: "NOT (workspace = '' AND substr(channel, 1, 6) = 'store/')",
			columns: columns(`workspace text, channel text, position text`)},
		{name: "blobs", key: 2, columns: columns(`path text, part int, bytes bytes`)},
	}
}

// columns reads "name kind", followed by "null" where the column may be that,
// and by "= expression" for what a copy carries.
func columns(list string) []column {
	var made []column
	for _, one := range strings.Split(list, ",") {
		one, carried, _ := strings.Cut(one, " = ")
		words := strings.Fields(one)
		made = append(made, column{name: words[0], kind: kind(words[1]), nullable: len(words) > 2, carried: carried})
	}
	return made
}

// keys are the columns of the primary key.
func (t table) keys() []column { return t.columns[:t.key] }

// names lists columns as SQL does.
func names(columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.name
	}
	return strings.Join(list, ", ")
}

// marks are n placeholders.
func marks(n int) string { return strings.Repeat(", ?", n)[2:] }

// insert is the statement that writes one row, its columns in their order.
func (t table) insert() string {
	return "INSERT INTO " + t.name + " (" + names(t.columns) + ") VALUES (" + marks(len(t.columns)) + ")"
}
