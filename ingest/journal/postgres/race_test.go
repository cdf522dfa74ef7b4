package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
)

// meeting is a barrier of two functions, which works once.
type meeting struct {
	each [2]sync.Once
	both sync.WaitGroup
}

func newMeeting() *meeting {
	m := &meeting{}
	m.both.Add(2)
	return m
}

func (m *meeting) wait(who int) {
	m.each[who].Do(func() { m.both.Done(); m.both.Wait() })
}

// together runs two calls of Write concurrently on two nodes, because calls on one node
// may share a transaction.
func together(t *testing.T, url string, fns [2]func(storage.Tx) error) {
	t.Helper()
	var callers sync.WaitGroup
	for _, fn := range fns {
		e := engine(t, postgres.Options{URL: url})
		callers.Go(func() {
			if err := e.Write(t.Context(), storage.WriteOptions{}, fn); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

func TestADeadlockIsRetried(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url})
	write(t, e, insert("a"))
	write(t, e, insert("b"))
	m, runs := newMeeting(), [2]int{}
	inOrder := func(who int, first, second string) func(storage.Tx) error {
		return func(tx storage.Tx) error {
			runs[who]++
			const add = "UPDATE facts SET n = n + 1 WHERE name = $1"
			_, err := tx.Exec(add, first)
			m.wait(who)
			return errors.Join(err, tx.Later(nil, nil, add, second))
		}
	}
	together(t, url, [2]func(storage.Tx) error{inOrder(0, "a", "b"), inOrder(1, "b", "a")})
	if a, b := count(t, e, "a"), count(t, e, "b"); a != 2 || b != 2 || runs[0]+runs[1] < 3 {
		t.Errorf("counted %d and %d in %v runs", a, b, runs)
	}
}

func TestALostInsertRaceIsRetried(t *testing.T) {
	t.Parallel()
	url := database(t)
	m, runs := newMeeting(), [2]int{}
	once := func(who int) func(storage.Tx) error {
		return func(tx storage.Tx) error {
			runs[who]++
			there, err := tx.Row(nil, "SELECT FROM facts WHERE name = $1", "a")
			m.wait(who)
			if there || err != nil {
				return err
			}
			return later("a")(tx)
		}
	}
	together(t, url, [2]func(storage.Tx) error{once(0), once(1)})
	if diff := cmp.Diff([]string{"a"}, names(t, engine(t, postgres.Options{URL: url}))); diff != "" || runs[0]+runs[1] < 3 {
		t.Errorf("in %v runs: %s", runs, diff)
	}
}

// TestACallBehindALostRaceKeepsItsOrder proves that a later call about a thread is not committed, and does not tell its
// caller, before an earlier one that runs alone because it waits for another node's lock.
func TestACallBehindALostRaceKeepsItsOrder(t *testing.T) {
	t.Parallel()
	url := database(t)
	e, other := engine(t, postgres.Options{URL: url}), engine(t, postgres.Options{URL: url})
	write(t, e, insert("a"))
	held, release := make(chan struct{}), make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		if err := other.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			_, err := tx.Exec("UPDATE facts SET n = n + 1 WHERE name = 'a'")
			close(held)
			<-release
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	<-held
	var order []string // the calls run one after the other
	var queued atomic.Int64
	call := func(name string, fn func(storage.Tx) error) {
		options := storage.WriteOptions{Thread: "thread", Queued: func() { queued.Add(1) }, Committed: func() { order = append(order, name) }}
		calls.Go(func() {
			if err := e.Write(t.Context(), options, fn); err != nil {
				t.Error(err)
			}
		})
	}
	var runs atomic.Int64
	call("first", func(tx storage.Tx) error {
		runs.Add(1)
		_, err := tx.Exec("UPDATE facts SET n = n + 1 WHERE name = 'a'")
		return err
	})
	for runs.Load() < 2 { // the second run is alone, and waits for the lock
		yield()
	}
	for i := range 3 {
		call("later", later(fmt.Sprint(i)))
	}
	for queued.Load() < 4 || e.Waiting() > 0 { // the line has taken the later ones
		yield()
	}
	close(release)
	calls.Wait()
	if diff := cmp.Diff([]string{"first", "later", "later", "later"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestAPermanentViolationIsTheCallersError(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	write(t, e, insert("a"))
	runs := 0
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error { runs++; return insert("a")(tx) })
	if err == nil || storage.Unavailable(err) || !strings.Contains(err.Error(), "facts_name_key") || runs <= postgres.MaxRaces || runs > 2*postgres.MaxRaces {
		t.Errorf("error %v after %d runs", err, runs)
	}
}

func TestErrorsOfTheStoreAreUnavailable(t *testing.T) {
	t.Parallel()
	url := database(t)
	run(t, url, `CREATE FUNCTION fail(code TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN RAISE 'failure' USING ERRCODE = code; END $$`)
	e := engine(t, postgres.Options{URL: url})
	for code, unavailable := range map[string]bool{
		"53100": true,  // disk full
		"53300": true,  // too many connections
		"25006": true,  // read-only
		"57P01": true,  // admin shutdown
		"55P03": true,  // lock not available
		"58030": true,  // I/O error
		"XX001": true,  // data corrupted
		"23502": false, // not null
		"22001": false, // too long
		"42601": false, // syntax error
		"P0001": false, // raised by a function
	} {
		for what, fn := range map[string]func(storage.Tx) error{
			"waited for":  func(tx storage.Tx) error { _, err := tx.Exec("SELECT fail($1)", code); return err },
			"with COMMIT": func(tx storage.Tx) error { return tx.Later(nil, nil, "SELECT fail($1)", code) },
			"guarded": func(tx storage.Tx) error {
				return tx.Later(errRefused, nil, "INSERT INTO facts (n) VALUES (fail($1))", code)
			},
		} {
			err := e.Write(t.Context(), storage.WriteOptions{}, fn)
			if err == nil || errors.Is(err, storage.ErrUnavailable) != unavailable || errors.Is(err, storage.ErrUnclear) || errors.Is(err, errRefused) {
				t.Errorf("%s, %s: error %v", code, what, err)
			}
		}
	}
}
