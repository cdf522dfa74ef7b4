package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"parley/ingest/journal/storage"
)

var (
	_ storage.Engine    = (*Reader)(nil)
	_ storage.Describer = (*Reader)(nil)
)

// ErrOtherSchema means that a database needs the program that made it, or a start of the daemon, which updates it.
var ErrOtherSchema = errors.New("the store has another schema")

// Reader reads a database without its lock, so that a daemon may start and write meanwhile. It changes nothing before
// its first Write, which opens the database as Open does.
type Reader struct {
	path    string
	options Options

	mu     sync.Mutex
	pool   readers
	form   string    // of the connections: readOnly or immutable
	seen   fileState // of the file, if its connections believe that it never changes
	writer *Engine   // nil before the first Write
}

// The forms of a connection that only reads. A database in WAL mode needs a file for its shared memory. If the process
// may not make that file, and there is no log, it opens the database as immutable.
const (
	readOnly  = "mode=ro"
	immutable = "immutable=1"
)

// fileState shows whether a file has changed.
type fileState struct {
	at   time.Time
	size int64
	log  bool // the database has a log
}

// OpenReader opens a database that exists. It fails with ErrOtherSchema if this program cannot read it.
func OpenReader(ctx context.Context, path string, o Options) (*Reader, error) {
	o.complete()
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	r := &Reader{path: path, options: o}
	first := r.open
	if o.fixed {
		first = func(ctx context.Context) error { return r.try(ctx, immutable) }
	}
	if err := first(ctx); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return r, nil
}

// open makes the pool of connections that read.
func (r *Reader) open(ctx context.Context) error {
	err := r.try(ctx, readOnly)
	if primary(err) != lib.SQLITE_CANTOPEN && primary(err) != lib.SQLITE_READONLY {
		return err
	}
	if state := stateOf(r.path); state.log {
		return fmt.Errorf("%w: run the command as the user of the daemon", err)
	}
	return r.try(ctx, immutable)
}

// try opens the pool in a form, and looks at the schema.
func (r *Reader) try(ctx context.Context, form string) error {
	seen := stateOf(r.path)
	pool := newReadersAs(r.path, form, r.options)
	if err := pool.read(ctx, true, r.readable); err != nil {
		pool.close()
		return err
	}
	r.pool, r.form, r.seen = pool, form, seen
	return nil
}

// readable returns an error if this program cannot read the database.
func (r *Reader) readable(tx storage.Tx) error {
	var tables, ours, schema int64
	if _, err := tx.Row([]any{&tables, &ours}, `SELECT count(*), coalesce(sum(name = 'schema_migrations'), 0) FROM sqlite_master`); err != nil {
		return err
	}
	if ours == 0 {
		return fmt.Errorf("%s: %w: parley run makes it", r.path, ErrOtherSchema)
	}
	if _, err := tx.Row([]any{&schema}, `SELECT coalesce(max(version), 0) FROM schema_migrations`); err != nil {
		return err
	}
	if steps := r.options.Steps; schema != int64(len(steps)) {
		return fmt.Errorf("%s: %w: %d, and this program has %d; a start of the newer daemon updates it", r.path, ErrOtherSchema, schema, len(steps))
	}
	return nil
}

// stateOf returns the state of a database's file.
func stateOf(path string) (s fileState) {
	if info, err := os.Stat(path); err == nil {
		s.at, s.size = info.ModTime(), info.Size()
	}
	log, err := os.Stat(path + "-wal")
	s.log = err == nil && log.Size() > 0
	return s
}

// Read implements storage.Engine.
func (r *Reader) Read(ctx context.Context, fn func(storage.Tx) error) error {
	return r.read(ctx, true, fn)
}

// ReadOne implements storage.Engine.
func (r *Reader) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	return r.read(ctx, false, fn)
}

// read runs fn. If the database has changed although its connections believe that it never does, the result may be of
// two states, and fn runs again.
func (r *Reader) read(ctx context.Context, whole bool, fn func(storage.Tx) error) error {
	for {
		r.mu.Lock()
		pool, form, seen := r.pool, r.form, r.seen
		r.mu.Unlock()
		err := pool.read(ctx, whole, fn)
		if form == readOnly || stateOf(r.path) == seen || ctx.Err() != nil {
			return err
		}
		old, err := r.again(ctx, seen)
		if err != nil {
			return unavailable(err)
		}
		old.close() // it waits for the reads that have begun
	}
}

// again opens the pool again, unless another reader has since the state. It returns the pool that nobody uses any more.
func (r *Reader) again(ctx context.Context, seen fileState) (old readers, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen != seen {
		return readers{}, nil
	}
	old = r.pool
	return old, r.open(ctx)
}

// Write implements storage.Engine. It fails with storage.ErrLocked if another process has the database by now.
func (r *Reader) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	e, err := r.Writable(ctx)
	if err != nil {
		return err
	}
	return e.Write(ctx, options, fn)
}

// Writable opens the database as Open does, once. Close closes it.
func (r *Reader) Writable(ctx context.Context) (*Engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer == nil {
		e, err := Open(ctx, r.path, r.options)
		if err != nil {
			return nil, err
		}
		r.writer = e
	}
	return r.writer, nil
}

// Snapshot is Engine.Snapshot.
func (r *Reader) Snapshot(ctx context.Context, fn func(path string) error) error {
	e, err := r.Writable(ctx)
	if err != nil {
		return err
	}
	return e.Snapshot(ctx, fn)
}

// Facts implements storage.Describer.
func (r *Reader) Facts(ctx context.Context) (storage.Facts, error) { return facts(ctx, r, r.path) }

// Erased implements storage.Eraser.
func (r *Reader) Erased() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer != nil {
		r.writer.Erased()
	}
}

// Close implements storage.Engine.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.close()
	if r.writer != nil {
		return r.writer.Close()
	}
	return nil
}
