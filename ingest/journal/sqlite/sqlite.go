// Package sqlite stores a journal in one SQLite file.
//
// One goroutine, the committer, owns the only connection that writes. It runs the
// functions of the waiting callers in one transaction, commits with synchronous=FULL, and
// answers the callers only then. An idle journal commits a single caller at once; a busy
// one shares each fsync among many. Readers have connections of their own and see
// snapshots. Checkpoints run on a further connection, off the commit path, unless the log
// grows without a pause.
//
// After an error, the engine assumes nothing about the transaction: after a full disk, an
// I/O error or a busy file it may be gone. So no further statement runs in it, and the
// functions that shared it run again, each in its own transaction.
//
// One process owns the file, by a lock beside it that ends with the process. No other
// code in that process may open and close the database file meanwhile: POSIX would then
// drop SQLite's own locks.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"parley/ingest/journal/internal/queue"
	"parley/ingest/journal/storage"
)

var (
	_ storage.Engine    = (*Engine)(nil)
	_ storage.Eraser    = (*Engine)(nil)
	_ storage.Describer = (*Engine)(nil)
)

// Engine is an open database file. It implements storage.Engine.
type Engine struct {
	committer  *committer
	readers    readers
	checkpoint *checkpointer
	lock       *os.File
	path, vfs  string
	snapshot   sync.Mutex // of the file of the snapshot

	calls   queue.Calls    // running calls of Write and Read
	workers sync.WaitGroup // the committer and the checkpointer
	closing chan struct{}  // closed when Close begins; then no call waits for a busy file any more
	quit    chan struct{}  // closed when the last call has ended
}

// Open opens the database at path, which it creates together with its directory (mode
// 0700), and updates its schema. The engine's goroutines keep the values of ctx. They
// run on after ctx has ended, until Close stops them.
//
// The error wraps storage.ErrLocked if another process has the file open.
func Open(ctx context.Context, path string, o Options) (*Engine, error) {
	o.complete()
	e, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return e, nil
}

func open(ctx context.Context, path string, o Options) (e *Engine, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link to the file has the file's lock
	}
	if err := owned(path); err != nil {
		return nil, err
	}
	lock, err := create(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := noteDamage(path, o.Log); err != nil {
		return nil, err
	}
	if err := prepare(ctx, path, o); err != nil {
		return nil, err
	}
	checkpoint, err := newCheckpointer(ctx, path, o)
	if err != nil {
		return nil, err
	}
	e = &Engine{
		checkpoint: checkpoint,
		readers:    newReaders(path, o),
		lock:       lock,
		path:       path,
		vfs:        o.vfs,
		closing:    make(chan struct{}),
		quit:       make(chan struct{}),
	}
	e.committer = newCommitter(path, o, checkpoint, e.closing)
	if err := e.committer.connected(ctx); err != nil {
		return nil, errors.Join(err, checkpoint.conn.close())
	}
	e.workers.Go(func() { e.committer.run(context.WithoutCancel(ctx), e.quit) })
	e.workers.Go(func() { e.checkpoint.run(e.quit) })
	return e, nil
}

// create takes the lock and creates the file, so that its mode and its directory entry do
// not depend on SQLite.
func create(path string) (lock *os.File, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if lock, err = acquire(path + ".lock"); err != nil {
		return nil, err
	}
	_ = os.Remove(path + snapshotEnd) // of a killed process; if it stays, it is overwritten later
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(file.Close(), syncDir(dir), syncDir(filepath.Dir(dir)))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// syncDir makes the entries of a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// pageSize is the size of a new database's pages in bytes. A commit writes each changed page
// whole. With 8,192 the daemon takes as much CPU, and writes half as many bytes more under load and
// four fifths more at 60 messages a second.
const pageSize = "4096"

// prepare switches the database to WAL mode and applies the migrations. It waits for a
// short lock of another program.
func prepare(ctx context.Context, path string, o Options) (err error) {
	c, err := connect(ctx, path, o.vfs, "page_size="+pageSize, "busy_timeout=5000", "synchronous=FULL", "foreign_keys=ON", "wal_autocheckpoint=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.refuseOther(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var mode string
	if err := c.row([]any{&mode}, "PRAGMA journal_mode=WAL"); err != nil {
		return fmt.Errorf("%s: switch to WAL mode: %w", path, err)
	}
	if mode != "wal" {
		return fmt.Errorf("%s: its file system has no WAL mode (it stayed in mode %s): put the journal on a local disk", path, mode)
	}
	if err := migrate(c, o); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Write implements storage.Engine.
func (e *Engine) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	return e.calls.Do(func() error { return e.committer.Submit(ctx, options, fn) })
}

// Read implements storage.Engine.
func (e *Engine) Read(ctx context.Context, fn func(tx storage.Tx) error) error {
	return e.calls.Do(func() error { return e.readers.read(ctx, true, fn) })
}

// ReadOne implements storage.Engine.
func (e *Engine) ReadOne(ctx context.Context, fn func(tx storage.Tx) error) error {
	return e.calls.Do(func() error { return e.readers.read(ctx, false, fn) })
}

// Facts implements storage.Describer. The bytes do not include the log.
func (e *Engine) Facts(ctx context.Context) (f storage.Facts, err error) {
	return facts(ctx, e, e.path)
}

func facts(ctx context.Context, e storage.Engine, path string) (f storage.Facts, err error) {
	err = e.ReadOne(ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&f.Schema, &f.Bytes}, `SELECT (SELECT max(version) FROM schema_migrations), page_count * page_size FROM pragma_page_count, pragma_page_size`)
		return err
	})
	var disk syscall.Statfs_t
	if syscall.Statfs(path, &disk) == nil {
		f.Free = int64(disk.Bavail) * int64(disk.Bsize)
	}
	return f, err
}

// Erased implements journal.Eraser: the log is truncated within a minute.
func (e *Engine) Erased() { e.checkpoint.erased.Set() }

// Close finishes the running calls, moves the log into the database and unlocks the file.
// It ends a write that waits for a busy file. Closing twice does nothing.
func (e *Engine) Close() error {
	if !e.calls.Close() {
		return nil
	}
	close(e.closing)
	e.calls.Wait()
	close(e.quit)
	e.workers.Wait()
	e.readers.Close()
	err := errors.Join(e.checkpoint.conn.close(), e.committer.close(), e.lock.Close())
	if err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}
