package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/ingest/journal/internal/schema"
)

// Check returns an error if Open could neither open nor create the database at path. The
// database may be open, and its contents do not change. A folder above it gets a draft for a moment.
func Check(ctx context.Context, path string, o Options) error {
	o.complete()
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(file.Close(), readable(ctx, path, o))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		draft, err := os.MkdirTemp(dir, ".parley-")
		if err == nil {
			return os.Remove(draft)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
		}
	}
}

// readable returns an error if a file is no database, or one of another or a newer program.
func readable(ctx context.Context, path string, o Options) error {
	steps, err := fs.Glob(o.Migrations, o.Pattern)
	if err != nil {
		return err
	}
	c, err := connect(ctx, path, o.vfs, "busy_timeout=1000", "query_only=ON")
	if err != nil {
		return err
	}
	if err = c.refuseOther(); err == nil {
		_, err = schema.Applied(len(steps), exists, c.number)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(err, c.close())
}
