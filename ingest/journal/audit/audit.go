// Package audit stores the actions of operators, each with its operator, subject, time, note and
// result.
package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"parley/ingest/journal/storage"
)

// The errors of an action whose idempotency key its operator has used before.
var (
	// ErrOtherAction means that the key belongs to an action with another name or subject.
	ErrOtherAction = errors.New("the idempotency key belongs to another action")
	// ErrBusy means that a request with the key is being worked on.
	ErrBusy = errors.New("the action with this idempotency key has not ended yet")
)

// busyFor is the time after which an action without a result counts as left off by a process that
// died. A repetition then does it again.
const busyFor = time.Minute

// Action is one action of an operator.
type Action struct {
	ID      int64 // 0 before it is stored
	At      time.Time
	Who     string // the operator
	What    string // such as "dead.retry"
	Subject string // the id of the subject; empty for none
	Note    string // of the operator
	Key     string // idempotency key of the request; empty for none
	Result  string // JSON; empty if the action has not ended or has failed
	Error   string // empty if the action has not failed
}

// Audit has the actions in a journal.
type Audit struct{ db *storage.DB }

// New returns the actions in a store.
func New(db *storage.DB) *Audit { return &Audit{db} }

// BeginAction stores an action before it is done, and returns it with its ID. If the operator has used
// its key before, the action has the first one's result and is not to be done again; ErrBusy and
// ErrOtherAction are errors of such a key.
func (a *Audit) BeginAction(ctx context.Context, action Action) (Action, error) {
	now := a.db.Now()
	return storage.Write(ctx, a.db, storage.WriteOptions{}, func(tx *storage.Txn) Action {
		begun := action
		begun.At = storage.Instant(storage.Millis(now))
		if tx.Row([]any{&begun.ID}, `INSERT INTO operator_log (at, who, what, subject, note, key) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (who, key) WHERE key <> '' DO NOTHING RETURNING id`,
			storage.Millis(now), action.Who, action.What, action.Subject, action.Note, action.Key) {
			return begun
		}
		return again(tx, action, now)
	})
}

// again returns the earlier action with the same key.
func again(tx *storage.Txn, action Action, now time.Time) (first Action) {
	first = Action{Who: action.Who, Key: action.Key}
	if !tx.Row([]any{&first.ID, &first.At, &first.What, &first.Subject, &first.Note, &first.Result},
		`SELECT id, at, what, subject, note, result FROM operator_log WHERE who = $1 AND key = $2 AND key <> '' FOR UPDATE`, action.Who, action.Key) {
		tx.Fail(ErrBusy) // it failed between the two statements, so the key is free again
		return first
	}
	switch {
	case first.What != action.What || first.Subject != action.Subject:
		tx.Fail(ErrOtherAction)
	case first.Result != "":
	case now.Sub(first.At) < busyFor:
		tx.Fail(ErrBusy)
	default:
		tx.Do(`UPDATE operator_log SET at = $2 WHERE id = $1`, first.ID, storage.Millis(now))
	}
	return first
}

// EndAction stores the result of an action that has begun, which is JSON and has no text of a person.
func (a *Audit) EndAction(ctx context.Context, id int64, result string) error {
	return a.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE operator_log SET result = $2 WHERE id = $1`, id, result)
	})
}

// FailAction stores the error of an action that has begun. Its key is free again, so that a
// repetition of the request is another action.
func (a *Audit) FailAction(ctx context.Context, id int64, words string) error {
	return a.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE operator_log SET key = '', error = $2 WHERE id = $1`, id, words)
	})
}

// Actions returns the actions before an id, the newest first; 0 for the newest ones.
func (a *Audit) Actions(ctx context.Context, before int64, limit int) ([]Action, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return storage.ReadOne(ctx, a.db, func(tx *storage.Txn) []Action {
		return storage.UpTo(tx, (*Action).size, func(r *Action) []any {
			return []any{&r.ID, &r.At, &r.Who, &r.What, &r.Subject, &r.Note, &r.Key, &r.Result, &r.Error}
		}, `SELECT id, at, who, what, subject, note, key, result, error FROM operator_log
			WHERE id < $1 ORDER BY id DESC LIMIT CAST($2 AS BIGINT)`, before, int64(limit))
	})
}

// AreMore reports whether more actions may follow a page of them.
func AreMore(list []Action, limit int) bool { return storage.IsFull(list, limit, (*Action).size) }

func (a *Action) size() int { return len(a.Note) + len(a.Result) + len(a.Error) }

// Aged returns the step for actions before a bound.
func Aged(before int64) storage.Step { return storage.ByAge("operator_log", "id", "at", before) }

// Texts are the words of operators about their actions, and the results of those. They are of no workspace.
func Texts() storage.Texts {
	return storage.Texts{
		Page:  `SELECT id, note, result, error FROM operator_log WHERE $1 <> '' AND id > $2 ORDER BY id LIMIT 200`,
		First: []any{int64(0)}, Columns: 3,
		Empty: []string{`UPDATE operator_log SET note = '', error = '', result = CASE WHEN result = '' THEN '' ELSE '{}' END WHERE id = $1 AND $2 <> ''`},
	}
}
