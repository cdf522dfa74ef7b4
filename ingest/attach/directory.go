package attach

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
)

var _ place = directory("")

// directory stores each copy in a file of its own, below a folder that the first copy
// creates.
type directory string

// put renames the draft. An existing copy has the same bytes, or it is damaged and the
// draft repairs it.
func (d directory) put(_ context.Context, draft *os.File, _ int64, path string) error {
	name := filepath.Join(string(d), path)
	folder := filepath.Dir(name)
	if err := errors.Join(draft.Sync(), draft.Close(), os.MkdirAll(folder, 0o700)); err != nil {
		return err
	}
	if err := os.Rename(draft.Name(), name); err != nil {
		return err
	}
	return errors.Join(syncDir(folder), syncDir(string(d)))
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d directory) open(_ context.Context, path string) (io.ReadSeekCloser, error) {
	return os.OpenInRoot(string(d), path)
}

func (d directory) remove(_ context.Context, path string) error {
	return unlessMissing(os.Remove(filepath.Join(string(d), path)))
}
