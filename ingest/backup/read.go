package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/transfer"
)

const (
	// window bounds the memory of the compression in bytes.
	window = 4 << 20
	// maxOwn bounds the entries of the archive's own, in bytes.
	maxOwn = 64 << 20
)

// sink takes the contents of an archive, in their order.
type sink struct {
	about func(About) error                          // is called first
	file  func(path string, content io.Reader) error // reads a copy; its sum is not checked yet
	draft *os.File                                   // gets the database
}

// unpack reads an archive into a sink, and compares everything with its sums and counts.
func unpack(ctx context.Context, archive io.Reader, to sink) (r Result, err error) {
	whole := counted{r: archive, hash: sha256.New()}
	plain, err := zstd.NewReader(&whole, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(2*window))
	if err != nil {
		return r, err
	}
	defer plain.Close()
	defer func() {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: the file ends early: copy it again, or take another backup", ErrArchive)
		}
	}()
	u := unpacker{ctx: ctx, sink: to, tar: tar.NewReader(plain)}
	if err := u.run(); err != nil {
		return r, err
	}
	if _, err := io.Copy(io.Discard, plain); err != nil { // the end of the tar file, and then of the archive
		return r, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	if err := u.check(); err != nil {
		return r, err
	}
	return Result{About: u.about, Files: u.files, Missing: append([]string{}, u.sums.Missing...), Bytes: whole.n, SHA256: hex.EncodeToString(whole.hash.Sum(nil))}, nil
}

// counted counts and sums the bytes of a reader.
type counted struct {
	r    io.Reader
	n    int64
	hash hash.Hash
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.hash.Write(p[:n])
	return n, err
}

// unpacker is the state of one call of unpack.
type unpacker struct {
	ctx   context.Context
	sink  sink
	tar   *tar.Reader
	about About
	sums  sums
	files int
	// journal is the SHA-256 of the database that was read; empty: there was none.
	journal string
}

// run reads the entries up to the sums.
func (u *unpacker) run() error {
	for first := true; ; first = false {
		entry, err := u.tar.Next()
		if err == nil && u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		if err != nil {
			return fmt.Errorf("%w: it ends before its sums (%w)", ErrArchive, err)
		}
		if first != (entry.Name == aboutName) {
			return fmt.Errorf("%w: %s has the wrong place", ErrArchive, entry.Name)
		}
		if err := u.entry(entry.Name); err != nil {
			return err
		}
		if entry.Name == sumsName {
			return nil
		}
	}
}

// entry reads one entry.
func (u *unpacker) entry(name string) error {
	at, isFile := strings.CutPrefix(name, filesAt)
	switch {
	case name == aboutName:
		return u.begin()
	case name == sumsName:
		return u.own(&u.sums)
	case name == journalName && u.journal == "" && u.about.Engine == SQLite:
		sum := sha256.New()
		_, err := io.Copy(io.MultiWriter(u.sink.draft, sum), u.tar)
		u.journal = hex.EncodeToString(sum.Sum(nil))
		return err
	case isFile:
		u.files++
		return u.sink.file(at, u.tar)
	}
	return fmt.Errorf("%w: it has the unknown entry %q", ErrArchive, name)
}

// begin reads the description.
func (u *unpacker) begin() error {
	if err := u.own(&u.about); err != nil {
		return err
	}
	if u.about.Format != format {
		return fmt.Errorf("the backup has the form %d, and this program reads form %d: use the program that made it (%s)", u.about.Format, format, u.about.Program)
	}
	return u.sink.about(u.about)
}

// own reads an entry of the archive's own.
func (u *unpacker) own(into any) error {
	raw, err := io.ReadAll(io.LimitReader(u.tar, maxOwn))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrArchive, err)
	}
	return nil
}

// check compares the contents with the sums and the counts.
func (u *unpacker) check() error {
	switch {
	case u.journal != u.sums.Journal || u.about.Engine == SQLite && u.journal == "":
		return fmt.Errorf("%w: the database has not the sum that it had", ErrArchive)
	case u.files != u.sums.Files:
		return fmt.Errorf("%w: it has %d files, and had %d", ErrArchive, u.files, u.sums.Files)
	case u.about.Engine != SQLite:
		return nil
	}
	path := u.sink.draft.Name()
	if _, err := sqlite.Check(u.ctx, path, sqlite.Options{}); err != nil {
		return err
	}
	return sqlite.View(u.ctx, path, func(tx storage.Tx) error {
		found, err := transfer.Count(tx)
		if err == nil && !maps.Equal(found, u.about.Tables) {
			err = fmt.Errorf("%w: a table has not as many rows as it had", ErrArchive)
		}
		return errors.Join(err, sqlite.Intact(tx))
	})
}

// Verify reads a whole archive, and compares the contents with the sums and the counts. For that time, the
// database is in the file draft, which Verify overwrites and removes.
func Verify(ctx context.Context, archive io.Reader, draft string) (Result, error) {
	file, err := ours(draft)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	defer os.Remove(draft)
	return unpack(ctx, archive, sink{about: func(About) error { return nil }, file: compare, draft: file})
}

// ours opens an empty file that no other process fills now. It may have been left by a killed one.
func ours(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = file.Truncate(0)
	} else {
		err = fmt.Errorf("another process writes %s: %w", path, err)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// compare reads a copy, and compares it with its name.
func compare(at string, content io.Reader) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrArchive, at, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != path.Base(at) {
		return fmt.Errorf("%w: the file %s is damaged", ErrArchive, at)
	}
	return nil
}
