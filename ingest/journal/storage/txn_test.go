package storage

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// script is an engine whose transactions record the text of their statements. A statement
// fails with the error under its text.
type script struct {
	Engine
	Tx
	ran  []string
	errs map[string]error
}

func (s *script) Write(_ context.Context, _ WriteOptions, fn func(Tx) error) error { return fn(s) }

func (s *script) run(query string) error {
	s.ran = append(s.ran, query)
	return s.errs[query]
}

func (s *script) Exec(query string, _ ...any) (int64, error) { return 1, s.run(query) }

func (s *script) Row(_ []any, query string, _ ...any) (bool, error) { return true, s.run(query) }

func (s *script) Rows(_ func(func(...any) error) error, query string, _ ...any) error {
	return s.run(query)
}

func (s *script) Later(_ error, _ []any, query string, _ ...any) error { return s.run(query) }

// TestTheFirstErrorEndsATransaction proves that no statement runs after an error, that
// further calls find nothing, and that the transaction fails with the first error of any
// statement.
func TestTheFirstErrorEndsATransaction(t *testing.T) {
	statements := []string{"do", "exec", "row", "rows", "fail"}
	for i, failing := range statements {
		first := errors.New(failing)
		s := &script{errs: map[string]error{failing: first}}
		err := (&DB{Engine: s}).Change(t.Context(), "", func(tx *Txn) {
			tx.Do("do")
			changed := tx.Exec("exec")
			found := tx.Row(nil, "row")
			if i < 2 && (changed != 0 && i == 0 || found) {
				t.Errorf("after %s: %d rows changed, a row found: %v", failing, changed, found)
			}
			Rows(tx, Self[int64], "rows")
			tx.Fail(s.errs["fail"])
			tx.Fail(errors.New("a second error"))
		})
		if want := statements[:min(i+1, 4)]; err != first || !slices.Equal(s.ran, want) {
			t.Errorf("error %v after %v, want %v after %v", err, s.ran, first, want)
		}
	}
}
