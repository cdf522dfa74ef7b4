package transfer

import (
	"fmt"
	"slices"
	"strings"
)

// column is one column of a table. Each engine has one type for each kind: int, text
// and bytes.
type column struct{ name, kind string }

// table is one table of the journal's schema.
type table struct {
	name    string
	key     int // the number of columns in the primary key, which come first
	columns []column
}

// tables lists the copied tables with all their columns. A test compares the list
// with the schemas of both engines.
var tables = []table{
	newTable("workspaces", 1, `id text, self text, removed_at int`),
	newTable("channels", 2, `workspace text, id text, type text`),
	newTable("threads", 1, `id int, key text, uuid text, workspace text, platform text, channel text, parent text, agent text, mode text, made_by text, made_at int, closed int, opened_on text, next_seq
		int, last_at int, begun_seq int, context_from int, pending int, owner text, lease_until int, fence int, intake_at int, turn_at int,
		turn_since int, bot_channel text, run_id text, run_begun_at int, run_not_before int, run_attempts int,
		run_fence int, run_claims int, run_reruns int, run_left int, run_edited_at int, run_bot_channel text, run_context_from int, run_question text, question text,
		run_seq int, run_events int, run_event_at int, run_dropped int, run_taken int, run_answer text, accepting int, history text, changed int`),
	newTable("participants", 2, `thread int, actor text, workspace text, made_at int`),
	newTable("actors", 2, `workspace text, actor text, last_seq int`),
	newTable("news", 3, `workspace text, actor text, seq int, thread int, message int, at int`),
	newTable("envelopes", 1, `id int, workspace text, platform text, transport text, dedupe_key text, kind text, thread int, message_id text,
		channel text, resubmitted_at int, received_at int, accepted_at int, state text, attempts int, claims int, not_before int,
		disposition text, reason text, error text, message int, message_uuid text, body bytes`),
	newTable("messages", 1, `row int, id text, thread int, seq int, workspace text, external_id text, client_message_id text, client_run_id text, run_input text, sender_id
		text, author text, trigger text, reason text, agent text, memory int, content text, quotes text, metadata bytes, version int,
		origin text, revision text, files int, files_until int, continues text, reactions text, envelopes text, sent_at int, created_at int, edited_at
		int, deleted_at int, run text, context_after int, base_seq int, gap int, latest_seen_seq int, server_seq int, sender_base_seq int`),
	newTable("carried", 3, `workspace text, message_id text, message int`),
	newTable("attachments", 1, `id int, message int, part int, external_id text, name text, mime_type text,
		size int, type text, duration_ms int, words text, state text, bucket text, path text, sha256 text`),
	newTable("copies_to_check", 2, `bucket text, path text, check_at int, removed_until int`),
	newTable("runs", 1, `id text, thread int, agent text, state text, begun_at int, answered_at int, ended_at int, bot_channel text, error text, dropped int`),
	newTable("run_attempts", 2, `run text, n int, node text, begun_at int, answered_at int, ended_at int, error text, finish text, tokens_in int, tokens_out int, input_sha256 text`),
	newTable("run_inputs", 2, `run text, n int, thread int, at int, input text`),
	newTable("questions", 1, `run text, thread int, agent text, state text, body text, answer text, asked_at int, until_at int`),
	newTable("run_events", 2, `run text, seq int, type int, workstream text, activity text, text text, details bytes, final int, at int`),
	newTable("run_posts", 2, `run text, key text, messages int, at int`),
	newTable("run_steps", 2, `run text, n int, body text, at int`),
	newTable("workstreams", 1, `id text, run text, asker text, workspace text, platform text, parent text, channel text, channel_parent text, thread text, agent text,
		name text, task text, interactive int, apart int, state text, phase text, tool text, iteration int, message text, launched_at int, deadline_at int,
		ended_at int, summary text, error text, said int, reported int, due_at int`),
	newTable("schedules", 2, `workspace text, id text, thread text, plan text, paused int, next_at int, root text, created_at int`),
	newTable("schedule_ticks", 3, `workspace text, schedule text, planned_at int, message text, state text, error text, tries int, due_at int`),
	newTable("tickets", 1, `hash text, workspace text, token text, path text, until_at int`),
	newTable("deliveries", 1, `id int, thread int, run text, part int, key text, workspace text, channel text, place text, payload text, state
		text, attempts int, due_at int, reserved_at int, send_by int, created_at int, platform_id text, error text,
		kind text, replaces int, stream int, asker text, file text, buttons text, changes int, card text`),
	newTable("paces", 2, `workspace text, channel text, next_at int, blocked_until int, left_at int`),
	newTable("budgets", 2, `workspace text, name text, until_at int, runs int, told int`),
	newTable("watermarks", 1, `workspace text, at int`),
	newTable("gaps", 2, `workspace text, channel text, from_at int, until_at int`),
	newTable("adapter_state", 2, `workspace text, name text, value text`),
	newTable("retention_progress", 1, `task text, position int`),
	newTable("operator_log", 1, `id int, at int, who text, what text, subject text, note text, key text, result text, error text`),
	newTable("blobs", 2, `path text, part int, bytes bytes`),
}

// newTable reads columns from "name kind, name kind, …".
func newTable(name string, key int, columns string) table {
	t := table{name: name, key: key}
	for one := range strings.SplitSeq(columns, ",") {
		words := strings.Fields(one)
		t.columns = append(t.columns, column{words[0], words[1]})
	}
	return t
}

// names returns the first n columns as an SQL list.
func (t table) names(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = t.columns[i].name
	}
	return strings.Join(list, ", ")
}

// insert returns the statement that writes one row.
func (t table) insert() string {
	n := len(t.columns)
	return "INSERT INTO " + t.name + " (" + t.names(n) + ") VALUES (" + placeholders(n) + ")"
}

// size returns the expression for the number of bytes in a row's texts and blobs.
func (t table) size() string {
	sizes := []string{"CAST(0 AS BIGINT)"}
	for _, c := range t.columns {
		if c.kind != "int" {
			sizes = append(sizes, "coalesce(octet_length("+c.name+"), 0)")
		}
	}
	return strings.Join(sizes, " + ")
}

// following returns the end of a SELECT for the rows after a primary key (nil: for
// the first rows), and its arguments. The caller adds the greatest number of rows as
// the last argument.
func (t table) following(after row) (end string, args []any) {
	keys := t.names(t.key)
	if after != nil {
		end = " WHERE (" + keys + ") > (" + placeholders(t.key) + ")"
	}
	return fmt.Sprintf(" FROM %s%s ORDER BY %s LIMIT CAST($%d AS BIGINT)", t.name, end, keys, len(after)+1), slices.Clip(after)
}

// placeholders returns $1, $2 … for n arguments.
func placeholders(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(list, ", ")
}
