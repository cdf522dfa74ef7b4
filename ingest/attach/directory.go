package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// incoming is where copies stand that are still being written.
const incoming = "incoming"

var _ place = directory{}

// directory keeps each copy in a file of its own, below a folder that is made
// when it is first needed.
type directory struct{ dir string }

func (d directory) write(_ context.Context, source io.Reader, path func() string) error {
	return d.draft(source, func(made *draft) error { return made.keep(path()) })
}

// draft writes source to a file under a temporary name, and hands it on. What is
// done with it is undone with the file, unless that was kept.
func (d directory) draft(source io.Reader, then func(*draft) error) error {
	root, err := d.create()
	if err != nil {
		return err
	}
	defer root.Close()
	made, err := newDraft(root)
	if err != nil {
		return d.named(err)
	}
	defer made.discard()
	if _, err := io.Copy(made.file, source); err != nil {
		return d.named(err)
	}
	return d.named(then(made))
}

func (d directory) create() (*os.Root, error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make attachments.dir: %w", err)
	}
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, fmt.Errorf("open attachments.dir: %w", err)
	}
	return root, nil
}

func (d directory) open(_ context.Context, path string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, fmt.Errorf("open attachments.dir: %w", err)
	}
	defer root.Close()
	file, err := root.Open(path)
	if err != nil {
		return nil, d.named(err)
	}
	return file, nil
}

func (d directory) remove(_ context.Context, path string) error {
	root, err := os.OpenRoot(d.dir)
	if err == nil {
		defer root.Close()
		err = root.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.named(err)
}

func (d directory) sweep(_ context.Context, before time.Time) error {
	root, err := os.OpenRoot(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return d.named(err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), incoming)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.named(err)
	}
	var faults []error
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(before) {
			err = root.Remove(path.Join(incoming, entry.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, d.named(err))
		}
	}
	return errors.Join(faults...)
}

// named adds the directory to errors that tell only of paths below it.
func (d directory) named(err error) error {
	var below *fs.PathError
	var linked *os.LinkError
	if errors.As(err, &below) || errors.As(err, &linked) {
		return fmt.Errorf("in %s: %w", d.dir, err)
	}
	return err
}
