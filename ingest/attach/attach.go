// Package attach stores copies of attachments, because a platform's links expire.
//
// The path of a copy is the SHA-256 of its bytes, so equal files are stored once for all
// messages. A copy appears complete or not at all. A read returns the stored bytes or
// fails.
//
// The place of the copies is a directory, the store itself if several daemons share it,
// or an S3 bucket. The sum is known only after a file's last byte, and a file is never
// held in memory. So each file is first written to a draft, a file in the directory.
package attach

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"time"

	"parley/ingest/event"
)

// The errors of Put that make an attachment unavailable for good. After any other error,
// such as a broken connection or a full disk, Put may succeed later.
var (
	// ErrTooLarge means that the source has more bytes than Config.MaxBytes.
	ErrTooLarge = errors.New("larger than attachments.max_bytes allows")
	// ErrOtherContent means that the bytes do not fit the announced type: a sign-in page
	// instead of an image, for example.
	ErrOtherContent = errors.New("the source sent something else")
)

var (
	// ErrPlace means that Put has read the file, and that the hold or the place failed.
	ErrPlace = errors.New("the file can't be stored")
	// ErrElsewhere means that a copy is in another place than the configured one.
	ErrElsewhere = errors.New("the copy is stored elsewhere")
	// ErrRefused means that a bucket's server refuses the configured key, or has no such bucket.
	ErrRefused = errors.New("the server refuses")
	// ErrDamaged means that the bytes of a copy have changed.
	ErrDamaged = errors.New("the copy is damaged")
)

// Copy is the place of a stored file, and the facts about its bytes.
type Copy struct {
	Bucket   string // for Open; the place of the copy
	Path     string // for Open; below the bucket, with slashes
	MimeType string // by the bytes, or as announced if the bytes do not show it
	Size     int64  // bytes
	SHA256   string // 64 lower-case hexadecimal digits
}

// place stores copies. Several goroutines and processes may call its methods
// concurrently, for the same path too. Each path comes from Put.
type place interface {
	// put stores a draft of size bytes at path, completely or not at all. It may rename
	// the draft.
	put(ctx context.Context, draft *os.File, size int64, path string) error
	// open reads a copy while ctx lasts. A missing copy is fs.ErrNotExist. The reader means
	// nothing beside an error.
	open(ctx context.Context, path string) (io.ReadSeekCloser, error)
	// remove deletes a copy. A missing copy is no error.
	remove(ctx context.Context, path string) error
}

// Store stores copies in one place. Several goroutines and processes may use it
// concurrently. Between calls, it keeps only connections to a bucket's server open.
type Store struct {
	place    place
	bucket   string // the place's name in Copy
	where    string // the place's name in errors
	drafts   string // the folder of drafts
	maxBytes int64
	hold     Hold
	unnamed  time.Duration // how long a copy is kept that no message names
	quota    quota
	// Refused receives, at most once a minute, the error of a file for which there is no room. Set
	// it before the first Put.
	Refused func(error)
	// Changed receives the error with which the place begins to fail, and nil when it takes files again.
	// Set it before the first Put.
	Changed func(error)
	trouble trouble
}

// Books are the records about copies, which all daemons with the same store share. Each is a method of a
// *journal.Journal; a nil one records nothing.
type Books struct {
	Hold  Hold
	Spend Spend
	// Bytes returns the bytes of the copies in a bucket that messages name.
	Bytes func(ctx context.Context, bucket string) (int64, error)
}

// Spend counts the bytes of a sender's file within a time. It returns false, and counts nothing, if
// the sender's bytes within that time would be more than most. It is SpendBytes of a *journal.Journal.
type Spend func(ctx context.Context, sender string, bytes, most int64, per time.Duration) (fits bool, err error)

// Hold keeps a copy for a time, and later removes it if no message names it. It fails
// during a removal of the copy. It is HoldCopy of a *journal.Journal.
type Hold func(ctx context.Context, bucket, path string, atLeast time.Duration) error

