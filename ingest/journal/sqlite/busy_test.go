package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/ingest/journal/storage"
)

// seize takes the write lock of the database at path on a separate connection, like
// another program. It returns the function that releases the lock.
func seize(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}

func TestAForeignLockLosesNoWrite(t *testing.T) {
	path := file(t)
	e := open(t, path)
	release := seize(t, path)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err := e.Write(ctx, storage.WriteOptions{}, insert("impatient"))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, storage.ErrUnclear) {
		t.Errorf("the impatient caller got %v", err)
	}
	if got := names(t, e); len(got) != 0 {
		t.Errorf("stored under another program's lock: %v", got)
	}

	const callers = 10
	var patient sync.WaitGroup
	for i := range callers {
		patient.Go(func() {
			if err := e.Write(t.Context(), storage.WriteOptions{}, insert(fmt.Sprint("patient ", i))); err != nil {
				t.Error(err)
			}
		})
	}
	for e.Waiting() < callers-1 {
		yield()
	}
	release()
	patient.Wait()
	if got := names(t, e); len(got) != callers {
		t.Errorf("stored %v", got)
	}
}

func TestCloseEndsAWriteThatWaitsForAForeignLock(t *testing.T) {
	path := file(t)
	e := open(t, path)
	release := seize(t, path)
	told := make(chan error)
	go func() { told <- e.Write(t.Context(), storage.WriteOptions{}, insert("one")) }()
	go func() { told <- e.Write(t.Context(), storage.WriteOptions{}, insert("two")) }()
	for e.Waiting() < 1 { // one waits in the queue, the other for the lock
		yield()
	}
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for range 2 {
		if err := <-told; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("a waiting caller got %v", err)
		}
	}
	release()
	<-closed // depending on the time of the release, the log may not be emptied
	if err := e.Write(t.Context(), storage.WriteOptions{}, insert("three")); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("a write after Close: error %v", err)
	}
	if err := e.Read(t.Context(), func(storage.Tx) error { return nil }); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("a read after Close: error %v", err)
	}
}
