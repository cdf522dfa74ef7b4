// Package strangers stores the people outside all lists of a policy who have asked for an agent, and the decision about each.
package strangers

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// State is the state of the decision about a stranger.
type State string

// The states of a stranger.
const (
	Asked   State = "asked"   // the approvers have an open question
	Once    State = "once"    // the message that waited was admitted; the next one asks again
	Always  State = "always"  // the person is admitted
	No      State = "no"      // the person is refused, and no message asks
	Expired State = "expired" // nobody answered in time; the next message asks again
)

// Stranger is a person of a workspace whom no list admits. The zero value is a person of whom nothing is known.
type Stranger struct {
	Workspace, SenderID string
	Name                string // empty if unknown
	State               State
	// Question is the id of the question to the approvers; empty if an operator has decided without one.
	Question  string
	Envelope  int64    // of the message that waits; 0 for none
	Agent     string   // of the message's channel
	Approvers []string // the platform's ids of those whom the question went to
	Told      bool     // their direct messages are stored
	By        string   // who decided: a sender_id or an operator; empty for nobody
	ChangedAt time.Time
	// DueAt is when a node must look at the stranger; zero for never.
	DueAt time.Time

	approvers string
}

// IsSettled reports whether a decision has taken all its effects, so that the stranger may ask again.
func (s *Stranger) IsSettled() bool { return s.DueAt.IsZero() }

// Strangers are the strangers of a journal.
type Strangers struct{ db *storage.DB }

// New returns the strangers in a store.
func New(db *storage.DB) *Strangers { return &Strangers{db} }

const columns = `workspace, sender_id, name, state, question, envelope, agent, approvers, told, decided_by, changed_at, due_at`

// dest is the scan target for columns.
func dest(s *Stranger) []any {
	return []any{&s.Workspace, &s.SenderID, &s.Name, (*string)(&s.State), &s.Question, &s.Envelope, &s.Agent, &s.approvers, &s.Told, &s.By, &s.ChangedAt, &s.DueAt}
}

// unpacked reads the columns with JSON.
func unpacked(tx *storage.Txn, list []Stranger) []Stranger {
	for i := range list {
		tx.Fail(storage.Unpack(list[i].approvers, &list[i].Approvers))
	}
	return list
}

// find returns the stranger that meets a condition; the zero value for none.
func find(tx *storage.Txn, condition string, args ...any) (s Stranger) {
	for _, found := range unpacked(tx, storage.Rows(tx, dest, `SELECT `+columns+` FROM strangers WHERE `+condition, args...)) {
		s = found
	}
	return s
}

// Of returns the stranger with a sender_id; the zero value for none.
func Of(tx *storage.Txn, workspace, sender string) Stranger {
	return find(tx, `workspace = $1 AND sender_id = $2`, workspace, sender)
}

// OfQuestion returns the stranger about whom a question is.
func OfQuestion(tx *storage.Txn, question string) Stranger {
	if question == "" {
		return Stranger{}
	}
	return find(tx, `question = $1`, question)
}

// Open counts the open questions of a workspace.
func Open(tx *storage.Txn, workspace string) (n int64) {
	tx.Row([]any{&n}, `SELECT count(*) FROM strangers WHERE workspace = $1 AND state = 'asked'`, workspace)
	return n
}

// Ask stores the question about a stranger of whom nothing is known, or whose last question is settled. The transaction fails with
// ErrUnavailable if another one has asked meanwhile.
func Ask(tx *storage.Txn, s Stranger, now int64) {
	tx.Must(storage.ErrUnavailable, `INSERT INTO strangers (workspace, sender_id, name, state, question, envelope, agent, approvers, changed_at, due_at)
		VALUES ($1, $2, $3, 'asked', $4, $5, $6, $7, $8, $8)
		ON CONFLICT (workspace, sender_id) DO UPDATE SET name = excluded.name, state = 'asked', question = excluded.question, envelope = excluded.envelope,
			agent = excluded.agent, approvers = excluded.approvers, told = 0, decided_by = '', changed_at = excluded.changed_at, due_at = excluded.due_at
			WHERE strangers.state IN ('once', 'expired') AND strangers.due_at IS NULL`,
		s.Workspace, s.SenderID, s.Name, s.Question, s.Envelope, s.Agent, tx.Pack(s.Approvers, false), now)
}

// Answer stores the answer to an open question. It returns false, and changes nothing, if the question is not open.
func Answer(tx *storage.Txn, question string, state State, by string, now int64) bool {
	return tx.Exec(`UPDATE strangers SET state = $2, decided_by = $3, changed_at = $4, due_at = $4 WHERE question = $1 AND state = 'asked'`,
		question, string(state), by, now) > 0
}

