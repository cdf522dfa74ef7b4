package attach

import (
	"context"
	"errors"
	"io"
	"io/fs"
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

// incoming is the folder of the drafts in the directory.
const incoming = "incoming"

// used returns the bytes of all copies in the directory.
func (d directory) used(context.Context) (bytes int64, err error) {
	err = filepath.WalkDir(string(d), func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile, or no copy was stored yet
		}
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == incoming:
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return unlessMissing(err)
	})
	return bytes, err
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
