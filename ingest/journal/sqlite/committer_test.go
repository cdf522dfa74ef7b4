package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/sqlite/faultfs"
	"parley/ingest/journal/storage"
)

// batch runs fns in one transaction, as far as they can share one, and returns each
// caller's error.
func batch(t *testing.T, e *sqlite.Engine, fns ...func(storage.Tx) error) []error {
	t.Helper()
	told := make([]error, len(fns))
	var callers sync.WaitGroup
	inside, filled := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(inside); <-filled })
	callers.Go(func() {
		told[0] = e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error { begin(); return fns[0](tx) })
	})
	<-inside
	for i := 1; i < len(fns); i++ {
		callers.Go(func() { told[i] = e.Write(t.Context(), storage.WriteOptions{}, fns[i]) })
		for e.Waiting() < i {
			yield()
		}
	}
	close(filled)
	callers.Wait()
	return told
}

// commits is a Recorder that stores the number of callers of each commit.
type commits struct {
	mu      sync.Mutex
	callers []int
	each    func()
}

func (c *commits) Committed(commit storage.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callers = append(c.callers, commit.Calls)
	if c.each != nil {
		c.each()
	}
}

func TestWaitingCallersShareOneCommit(t *testing.T) {
	var recorded commits
	e := open(t, file(t), sqlite.WithRecorder(&recorded))
	told := batch(t, e, insert("a"), insert("b"), insert("c"))
	if err := errors.Join(told...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{3}, recorded.callers); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureBeforeAWriteDisturbsNoOther(t *testing.T) {
	var recorded commits
	e := open(t, file(t), sqlite.WithRecorder(&recorded))
	refused := errors.New("refused")
	told := batch(t, e, insert("a"), func(tx storage.Tx) error {
		n, err := tx.Exec("UPDATE facts SET name = 'x' WHERE name = 'nobody'")
		if n != 0 || err != nil {
			t.Errorf("changed %d rows, %v", n, err)
		}
		return refused
	}, insert("c"))
	if told[0] != nil || told[1] != refused || told[2] != nil {
		t.Error(told)
	}
	if diff := cmp.Diff([]int{2}, recorded.callers); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureUndoesOnlyItsOwnWrites(t *testing.T) {
	refused := errors.New("refused")
	for name, fails := range map[string]func(storage.Tx) error{
		"an error after a write": func(tx storage.Tx) error {
			return errors.Join(insert("half")(tx), refused)
		},
		"an error after a write that returns rows": func(tx storage.Tx) error {
			var id int64
			_, err := tx.Row([]any{&id}, "INSERT INTO facts (name) VALUES ('half') RETURNING id")
			return errors.Join(err, refused)
		},
		"a panic": func(tx storage.Tx) error {
			if err := insert("half")(tx); err != nil {
				return err
			}
			panic("a bug")
		},
		"a violated constraint": func(tx storage.Tx) error {
			return errors.Join(insert("half")(tx), insert("half")(tx))
		},
		"an ignored error of SQLite": func(tx storage.Tx) error {
			_, _ = tx.Exec("INSERT INTO nowhere VALUES (1)")
			_ = insert("half")(tx)
			return nil
		},
		"an attempt to end the transaction by hand": func(tx storage.Tx) error {
			_, err := tx.Exec("COMMIT")
			return errors.Join(insert("half")(tx), err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, file(t))
			told := batch(t, e, insert("a"), fails, insert("c"))
			if told[0] != nil || told[1] == nil || told[2] != nil {
				t.Error(told)
			}
			if diff := cmp.Diff([]string{"a", "c"}, names(t, e)); diff != "" {
				t.Error(diff)
			}
			if told := e.Write(t.Context(), storage.WriteOptions{}, fails); told == nil || errors.Is(told, storage.ErrUnclear) {
				t.Errorf("alone: error %v", told)
			}
			if diff := cmp.Diff([]string{"a", "c"}, names(t, e)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAViolationUndoesItsWholeTransaction proves that nothing of a function is stored that
// ignores a violated constraint. SQLite itself would keep the first row of the statement.
func TestAViolationUndoesItsWholeTransaction(t *testing.T) {
	e := open(t, file(t))
	told := batch(t, e, insert("a"), func(tx storage.Tx) error {
		if _, err := tx.Exec("INSERT INTO facts (name) VALUES ('b'), ('b')"); err == nil || !strings.Contains(err.Error(), "facts.name") {
			t.Errorf("the second b: %v", err)
		}
		_ = insert("c")(tx)
		return nil
	}, insert("d"))
	if told[0] != nil || told[1] == nil || told[2] != nil {
		t.Error(told)
	}
	if diff := cmp.Diff([]string{"a", "d"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

func TestAnEndedTransactionIsUnusable(t *testing.T) {
	e := open(t, file(t))
	var kept storage.Tx
	keep := func(tx storage.Tx) error { kept = tx; return nil }
	write(t, e, keep)
	if err := insert("late")(kept); err == nil {
		t.Error("a statement ran after COMMIT")
	}
	if err := e.Read(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Row(nil, "SELECT 1"); err == nil {
		t.Error("a query ran after the end of the snapshot")
	}
}

func TestACallersWaitForAFrozenDiskEndsWithItsContext(t *testing.T) {
	fs, path := faulty(t), file(t)
	e := open(t, path, sqlite.WithVFS(fs.Name))
	frozen, thaw := fs.Freeze(faultfs.Sync)
	defer thaw()

	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error)
	go func() { told <- e.Write(ctx, storage.WriteOptions{}, insert("committing")) }()
	<-frozen
	go func() { told <- e.Write(ctx, storage.WriteOptions{}, insert("in line")) }()
	for e.Waiting() == 0 {
		yield()
	}
	cancel()
	unclear, withdrawn := <-told, <-told
	if !errors.Is(unclear, storage.ErrUnclear) {
		unclear, withdrawn = withdrawn, unclear
	}
	if !errors.Is(unclear, storage.ErrUnclear) || !errors.Is(unclear, context.Canceled) {
		t.Errorf("the committing caller got %v", unclear)
	}
	if errors.Is(withdrawn, storage.ErrUnclear) || !errors.Is(withdrawn, context.Canceled) {
		t.Errorf("the waiting caller got %v", withdrawn)
	}
	thaw()
	write(t, e, insert("thawed"))
	if diff := cmp.Diff([]string{"committing", "thawed"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

// TestBusyWritersKeepTheLogBounded has no passive checkpoint, which could delay a restart of the
// log. So the log is longer than its limit by one batch at most.
func TestBusyWritersKeepTheLogBounded(t *testing.T) {
	const writes, bytes, writers, pages, page = 600, 16 << 10, 4, 128, 4096
	const batch = writers * (bytes/page + 5)   // a body's own pages, and those of the table's tree
	const limit = 32 + (pages+batch)*(24+page) // the log's header, and the header and bytes of each page
	path := file(t)
	var longest int64
	e := open(t, path, sqlite.WithCheckpoints(math.MaxInt, pages), sqlite.WithRecorder(&commits{each: func() {
		if info, err := os.Stat(path + "-wal"); err == nil {
			longest = max(longest, info.Size())
		}
	}}))
	var callers sync.WaitGroup
	for w := range writers {
		callers.Go(func() {
			for i := range writes / writers {
				err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
					_, err := tx.Exec("INSERT INTO log (name, body) VALUES (?, ?)", fmt.Sprint(w, i), make([]byte, bytes))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if longest < pages*page || longest > limit {
		t.Errorf("the log grew to %d bytes, want at most %d", longest, limit)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("%d bytes are left in the log after Close", info.Size())
	}
}
