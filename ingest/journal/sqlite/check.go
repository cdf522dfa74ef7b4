package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// Check returns an error if Open could neither open nor create the database at path. The
// database may be open, and its contents do not change. A folder above it gets a draft for a moment. Check returns
// what Open would do to the schema of a database that exists.
func Check(ctx context.Context, path string, o Options) (needs storage.Upgrade, err error) {
	o.complete()
	if path, err = filepath.Abs(path); err != nil {
		return needs, err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		needs, err = readable(ctx, path, o)
		err = errors.Join(file.Close(), err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return needs, err
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		draft, err := os.MkdirTemp(dir, ".parley-")
		if err == nil {
			return needs, os.Remove(draft)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return needs, fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
		}
	}
}

// readable returns an error if a file is no database, or one of another or a newer program.
func readable(ctx context.Context, path string, o Options) (needs storage.Upgrade, err error) {
	c, err := connectAs(ctx, path, o.vfs, readOnly, "busy_timeout=1000", "query_only=ON")
	if err != nil {
		return needs, err
	}
	if err = c.refuseOther(); err == nil {
		needs, err = schema.Needs(o.Steps, exists, c.number)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return needs, errors.Join(err, c.close())
}