// Expire ends an open question without an answer.
func (s *Strangers) Expire(ctx context.Context, question string) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) { Answer(tx, question, Expired, "", storage.Millis(s.db.Now())) })
}

// dueBatch bounds the strangers of one call.
const dueBatch = 100

// Due returns strangers at whom a node must look now.
func (s *Strangers) Due(ctx context.Context) ([]Stranger, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) []Stranger {
		return unpacked(tx, storage.Rows(tx, dest, `SELECT `+columns+` FROM strangers WHERE due_at <= $1 ORDER BY due_at LIMIT CAST($2 AS BIGINT)`,
			storage.Millis(s.db.Now()), int64(dueBatch)))
	})
}

// Wait reports whether a node must look at a stranger now or later.
func (s *Strangers) Wait(ctx context.Context) (bool, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) bool { return tx.Has(`SELECT 1 FROM strangers WHERE due_at IS NOT NULL LIMIT 1`) })
}

// Told notes that the direct messages of a question are stored, and when a node must look again. If the question has been answered
// meanwhile, that is now: the node that settled it may not have seen these messages.
func (s *Strangers) Told(ctx context.Context, question string, next time.Time) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE strangers SET told = 1, due_at = CASE WHEN state = 'asked' THEN CAST($2 AS BIGINT) ELSE changed_at END WHERE question = $1`, question, storage.Millis(next))
	})
}

// CorrectTimes lets decisions and questions that a clock has dated which led begin now.
func CorrectTimes(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE strangers SET due_at = due_at - (changed_at - $1), changed_at = $1 WHERE changed_at > $2`, now, late)
}

// Settle notes that a decision has taken its effects. It changes nothing if there is a newer one.
func (s *Strangers) Settle(ctx context.Context, of *Stranger) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE strangers SET due_at = NULL WHERE workspace = $1 AND sender_id = $2 AND state = $3 AND question = $4 AND changed_at = $5`,
			of.Workspace, of.SenderID, string(of.State), of.Question, storage.Millis(of.ChangedAt))
	})
}

// Admitted returns the people who are always admitted, by workspace.
func (s *Strangers) Admitted(ctx context.Context) (admitted map[string]map[string]bool, err error) {
	list, err := storage.List(ctx, s.db, func(x *Stranger) []any { return []any{&x.Workspace, &x.SenderID} },
		`SELECT workspace, sender_id FROM strangers WHERE state = 'always'`)
	admitted = map[string]map[string]bool{}
	for _, x := range list {
		if admitted[x.Workspace] == nil {
			admitted[x.Workspace] = map[string]bool{}
		}
		admitted[x.Workspace][x.SenderID] = true
	}
	return admitted, err
}

// List returns all strangers.
func (s *Strangers) List(ctx context.Context) ([]Stranger, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) []Stranger {
		return unpacked(tx, storage.Rows(tx, dest, `SELECT `+columns+` FROM strangers ORDER BY changed_at DESC, workspace, sender_id`))
	})
}

// Decide stores an operator's decision about a person, also before the person asks. An open question is answered by it.
func (s *Strangers) Decide(ctx context.Context, workspace, sender, name string, state State, by string) error {
	now := storage.Millis(s.db.Now())
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO strangers (workspace, sender_id, name, state, question, envelope, agent, approvers, decided_by, changed_at)
			VALUES ($1, $2, $3, $4, '', 0, '', '[]', $5, $6)
			ON CONFLICT (workspace, sender_id) DO UPDATE SET state = excluded.state, decided_by = excluded.decided_by, changed_at = excluded.changed_at,
				due_at = CASE WHEN strangers.state = 'asked' THEN excluded.changed_at ELSE strangers.due_at END`,
			workspace, sender, name, string(state), by, now)
	})
}

// Forget removes what was decided about a person, whose next message asks again. It returns false, and changes nothing, if nothing was
// decided, or if the last decision has not taken its effects yet.
func (s *Strangers) Forget(ctx context.Context, workspace, sender string) (removed bool, err error) {
	return storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) bool {
		return tx.Exec(`DELETE FROM strangers WHERE workspace = $1 AND sender_id = $2 AND state <> 'asked' AND due_at IS NULL`, workspace, sender) > 0
	})
}

// Erase removes what is stored of a person who is to be forgotten.
func Erase(tx *storage.Txn, workspace, sender string) {
	tx.Do(`DELETE FROM strangers WHERE workspace = $1 AND sender_id = $2`, workspace, sender)
}

// OfWorkspace returns the step for the rows of a removed workspace.
func OfWorkspace(workspace string) []storage.Step {
	return []storage.Step{storage.ByKey(workspace, "strangers", "sender_id")}
}
