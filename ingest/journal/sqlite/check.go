package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns an error if Open could neither open nor create the database at path. The
// database may be open, and does not change. A folder above it gets a draft for a moment.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	switch {
	case err == nil:
		err = file.Close()
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	for isMissing(dir) {
		dir = filepath.Dir(dir)
	}
	draft, err := os.MkdirTemp(dir, ".parley-")
	if err != nil {
		return fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
	}
	return os.Remove(draft)
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