// fill replaces the nil records.
func (b *Books) fill() {
	if b.Hold == nil {
		b.Hold = func(context.Context, string, string, time.Duration) error { return nil }
	}
	if b.Spend == nil {
		b.Spend = func(context.Context, string, int64, int64, time.Duration) (bool, error) { return true, nil }
	}
	if b.Bytes == nil {
		b.Bytes = func(context.Context, string) (int64, error) { return 0, nil }
	}
}

// New returns a store in the configured bucket; without a bucket, in shared; if that is
// nil too, in the configured directory. New does not access the disk or the network.
// Config must be valid. Check needs no books.
func New(config Config, books Books, shared Blobs) (*Store, error) {
	books.fill()
	local := directory(config.Dir)
	s := &Store{
		place: local, bucket: "attachments", where: config.Dir, drafts: filepath.Join(config.Dir, incoming), maxBytes: config.MaxBytes, hold: books.Hold,
		unnamed: max(time.Hour, config.TTL), Refused: func(error) {}, Changed: func(error) {},
		quota: quota{most: cmp.Or(config.Quota, unbounded), perSender: cmp.Or(config.PerSender, unbounded), disk: config.Dir, used: local.used, spend: books.Spend},
	}
	switch {
	case config.S3 != nil:
		b, err := newBucket(*config.S3)
		if err != nil {
			return nil, fmt.Errorf("attachments.s3: %w", err)
		}
		s.place, s.bucket, s.where = b, b.place(), b.where
		s.quota.used = func(ctx context.Context) (int64, error) { return books.Bytes(ctx, s.bucket) }
	case shared != nil:
		s.place, s.bucket, s.where = blobs{shared}, "store", "the store"
		s.quota.used = shared.BlobBytes
	}
	return s, nil
}

// Put is PutFor for a file of our own.
func (s *Store) Put(ctx context.Context, source io.Reader, announced event.Attachment) (Copy, error) {
	return s.PutFor(ctx, "", source, announced)
}

// PutFor copies all bytes of a sender's source and holds the copy, as Hold does. The announced type and
// name help to identify the type of the bytes. A Size above the limit is refused without a
// read. PutFor fails with ErrTooLarge, ErrOtherContent, ErrQuota, ErrSender, ErrWrite, ctx's error, or
// the error of the source or the hold, and then there is no copy. It checks ctx between reads; a
// source that may block must check ctx too.
func (s *Store) PutFor(ctx context.Context, sender string, source io.Reader, announced event.Attachment) (made Copy, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("store attachment %q: %w", announced.Name, err)
		}
		s.note(err)
	}()
	if err := s.Fits(announced.Size); err != nil {
		return Copy{}, err
	}
	source, mimeType, err := identify(s.bounded(ctx, source), announced)
	if err != nil {
		return Copy{}, err
	}
	draft, err := s.draft()
	if err != nil {
		return Copy{}, err
	}
	defer draft.discard()
	size, sum, err := draft.fill(source)
	if err != nil {
		return Copy{}, err
	}
	if err := s.quota.take(ctx, sender, size); err != nil {
		if IsRefused(err) && s.quota.reports() {
			s.Refused(err)
		}
		return Copy{}, err
	}
	path := sum[:2] + "/" + sum // 256 directories, so that each stays small
	if err = s.Hold(ctx, s.bucket, path); err == nil {
		err = unwritten(s.place.put(ctx, draft.File, size, path))
	}
	if err != nil {
		return Copy{}, fmt.Errorf("%w in %s: %w", ErrPlace, s.where, err)
	}
	return Copy{Bucket: s.bucket, Path: path, MimeType: mimeType, Size: size, SHA256: sum}, nil
}

// Hold keeps a copy for an hour, and for as long as a link to it is valid, also if no message
// names it. It fails during a removal of the copy; the same call may succeed later.
func (s *Store) Hold(ctx context.Context, bucket, path string) error {
	return s.hold(ctx, bucket, path, s.unnamed)
}

