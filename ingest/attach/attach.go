// Package attach keeps copies of attachments, since a platform's links expire.
//
// A copy is found by the SHA-256 of its bytes, so equal files are kept once,
// however many messages carry them. It appears whole or not at all, and what is
// read is what was put, or reading it fails.
//
// Copies stand in a directory, in the store itself where several daemons share
// one, or in an S3 bucket. The sum is known only when a file's last byte is: a
// directory and a store are written under a name that nobody looks for, which
// one step at the end changes, so that nothing is held in memory; what is bound
// for a bucket, where nothing can be renamed, waits on the disk for its name.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"parley/ingest/event"
)

// What makes an attachment unavailable for good. Every other error of Put may
// go away: the source broke off, or the disk refused.
var (
	// ErrTooLarge means that there are more bytes than Config.MaxBytes.
	ErrTooLarge = errors.New("larger than attachments.max_bytes allows")
	// ErrOtherContent means that something else came than what was announced,
	// such as a sign-in page in the place of an image.
	ErrOtherContent = errors.New("the source sent something else")
)

var (
	// ErrElsewhere means that a copy was kept in another place than the one that
	// is configured now.
	ErrElsewhere = errors.New("the copy is kept elsewhere")
	// ErrDamaged means that the bytes of a copy are not those that were put.
	ErrDamaged = errors.New("the copy is damaged")
)

// Copy says where a file is kept and what it is.
type Copy struct {
	Bucket   string // for Open; the place of the copy
	Path     string // for Open; below the bucket, with slashes
	MimeType string // what the bytes show, or what was announced where they show nothing
	Size     int64  // bytes
	SHA256   string // 64 lower-case hexadecimal digits
}

// place is where copies stand. Its methods may be called side by side, by
// several processes too, and for the same path. A path is one that Put returned.
type place interface {
	// write keeps what source gives until its end, under the path that is told
	// when all was read: whole or not at all. Errors of source come back wrapped
	// or as they are, and leave nothing behind.
	write(ctx context.Context, source io.Reader, path func() string) error
	// open reads a copy, as long as ctx allows. One that is not there is fs.ErrNotExist.
	open(ctx context.Context, path string) (io.ReadCloser, error)
	// remove deletes a copy; one that is not there is no error.
	remove(ctx context.Context, path string) error
	// sweep deletes what writes that never ended left behind before the given time.
	sweep(ctx context.Context, before time.Time) error
}

// Store keeps copies in one place. It holds nothing open between calls, except
// connections to a bucket's server, and may be used concurrently, by several
// processes too.
type Store struct {
	place    place
	bucket   string // the place's name
	maxBytes int64
}

// New returns a store of the configured bucket; where there is none, of the
// chunks that shared keeps; where that is nil too, of the configured directory.
// It does not touch the disk or the network. Config must be valid.
func New(config Config, shared Chunks) (*Store, error) {
	dir := directory{config.Dir}
	s := &Store{dir, "attachments", config.MaxBytes}
	switch {
	case config.S3 != nil:
		b, err := newBucket(*config.S3, dir)
		if err != nil {
			return nil, fmt.Errorf("attachments.s3: %w", err)
		}
		s.place, s.bucket = b, b.place()
	case shared != nil:
		s.place, s.bucket = chunks{shared}, "store"
	}
	return s, nil
}

// Put copies what source gives until its end. The announced attachment's type
// and name help to tell what the bytes are; a Size above the limit is refused
// without a read. It fails with ErrTooLarge, ErrOtherContent, ctx's error, or
// the error of the source or the place, and then leaves nothing behind. Between
// reads it minds ctx; a source that may block must mind it by itself.
func (s *Store) Put(ctx context.Context, source io.Reader, announced event.Attachment) (Copy, error) {
	made, err := s.put(ctx, source, announced)
	if err != nil {
		return Copy{}, fmt.Errorf("keep attachment %q: %w", announced.Name, err)
	}
	return made, nil
}

// Fits fails with ErrTooLarge where so many bytes are more than are kept. It
// spares asking for them.
func (s *Store) Fits(size int64) error {
	if size > s.maxBytes {
		return tooLarge(s.maxBytes)
	}
	return nil
}

func (s *Store) put(ctx context.Context, source io.Reader, announced event.Attachment) (Copy, error) {
	if err := s.Fits(announced.Size); err != nil {
		return Copy{}, err
	}
	source, mimeType, err := identify(source, announced)
	if err != nil {
		return Copy{}, err
	}
	m := measure(ctx, source, s.maxBytes)
	if err := s.place.write(ctx, m, m.path); err != nil {
		return Copy{}, err
	}
	return Copy{Bucket: s.bucket, Path: m.path(), MimeType: mimeType, Size: m.size, SHA256: m.sum()}, nil
}

// Open reads the copy that Put returned a bucket and a path of; ctx bounds the
// reading too. Any other path is refused, one that leads out of the place among
// them; a copy that is gone is fs.ErrNotExist, and one of another place than
// this store's is ErrElsewhere. Reading ends in ErrDamaged, not io.EOF, where
// the bytes are not those that were put.
func (s *Store) Open(ctx context.Context, bucket, path string) (io.ReadCloser, error) {
	if err := s.check(bucket, path); err != nil {
		return nil, err
	}
	content, err := s.place.open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open attachment: %w", err)
	}
	return verify(content, path), nil
}

// Remove deletes the copy that Put returned a bucket and a path of; one that is
// gone already is no error. Messages share copies, so only the last one's path
// may be removed.
func (s *Store) Remove(ctx context.Context, bucket, path string) error {
	if err := s.check(bucket, path); err != nil {
		return err
	}
	if err := s.place.remove(ctx, path); err != nil {
		return fmt.Errorf("remove attachment: %w", err)
	}
	return nil
}

// Sweep deletes what Puts that never ended left behind before the given time,
// which must be older than any Put under way.
func (s *Store) Sweep(ctx context.Context, before time.Time) error { return s.place.sweep(ctx, before) }

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
