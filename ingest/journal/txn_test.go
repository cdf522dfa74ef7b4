package journal

import (
	"context"
	"errors"
	"slices"
	"testing"

	"parley/ingest/event"
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
		err := New(s, Options{}).change(t.Context(), "", func(tx *txn) {
			tx.do("do")
			changed := tx.exec("exec")
			found := tx.row(nil, "row")
			if i < 2 && (changed != 0 && i == 0 || found) {
				t.Errorf("after %s: %d rows changed, a row found: %v", failing, changed, found)
			}
			rows(tx, self[int64], "rows")
			tx.fail(s.errs["fail"])
			tx.fail(errors.New("a second error"))
		})
		if want := statements[:min(i+1, 4)]; err != first || !slices.Equal(s.ran, want) {
			t.Errorf("error %v after %v, want %v after %v", err, s.ran, first, want)
		}
	}
}

// TestAFailedLookupFailsTheRecord proves that a decision has no effect after a lookup of the
// policy has failed.
func TestAFailedLookupFailsTheRecord(t *testing.T) {
	cause := errors.New("the disk is gone")
	s := &script{errs: map[string]error{`SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`: cause}}
	entry := Entry{Event: event.Event{Kind: event.KindMessage, Message: &event.Message{ExternalID: "C1/1"}}}
	entry.Decide = func(_ *event.Message, look Look) Decision {
		if look.Ours("C1/0") {
			t.Error("a failed lookup found a post")
		}
		return Decision{Trigger: TriggerRun}
	}
	if _, err := New(s, Options{}).Record(t.Context(), &Claim{}, entry); err != cause || len(s.ran) != 1 {
		t.Errorf("error %v after %q", err, s.ran)
	}
}