// CheckDir tries whether the configured directory, or the nearest one above it if it is missing,
// takes a file; it leaves nothing there.
func (s *Store) CheckDir() error {
	for dir := filepath.Dir(s.drafts); ; dir = filepath.Dir(dir) {
		draft, err := os.MkdirTemp(dir, ".parley-")
		if err == nil {
			return os.Remove(draft)
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
		}
	}
}

// Check tries whether the bucket takes, gives and deletes an object; it leaves nothing there.
// It does nothing without a bucket. The server's refusal, such as of a wrong key, is
// ErrRefused; after any other error, the server may only be away.
func (s *Store) Check(ctx context.Context) error {
	b, ok := s.place.(*bucket)
	if !ok {
		return nil
	}
	err := b.check(ctx)
	switch {
	case err == nil:
		return nil
	case refused(err):
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", s.where, err)
}

// Fits fails with ErrTooLarge if size is above the limit, so that the caller need not
// request the bytes.
func (s *Store) Fits(size int64) error {
	if size > s.maxBytes {
		return fmt.Errorf("%w (%d bytes)", ErrTooLarge, s.maxBytes)
	}
	return nil
}

// bounded reads source while ctx lasts. More bytes than the limit are ErrTooLarge. Only
// the plain io.EOF is the source's end: a wrapped one is a broken connection.
func (s *Store) bounded(ctx context.Context, source io.Reader) io.Reader {
	var size int64
	return reader(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		n, err := source.Read(p)
		size += int64(n)
		if err := s.Fits(size); err != nil {
			return 0, err
		}
		if err != nil && err != io.EOF {
			err = fmt.Errorf("read from its source: %w", err)
		}
		return n, err
	})
}

// reader is a function that implements io.Reader.
type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// Open reads the copy with the bucket and path that Put returned; ctx bounds the read too.
// It refuses any other path, so that no path leads out of the place. A missing copy is
// fs.ErrNotExist, a copy in another place ErrElsewhere. If the bytes have changed, the read
// ends in ErrDamaged instead of io.EOF.
func (s *Store) Open(ctx context.Context, bucket, path string) (io.ReadCloser, error) {
	content, err := s.open(ctx, bucket, path)
	if err != nil {
		return nil, err
	}
	return content, nil
}

func (s *Store) open(ctx context.Context, bucket, at string) (*verified, error) {
	if err := s.check(bucket, at); err != nil {
		return nil, err
	}
	content, err := s.place.open(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("open attachment in %s: %w", s.where, err)
	}
	return &verified{ReadSeekCloser: content, hash: sha256.New(), sum: path.Base(at), size: -1}, nil
}

// Remove deletes the copy with the bucket and path that Put returned. A missing copy is
// no error. Messages share copies, so the caller must know that no other message has this
// one.
func (s *Store) Remove(ctx context.Context, bucket, path string) error {
	if err := s.check(bucket, path); err != nil {
		return err
	}
	if err := s.place.remove(ctx, path); err != nil {
		return fmt.Errorf("remove attachment in %s: %w", s.where, err)
	}
	return nil
}

// Sweep deletes the drafts of interrupted Puts that began before the given time. No such
// Put may still be running.
func (s *Store) Sweep(before time.Time) error {
	entries, err := os.ReadDir(s.drafts)
	faults := []error{unlessMissing(err)}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(filepath.Join(s.drafts, entry.Name()))
		}
		faults = append(faults, unlessMissing(err))
	}
	return errors.Join(faults...)
}

// unlessMissing returns err, unless it means that a file is missing.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// kept is the form of every path that Put returns.
var kept = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{64}$`)

func (s *Store) check(bucket, path string) error {
	if bucket != s.bucket {
		return fmt.Errorf("attachment: %w: in %q, and this daemon is configured for %q", ErrElsewhere, bucket, s.bucket)
	}
	if !kept.MatchString(path) {
		return fmt.Errorf("attachment %q: no path of this store", path)
	}
	return nil
}
