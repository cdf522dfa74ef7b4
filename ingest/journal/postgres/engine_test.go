package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
)

func TestAFailedCallKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(storage.Tx) error{
		"an error after a write":          func(tx storage.Tx) error { return errors.Join(insert("half")(tx), errRefused) },
		"an error with queued statements": func(tx storage.Tx) error { return errors.Join(later("half")(tx), errRefused) },
		"an error with a queued failure":  func(tx storage.Tx) error { return errors.Join(later("there")(tx), later("half")(tx), errRefused) },
		"a constraint violated at COMMIT": later("there"),
		"an ignored violation": func(tx storage.Tx) error {
			_ = insert("there")(tx)
			_ = insert("half")(tx)
			return nil
		},
		"a failure before prepared statements": func(tx storage.Tx) error {
			var id int64
			const query = "SELECT id FROM facts WHERE name = $1"
			if _, err := tx.Row([]any{&id}, query, "there"); err != nil {
				return err
			}
			return errors.Join(later("there")(tx), tx.Later(nil, []any{&id}, query, "there"))
		},
		"a panic": func(tx storage.Tx) error {
			if err := insert("half")(tx); err != nil {
				return err
			}
			panic("a bug")
		},
		"a panic with unread rows": func(tx storage.Tx) error {
			return errors.Join(later("half")(tx), tx.Rows(func(func(...any) error) error { panic("a bug") },
				"SELECT n FROM generate_series(1, 10000) AS s(n)"))
		},
		"invalid SQL": func(tx storage.Tx) error {
			_, err := tx.Exec("SLECT 1")
			return errors.Join(insert("half")(tx), err)
		},
		"a missing row": func(tx storage.Tx) error {
			return errors.Join(insert("half")(tx), tx.Later(errRefused, nil, "UPDATE facts SET n = 1 WHERE name = $1", "nobody"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := engine(t, postgres.Options{URL: database(t), Connections: 1})
			write(t, e, insert("there"))
			before := backend(t, e)
			for range 2 { // the second run uses the prepared statements
				if err := e.Write(t.Context(), storage.WriteOptions{}, fails); err == nil || errors.Is(err, storage.ErrUnclear) || errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("error %v", err)
				}
			}
			if err := e.AskTheTime(t.Context()); err != nil {
				t.Error(err)
			}
			if after := backend(t, e); after != before {
				t.Error("the connection was closed")
			}
			if diff := cmp.Diff([]string{"there"}, names(t, e)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADeadlineEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url, Connections: 1})
	write(t, e, insert("there"))
	before := backend(t, e)
	const within = time.Second
	e.AnswerWithin(within)
	if err := e.Write(t.Context(), storage.WriteOptions{}, later("there")); err == nil {
		t.Error("no error")
	}
	e.AnswerWithin(time.Minute)
	run(t, url, fmt.Sprintf("SELECT pg_sleep(%f)", (2*within).Seconds())) // the deadline passes meanwhile
	if err := e.AskTheTime(t.Context()); err != nil {
		t.Error(err)
	}
	if after := backend(t, e); after != before {
		t.Error("the connection was closed")
	}
}

func TestAPanicInReadLosesNoConnection(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	before := backend(t, e)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		_ = e.Read(t.Context(), func(tx storage.Tx) error {
			return tx.Rows(func(func(...any) error) error { panic("a bug") }, "SELECT 1")
		})
	}()
	if after := backend(t, e); after != before {
		t.Error("the connection was closed")
	}
}

func TestAnEndedTransactionIsUnusable(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	var kept storage.Tx
	keep := func(tx storage.Tx) error { kept = tx; return nil }
	for _, call := range []func(context.Context, func(storage.Tx) error) error{
		func(ctx context.Context, fn func(storage.Tx) error) error {
			return e.Write(ctx, storage.WriteOptions{}, fn)
		}, e.Read,
	} {
		if err := call(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		if err := insert("late")(kept); err == nil {
			t.Error("a statement ran after the end of the transaction")
		}
	}
	if got := names(t, e); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
}

func TestCommitInsideACallFails(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, _ = tx.Exec("SELECT 1 / 0")
		_, _ = tx.Exec("ROLLBACK")
		return insert("a")(tx)
	})
	if err == nil || len(names(t, e)) > 0 {
		t.Errorf("%v, and stored %v", err, names(t, e))
	}
}

func TestAScanErrorAfterCommitIsUnclear(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		var wrong int64
		return tx.Later(nil, []any{&wrong}, "INSERT INTO facts (name) VALUES ($1) RETURNING name", "a")
	})
	if !errors.Is(err, storage.ErrUnclear) {
		t.Errorf("%v, and stored %v", err, names(t, e))
	}
}

