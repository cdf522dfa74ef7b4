package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Create makes the archive at path. fill writes its contents, as Snapshot.Write does. The archive is read
// back before it gets its name, by way of reading, which may count the bytes. A killed process leaves
// no file of that name; the next call overwrites the unfinished one. An existing file is refused.
func Create(ctx context.Context, path string, fill func(w io.Writer) error, reading func(archive io.Reader, bytes int64) io.Reader) (r Result, err error) {
	if err := absent(path); err != nil {
		return r, err
	}
	part, err := ours(path + ".part")
	if err != nil {
		return r, err
	}
	defer part.Close()
	defer os.Remove(part.Name())
	if err := compress(part, fill); err != nil {
		return r, err
	}
	size, err := part.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = part.Seek(0, io.SeekStart)
	}
	if err != nil {
		return r, err
	}
	if r, err = Verify(ctx, reading(part, size), path+".verify"); err != nil {
		return r, fmt.Errorf("read back: %w", err)
	}
	if err := absent(path); err != nil {
		return r, err
	}
	return r, errors.Join(os.Rename(part.Name(), path), syncDir(filepath.Dir(path)))
}

// absent returns an error if a file exists.
func absent(path string) error {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s exists: name another file", path)
	}
	return err
}

// compress writes what fill writes into a file, durably.
func compress(file *os.File, fill func(w io.Writer) error) error {
	z, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	if err := fill(z); err != nil {
		return errors.Join(err, z.Close())
	}
	return errors.Join(z.Close(), file.Sync())
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
