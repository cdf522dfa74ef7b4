package journaltest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"parley/ingest/journal/storage"
)

// The contents of a column of text.
const (
	words = "words" // what people, agents or operators have said
	name  = "name"  // a person's name, maybe beside words
	none  = "none"  // ids, states, places and other words of programs
)

// columns says of each table what its columns of text have of people. A column with words or a name needs a way to leave the store, which
// the promise about a forgotten person tests.
var columns = map[string]map[string]string{
	"workspaces": {"id": none, "self": none},
	"channels":   {"workspace": none, "id": none, "type": none},
	"threads": {
		"key": none, "uuid": none, "workspace": none, "platform": none, "channel": none, "parent": none, "agent": none, "mode": none, "made_by": none, "opened_on": none, "owner": none,
		"bot_channel": none, "run_id": none, "run_bot_channel": none, "run_question": none, "question": none, "history": none,
		"run_answer": words, // of a run that works: its answer follows, and leaves as one
	},
	"participants": {"actor": none, "workspace": none},
	"actors":       {"workspace": none, "actor": none},
	"news":         {"workspace": none, "actor": none},
	"envelopes": {
		"workspace": none, "platform": none, "transport": none, "dedupe_key": none, "kind": none, "message_id": none, "channel": none, "state": none, "disposition": none, "reason": none,
		"message_uuid": none, "error": words, "body": name,
	},
	"messages": {
		"id": none, "workspace": none, "external_id": none, "client_message_id": none, "client_run_id": none, "sender_id": none, "author": none, "trigger": none, "reason": none, "agent": none,
		"origin": none, "revision": none, "continues": none, "envelopes": none, "run": none, "run_input": words, "content": words, "quotes": name, "metadata": name, "reactions": none,
	},
	"carried":         {"workspace": none, "message_id": none},
	"forgotten":       {"workspace": none, "sender_id": none},
	"attachments":     {"external_id": none, "mime_type": none, "type": none, "state": none, "bucket": none, "path": none, "sha256": none, "name": words, "words": words},
	"copies_to_check": {"bucket": none, "path": none},
	"runs":            {"id": none, "agent": none, "state": none, "bot_channel": none, "payer": none, "error": words},
	"run_attempts":    {"run": none, "node": none, "finish": none, "input_sha256": none, "error": words},
	"run_inputs":      {"run": none, "input": name},
	"questions":       {"run": none, "agent": none, "state": none, "body": words, "answer": words},
	"agent_choices":   {"agent": none, "name": none, "chosen": none, "offered": none},
	"agent_sessions":  {"agent": none, "known": none, "session": name},
	"run_events":      {"run": none, "workstream": none, "activity": none, "text": words, "details": words},
	"run_posts":       {"run": none, "key": none},
	"run_steps":       {"run": none, "body": name},
	"workstreams": {
		"id": none, "run": none, "asker": none, "workspace": none, "platform": none, "parent": none, "channel": none, "channel_parent": none, "thread": none, "agent": none, "state": none,
		"phase": none, "name": words, "task": words, "tool": words, "message": words, "summary": words, "error": words,
	},
	"schedules":      {"workspace": none, "id": none, "thread": none, "root": none, "plan": words},
	"schedule_ticks": {"workspace": none, "schedule": none, "message": none, "state": none, "error": words},
	"tickets":        {"hash": none, "workspace": none, "token": none, "path": none},
	"deliveries": {
		"run": none, "key": none, "workspace": none, "channel": none, "place": none, "state": none, "platform_id": none, "kind": none, "asker": none,
		"payload": words, "error": words, "file": words, "buttons": words, "card": words,
	},
	"paces":              {"workspace": none, "channel": none},
	"budgets":            {"workspace": none, "name": none},
	"strangers":          {"workspace": none, "sender_id": none, "name": name, "state": none, "question": none, "agent": none, "approvers": none, "decided_by": none},
	"retention_progress": {"task": none},
	"watermarks":         {"workspace": none},
	"gaps":               {"workspace": none, "channel": none},
	"adapter_state":      {"workspace": none, "name": none, "value": none},
	"exclusive_leases":   {"name": none, "owner": none},
	"blobs":              {"path": none, "bytes": words},
	"operator_log":       {"who": none, "what": none, "subject": none, "key": none, "note": words, "result": words, "error": words},
	"search_words":       {"words": words},
	"search_changes":     {},
	"search_progress":    {},
	"search_people":      {"workspace": none, "sender_id": none, "name": name, "words": name},
	"usage_days":         {"workspace": none, "channel": none, "agent": none, "person": none},
	"usage_progress":     {},
	"unfinished_copy":    {},
}

// columnsKnown holds if the schema has no other column of text.
func columnsKnown(f *fixture) {
	known := map[string]map[string]string{}
	for _, t := range f.tables() {
		known[t.Name] = map[string]string{}
		for _, c := range t.Columns {
			if c.Type != "INTEGER" {
				known[t.Name][c.Name] = cmp.Or(columns[t.Name][c.Name], "say in columns.go what it has of people: words, name or none")
			}
		}
	}
	for table, has := range columns {
		if _, exists := known[table]; !exists || table == "search_words" {
			known[table] = has
		}
	}
	same(f, "columns", known, columns)
}

// tables returns the journal's tables, without those of an engine and of its index of words.
func (f *fixture) tables() (tables []storage.Table) {
	f.Helper()
	f.must(f.engine.Read(f.ctx, func(tx storage.Tx) (err error) {
		tables, err = tx.Tables()
		return err
	}))
	return slices.DeleteFunc(tables, func(t storage.Table) bool {
		return strings.HasPrefix(t.Name, "search_words_") || t.Name == "sqlite_sequence" || t.Name == "schema_migrations"
	})
}

// hits returns the columns in which a text stands that has one of some words, in any case.
func (f *fixture) hits(texts ...string) []string {
	f.Helper()
	found := map[string]bool{}
	for _, t := range f.tables() {
		for _, c := range t.Columns {
			column := c.Name
			if t.Name == "search_words" && column == "words" {
				column = `CAST(words AS TEXT)`
			}
			f.must(f.engine.Read(f.ctx, func(tx storage.Tx) error {
				return tx.Rows(func(scan func(...any) error) error {
					var value any
					err := scan(&value)
					text := ""
					switch v := value.(type) {
					case string:
						text = v
					case []byte:
						text = string(v)
					}
					for _, word := range texts {
						if strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
							found[t.Name+"."+c.Name] = true
						}
					}
					return err
				}, `SELECT `+column+` FROM `+t.Name)
			}))
		}
	}
	return slices.Sorted(maps.Keys(found))
}
