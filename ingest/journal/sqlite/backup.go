package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"parley/ingest/journal/storage"
)

// ErrSnapshot means that another snapshot of the database is not finished yet.
var ErrSnapshot = errors.New("another backup of this store is being made: try again when it has ended")

// ErrExists means that there is a database already.
var ErrExists = errors.New("there is a database already: name another file, or move that one away")

// The ends of the names of unfinished files beside the database.
const (
	snapshotEnd = ".snapshot"
	draftEnd    = ".restoring"
)

// Snapshot calls fn with the path of a file that has the state of the database at one moment, and
// nothing of the words that were removed before. The file is gone when Snapshot returns, and
// so is that of a killed process when the next engine opens. Writes go on meanwhile: the snapshot
// only reads. If ctx ends, it ends early.
func (e *Engine) Snapshot(ctx context.Context, fn func(path string) error) error {
	return e.calls.Do(func() (err error) {
		if !e.snapshot.TryLock() {
			return ErrSnapshot
		}
		defer e.snapshot.Unlock()
		path := e.path + snapshotEnd
		defer os.Remove(path)
		if err := e.vacuum(ctx, path); err != nil {
			return fmt.Errorf("snapshot of the journal: %w", err)
		}
		return fn(path)
	})
}

// vacuum writes the compacted database into a new file, on a connection of its own.
func (e *Engine) vacuum(ctx context.Context, path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600) // SQLite fills an empty file
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return err
	}
	c, err := connect(ctx, e.path, e.vfs, "busy_timeout=5000", "cache_size=-2048", "mmap_size=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	s, err := c.statement("VACUUM INTO $1")
	if err == nil {
		_, err = s.ExecContext(ctx, c.bind([]any{path}))
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// View runs fn on the database in a file that no engine has open, and changes nothing.
func View(ctx context.Context, path string, fn func(tx storage.Tx) error) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	c, err := connectAs(ctx, path, "", readOnly, "query_only=ON", "cache_size=-2048")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.run("BEGIN"); err != nil {
		return err
	}
	return fn(&tx{conn: c})
}

// Intact returns an error if the database that a transaction reads is damaged.
func Intact(tx storage.Tx) error {
	var found string
	_, err := tx.Row([]any{&found}, `SELECT integrity_check FROM pragma_integrity_check`)
	if err == nil && found != "ok" {
		err = fmt.Errorf("the database is damaged: %s", found)
	}
	return err
}

// Place makes the database at path, with its folder. fill writes a draft beside it, which gets the
// name of the database only if fill succeeds. So a process that is killed meanwhile leaves no
// database, and its draft is overwritten by the next call. No other process can open or make the
// database meanwhile. The error wraps ErrExists if there is one, or storage.ErrLocked.
func Place(path string, fill func(draft *os.File) error) (err error) {
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if err := vacant(path); err != nil { // before it makes a lock beside the database of another
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := acquire(path + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := vacant(path); err != nil {
		return err
	}
	draft, err := os.OpenFile(path+draftEnd, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	if err := fill(draft); err != nil {
		return errors.Join(err, draft.Close())
	}
	if err := errors.Join(draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return err
	}
	_ = os.Remove(path + lostEnd) // the note is of the database before; if it stays, an operator removes it
	return errors.Join(syncDir(filepath.Dir(path)), syncDir(filepath.Dir(filepath.Dir(path))))
}

// vacant returns ErrExists if path has a database, or the log of one, which SQLite would apply to
// any database of that name.
func vacant(path string) error {
	for _, end := range []string{"", "-wal", "-journal"} {
		info, err := os.Lstat(path + end)
		switch {
		case err == nil && end == "-wal" && info.Size() == 0: // of a command that has only read
		case err == nil:
			return fmt.Errorf("%s: %w", path+end, ErrExists)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}
