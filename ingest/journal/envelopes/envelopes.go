// Package envelopes stores the payloads that platforms send, each once, and the result of each.
package envelopes

import (
	"fmt"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Envelopes are the payloads of a journal.
type Envelopes struct {
	db  *storage.DB
	ids *threads.IDs
}

// New returns the envelopes in a store.
func New(db *storage.DB, ids *threads.IDs) *Envelopes { return &Envelopes{db, ids} }

// Aged returns the steps for the bodies and the rows of envelopes that are not pending.
func Aged(now time.Time, bodies, keys time.Duration) []storage.Step {
	const page = `id > $1 AND id <= $2 AND accepted_at <= $3`
	// A clock that went back leaves envelopes of the future, which stop no others. Those of the
	// next day may have come during this call.
	aged := func(age time.Duration) string {
		return fmt.Sprintf(`SELECT max(id) FROM (SELECT id, accepted_at FROM envelopes WHERE id > $1 ORDER BY id LIMIT 100) AS page
			WHERE accepted_at <= $2 OR accepted_at > $2 + %d`, (age + 24*time.Hour).Milliseconds())
	}
	before := func(age time.Duration) int64 { return storage.Millis(now.Add(-age)) }
	return []storage.Step{
		{Name: "bodies", Bound: before(bodies), Page: aged(bodies), Stays: true, Statements: []string{
			`UPDATE envelopes SET body = substr(body, 1, 0) WHERE ` + page + ` AND state = 'done' AND length(body) > 0`,
		}},
		{Name: "envelopes", Bound: before(keys), Page: aged(keys), Statements: []string{`DELETE FROM envelopes WHERE ` + page + ` AND state <> 'pending'`}},
	}
}

// OfWorkspace returns the step for the rows of a removed workspace.
func OfWorkspace(workspace string) []storage.Step {
	return []storage.Step{storage.ByKey(workspace, "envelopes", "dedupe_key")}
}

// Texts are the payloads and the errors of the envelopes that are not pending.
func Texts() storage.Texts {
	return storage.Texts{
		Page:  `SELECT id, body, error FROM envelopes WHERE workspace = $1 AND id > $2 AND state <> 'pending' AND (length(body) > 0 OR error <> '') ORDER BY id LIMIT 100`,
		First: []any{int64(0)}, Columns: 2,
		Empty: []string{`UPDATE envelopes SET body = substr(body, 1, 0), error = '' WHERE id = $1 AND workspace = $2 AND state <> 'pending'`},
	}
}
