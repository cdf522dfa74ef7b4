package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"parley/ingest/attach"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/transfer"
)

// Source is a store that daemons may be using.
type Source struct {
	Engine  storage.Engine
	Files   *attach.Store // the place of the copies
	Program string        // the version of this program
	Now     func() time.Time
}

// snapshotter is an engine that copies its database into a file. See sqlite.Engine.
type snapshotter interface {
	Snapshot(ctx context.Context, fn func(path string) error) error
}

// Snapshot is the state of a store at one moment.
type Snapshot struct {
	About
	source  Source
	journal *os.File   // of the database, without a name; nil: the archive has none
	copies  [][32]byte // the sums of the copies, which are their names
	largest int64      // the size of the largest of the copies, as far as it is known
	spool   *os.File   // a file without a name for one copy at a time; nil: there are no copies
	bytes   int64      // about the size of the contents
}

// ErrSpool means that the folder of temporary files does not take the copies. Its text has the folder and what to do.
var ErrSpool = errors.New("the folder of temporary files does not take the attachments")

// spoolError returns the ErrSpool for the cause.
func spoolError(cause error) error {
	return fmt.Errorf("%w: %w: make room in %s, or set TMPDIR to another folder in the environment of the daemon, or of this command if no daemon runs", ErrSpool, cause, os.TempDir())
}

// Begin makes a snapshot of the store, which the caller closes. It writes nothing into the store, and
// needs as much room beside an embedded database as that has, and room for the largest copy in the folder of
// temporary files, or its error is ErrSpool. Its error wraps sqlite.ErrSnapshot if another snapshot is being made.
func Begin(ctx context.Context, source Source) (*Snapshot, error) {
	s := &Snapshot{source: source, About: About{Format: format, Program: source.Program, At: source.Now().UTC(), Engine: Postgres, Bucket: source.Files.Bucket()}}
	var err error
	if embedded, ok := source.Engine.(snapshotter); ok {
		s.Engine = SQLite
		err = embedded.Snapshot(ctx, func(path string) error { return s.take(ctx, path) })
	} else {
		err = source.Engine.Read(ctx, s.read)
	}
	if err == nil && len(s.copies) > 0 {
		err = s.makeSpool()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// take opens the file of a database, which the caller removes, and reads its description.
func (s *Snapshot) take(ctx context.Context, path string) (err error) {
	if s.journal, err = os.Open(path); err != nil {
		return err
	}
	if err := sqlite.View(ctx, path, s.read); err != nil {
		return err
	}
	info, err := s.journal.Stat()
	if err == nil {
		s.bytes += info.Size()
	}
	return err
}

// read reads the description of the journal, and the copies that it names.
func (s *Snapshot) read(tx storage.Tx) (err error) {
	if _, err := tx.Row([]any{&s.Schema}, `SELECT coalesce(max(version), 0) FROM schema_migrations`); err != nil {
		return err
	}
	if s.Tables, err = transfer.Count(tx); err != nil {
		return err
	}
	s.copies, s.bytes, s.largest = nil, 0, 0 // again, if the engine repeats the read
	var last [32]byte
	return tx.Rows(func(scan func(...any) error) error {
		var sum string
		var size int64
		if err := scan(&sum, &size); err != nil {
			return err
		}
		var name [32]byte
		if n, err := hex.Decode(name[:], []byte(sum)); err != nil || n != len(name) || name == last {
			return nil // no copy of ours, or named by both a message and a delivery
		}
		s.copies, s.bytes, s.largest, last = append(s.copies, name), s.bytes+size, max(s.largest, size), name
		return nil
	}, named, s.Bucket)
}

// named is the query for the sums of the copies in a bucket, with their sizes, by sum. The file of a
// delivery is JSON with the keys bucket and path, in this order; a name in it can't contain a bare
// quotation mark.
const named = `SELECT substr(path, 4) AS sum, max(size) FROM attachments WHERE state = 'stored' AND bucket = $1 AND length(path) = 67 GROUP BY path
	UNION ALL
	SELECT substr(file, length(file) - 65, 64), 0 FROM deliveries WHERE file <> '' AND file LIKE '%"bucket":"' || CAST($1 AS TEXT) || '","path":"%'
	ORDER BY 1`

// Bytes returns about the number of bytes that Write will write.
func (s *Snapshot) Bytes() int64 { return s.bytes }

// Close ends the snapshot.
func (s *Snapshot) Close() error {
	var err error
	for _, file := range []*os.File{s.journal, s.spool} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// makeSpool opens the spool in a folder with room for the largest copy.
func (s *Snapshot) makeSpool() (err error) {
	if s.spool, err = os.CreateTemp("", "parley-"); err != nil {
		return spoolError(err)
	}
	if err := os.Remove(s.spool.Name()); err != nil {
		return err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(os.TempDir(), &disk); err != nil {
		return spoolError(err)
	}
	if free := int64(disk.Bavail) * int64(disk.Bsize); free < s.largest {
		return spoolError(fmt.Errorf("%s are free, and the largest has %s", humanize.Bytes(uint64(free)), humanize.Bytes(uint64(s.largest))))
	}
	return nil
}

// Write writes the contents of the archive, a tar file that is not compressed, to w. A copy that cannot be
// read is left out. Write may be called once.
func (s *Snapshot) Write(ctx context.Context, w io.Writer) error {
	out := writer{tar.NewWriter(w), s.At}
	err := out.add(aboutName, pack(s.About))
	var end sums
	if err == nil && s.journal != nil {
		end.Journal, err = out.copy(journalName, s.journal)
	}
	if err == nil {
		err = s.writeCopies(ctx, out, &end)
	}
	if err == nil {
		err = out.add(sumsName, pack(end))
	}
	if err != nil {
		return err // the archive has no sums, so nobody takes it for a whole one
	}
	return out.Close()
}

// writeCopies writes the copies. Each goes through a file first: only a whole copy with the right sum is
// written, because an entry begins with its size.
func (s *Snapshot) writeCopies(ctx context.Context, out writer, end *sums) error {
	for _, name := range s.copies {
		sum := hex.EncodeToString(name[:])
		path := sum[:2] + "/" + sum
		err := s.fetch(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, attach.ErrDamaged):
			end.Missing = append(end.Missing, path)
			continue
		case err == nil:
			_, err = out.copy(filesAt+path, s.spool)
		}
		if err != nil {
			return err
		}
		end.Files++
	}
	return nil
}

// fetch replaces the contents of the spool by a copy.
func (s *Snapshot) fetch(ctx context.Context, path string) error {
	if _, err := s.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := s.spool.Truncate(0); err != nil {
		return err
	}
	content, err := s.source.Files.Open(ctx, s.Bucket, path)
	if err != nil {
		return err
	}
	_, err = io.Copy(s.spool, content)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = spoolError(err)
	}
	return cmp.Or(err, content.Close())
}

// writer writes entries with the time of the snapshot.
type writer struct {
	*tar.Writer
	at time.Time
}

func (w writer) add(name string, content []byte) error {
	return w.entry(name, int64(len(content)), bytes.NewReader(content))
}

func (w writer) entry(name string, size int64, content io.Reader) error {
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.at})
	if err == nil {
		_, err = io.Copy(w, content)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// copy adds a whole file, and returns its SHA-256.
func (w writer) copy(name string, file *os.File) (sum string, err error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = w.entry(name, size, io.TeeReader(io.LimitReader(file, size), hash))
	return hex.EncodeToString(hash.Sum(nil)), err
}