func TestACancelledCaller(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	ctx, cancel := context.WithCancel(t.Context())
	inside, leave := make(chan struct{}), make(chan struct{})
	told, waiting := make(chan error, 1), make(chan error, 1)
	go func() {
		told <- e.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error { close(inside); <-leave; return insert("begun")(tx) })
	}()
	<-inside
	go func() { waiting <- e.Write(ctx, storage.WriteOptions{}, insert("in line")) }() // the only connection is in use
	cancel()
	if err := <-waiting; errors.Is(err, storage.ErrUnclear) || !errors.Is(err, context.Canceled) {
		t.Errorf("the waiting caller got %v", err)
	}
	if err := <-told; !errors.Is(err, storage.ErrUnclear) || !errors.Is(err, context.Canceled) {
		t.Errorf("the running caller got %v", err)
	}
	close(leave)
	write(t, e, insert("after"))
	if diff := cmp.Diff([]string{"begun", "after"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

func TestUrgentWritesGoFirst(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	inside, begin := make(chan struct{}), make(chan struct{})
	var calls sync.WaitGroup
	call := func(options storage.WriteOptions, fn func(storage.Tx) error) {
		calls.Go(func() {
			if err := e.Write(t.Context(), options, fn); err != nil {
				t.Error(err)
			}
		})
	}
	call(storage.WriteOptions{}, func(tx storage.Tx) error { close(inside); <-begin; return nil })
	<-inside
	const ordinary, underWay = 24, 12 // the committer may have taken underWay of them
	for i := range ordinary {
		call(storage.WriteOptions{}, insert(fmt.Sprint(i)))
	}
	for e.Waiting() < ordinary-underWay {
		yield()
	}
	call(storage.WriteOptions{Urgent: true}, insert("urgent"))
	for e.WaitingUrgent() == 0 {
		yield()
	}
	close(begin)
	calls.Wait()
	if at := slices.Index(names(t, e), "urgent"); at < 0 || at > underWay {
		t.Errorf("%d ordinary calls ran before the urgent one", at)
	}
}

func TestAReadersWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	if err := e.Read(t.Context(), func(storage.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := e.Read(ctx, func(storage.Tx) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with every connection in use: error %v", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestAReadSeesOneSnapshotAndCannotWrite(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	write(t, e, insert("before"))
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		for range 2 {
			var n int64
			if _, err := tx.Row([]any{&n}, "SELECT count(*) FROM facts"); err != nil || n != 1 {
				t.Errorf("counted %d, %v", n, err)
			}
			write(t, e, func(tx storage.Tx) error {
				_, err := tx.Exec("INSERT INTO facts (body) VALUES ($1)", []byte("meanwhile"))
				return err
			})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	runs := 0
	if err := e.Read(t.Context(), func(tx storage.Tx) error { runs++; return insert("smuggled")(tx) }); err == nil || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
	if got := names(t, e); len(got) != 3 {
		t.Errorf("stored %q", got)
	}
}

func TestAWriteSeesItsOwnChanges(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	write(t, e, func(tx storage.Tx) error {
		var id, seen int64
		err := tx.Later(nil, []any{&id}, "INSERT INTO facts (name) VALUES ($1) RETURNING id", "mine")
		found, missing := tx.Row([]any{&seen}, "SELECT id FROM facts WHERE name = $1", "mine")
		if !found || id == 0 || id != seen {
			t.Errorf("found %v, id %d, want %d", found, seen, id)
		}
		return errors.Join(err, missing)
	})
}

func TestRowsEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	calls := 0
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		return errors.Join(insert("a")(tx), tx.Rows(func(scan func(...any) error) error {
			calls++
			if _, err := tx.Row(nil, "SELECT 1"); err == nil {
				t.Error("a query ran inside another")
			}
			if err := scan(new(int64)); err == nil {
				t.Error("a text was scanned into an int64")
			}
			if err := scan(new(string), new(string)); err == nil {
				t.Error("one column was scanned into two variables")
			}
			return errRefused
		}, "SELECT CAST(n AS TEXT) FROM generate_series(1, 1000) AS s(n)"))
	})
	if !errors.Is(err, errRefused) || calls != 1 || len(names(t, e)) > 0 {
		t.Errorf("%v after %d rows", err, calls)
	}
}

func TestValuesSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	rapid.Check(t, func(r *rapid.T) {
		bytes := rapid.SliceOf(rapid.Byte()).Draw(r, "bytes")
		number := rapid.Int64().Draw(r, "number")
		text := anyText().Draw(r, "text")
		var gotBytes, gotNull []byte
		var gotNumber int64
		var gotText string
		var null bool
		if err := e.Read(t.Context(), func(tx storage.Tx) error {
			_, err := tx.Row([]any{&gotNumber, &gotText, &gotBytes, &gotNull, &null},
				"SELECT CAST($1 AS BIGINT), CAST($2 AS TEXT), CAST($3 AS BYTEA), CAST($4 AS BYTEA), CAST($1 AS BIGINT) IS NULL", number, text, bytes, nil)
			return err
		}); err != nil {
			r.Fatal(err)
		}
		want := strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
		if diff := cmp.Diff([]any{bytes, number, want, []byte(nil), false}, []any{gotBytes, gotNumber, gotText, gotNull, null}); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestCloseFinishesRunningCalls(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url})
	inside, begin, told, closed := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		told <- e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error { close(inside); <-begin; return insert("a")(tx) })
	}()
	<-inside
	go func() { closed <- e.Close() }()
	for !errors.Is(e.Read(t.Context(), func(storage.Tx) error { return nil }), storage.ErrClosed) {
		yield()
	}
	close(begin)
	if err := errors.Join(<-told, <-closed, e.Close()); err != nil {
		t.Error(err)
	}
	if err := e.Write(t.Context(), storage.WriteOptions{}, insert("b")); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("after Close: error %v", err)
	}
	if diff := cmp.Diff([]string{"a"}, names(t, engine(t, postgres.Options{URL: url}))); diff != "" {
		t.Error(diff)
	}
}
