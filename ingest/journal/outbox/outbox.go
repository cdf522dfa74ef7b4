// Package outbox stores deliveries, which put posts on platforms, and the pace of each channel.
package outbox

import "parley/ingest/journal/storage"

// Outbox has the deliveries of a journal.
type Outbox struct{ db *storage.DB }

// New returns the deliveries in a store.
func New(db *storage.DB) *Outbox { return &Outbox{db} }

// AgedPayloads returns the step for the contents of deliveries that have ended before a bound.
func AgedPayloads(before int64) storage.Step {
	return storage.Step{Name: "payloads", Bound: before, Statements: []string{`UPDATE deliveries SET payload = '', file = '', buttons = '', card = '' WHERE id IN (SELECT id FROM deliveries
		WHERE state IN ('sent', 'unknown', 'failed') AND (payload <> '' OR file <> '') AND due_at <= $1 ORDER BY due_at LIMIT 100)`}}
}

// AgedPaces returns the step for paces whose times have passed before a bound.
func AgedPaces(before int64) storage.Step {
	return storage.Step{Name: "paces", Bound: before, Statements: []string{`DELETE FROM paces WHERE (workspace, channel) IN (SELECT workspace, channel FROM paces
		WHERE next_at <= $1 AND blocked_until <= $1 AND left_at <= $1 LIMIT 100)`}}
}

// OfWorkspace returns the steps for the rows of a removed workspace.
func OfWorkspace(workspace string) []storage.Step {
	return []storage.Step{storage.ByID(workspace, "deliveries", "id", 100), storage.ByKey(workspace, "paces", "channel")}
}

// Texts are the texts of the deliveries that have ended.
func Texts() storage.Texts {
	return storage.Texts{
		Page: `SELECT id, payload, buttons, card, error FROM deliveries WHERE workspace = $1 AND id > $2 AND state NOT IN ('held', 'pending', 'sending')
			AND (payload <> '' OR buttons <> '' OR card <> '' OR error <> '') ORDER BY id LIMIT 100`,
		First: []any{int64(0)}, Columns: 4,
		Empty: []string{`UPDATE deliveries SET payload = '', buttons = '', card = '', error = '' WHERE id = $1 AND workspace = $2`},
	}
}
