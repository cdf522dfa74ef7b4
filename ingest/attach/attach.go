// Package attach keeps copies of attachments, since a platform's links expire.
//
// A copy is found by the SHA-256 of its bytes, so equal files are kept once,
// however many messages carry them. It appears whole or not at all: bytes go to
// a temporary name, are synced, and only then renamed.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"time"

	"parley/ingest/event"
)

// Bucket is the bucket of every copy that a Store keeps.
const Bucket = "attachments"

// incoming is the directory of copies that are still being written.
const incoming = "incoming"

// What makes an attachment unavailable for good. Every other error of Put may
// go away: the source broke off, or the disk refused.
var (
	// ErrTooLarge means that there are more bytes than Config.MaxBytes.
	ErrTooLarge = errors.New("larger than attachments.max_bytes allows")
	// ErrOtherContent means that something else came than what was announced,
	// such as a sign-in page in the place of an image.
	ErrOtherContent = errors.New("the source sent something else")
)

// Copy says where a file is kept and what it is.
type Copy struct {
	Bucket   string
	Path     string // for Open; below the bucket, with slashes
	MimeType string // what the bytes show, or what was announced where they show nothing
	Size     int64  // bytes
	SHA256   string // 64 lower-case hexadecimal digits
}

// Store keeps copies in one directory, which it makes when it is first needed.
// It holds nothing open between calls and may be used concurrently, by several
// processes too.
type Store struct{ config Config }

// New returns a store of the configured directory. It does not touch the disk.
func New(config Config) *Store { return &Store{config} }

// Put copies what source gives until its end. The announced attachment's type
// and name help to tell what the bytes are; a Size above the limit is refused
// without a read. It fails with ErrTooLarge, ErrOtherContent, ctx's error, or
// the error of the source or the disk, and then leaves nothing behind. Between
// reads it minds ctx; a source that may block must mind it by itself.
func (s *Store) Put(ctx context.Context, source io.Reader, announced event.Attachment) (Copy, error) {
	made, err := s.put(ctx, source, announced)
	if err != nil {
		return Copy{}, fmt.Errorf("keep attachment %q: %w", announced.Name, err)
	}
	return made, nil
}

func (s *Store) put(ctx context.Context, source io.Reader, announced event.Attachment) (Copy, error) {
	if announced.Size > s.config.MaxBytes {
		return Copy{}, s.tooLarge()
	}
	source, mimeType, err := identify(source, announced)
	if err != nil {
		return Copy{}, err
	}
	root, err := s.create()
	if err != nil {
		return Copy{}, err
	}
	defer root.Close()
	d, err := newDraft(root)
	if err != nil {
		return Copy{}, s.disk(err)
	}
	defer d.discard()
	if err := d.fill(ctx, source, s.config.MaxBytes); err != nil {
		return Copy{}, s.disk(err)
	}
	sum := d.sum()
	made := Copy{Bucket: Bucket, Path: place(sum), MimeType: mimeType, Size: d.size, SHA256: sum}
	if err := d.keep(made.Path); err != nil {
		return Copy{}, s.disk(err)
	}
	return made, nil
}

// Open reads the copy at a path that Put returned. Any other path is refused,
// one that leads out of the directory among them; a copy that is gone is
// fs.ErrNotExist.
func (s *Store) Open(path string) (io.ReadCloser, error) {
	root, err := s.open(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open attachment in %s: %w", s.config.Dir, err)
	}
	return file, nil
}

// Remove deletes the copy at a path that Put returned; one that is gone already
// is no error. Messages share copies, so only the last one's path may be removed.
func (s *Store) Remove(path string) error {
	root, err := s.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove attachment in %s: %w", s.config.Dir, err)
	}
	return nil
}

// Sweep deletes what Puts that never ended left behind before the given time,
// which must be older than any Put under way.
func (s *Store) Sweep(before time.Time) error {
	root, err := os.OpenRoot(s.config.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.disk(err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), incoming)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.disk(err)
	}
	var faults []error
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(before) {
			err = root.Remove(path.Join(incoming, entry.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, s.disk(err))
		}
	}
	return errors.Join(faults...)
}

// kept is the form of every path that Put returns.
var kept = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{64}$`)

// place is where the copy of bytes with this sum stands: 256 directories keep
// each of them small.
func place(sum string) string { return sum[:2] + "/" + sum }

func (s *Store) create() (*os.Root, error) {
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make attachments.dir: %w", err)
	}
	root, err := os.OpenRoot(s.config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open attachments.dir: %w", err)
	}
	return root, nil
}

func (s *Store) open(path string) (*os.Root, error) {
	if !kept.MatchString(path) {
		return nil, fmt.Errorf("attachment %q: no path of this store", path)
	}
	root, err := os.OpenRoot(s.config.Dir)
	if err != nil {
		return nil, fmt.Errorf("open attachments.dir: %w", err)
	}
	return root, nil
}

// disk adds the directory to errors that tell only of paths below it.
func (s *Store) disk(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return s.tooLarge()
	}
	var below *fs.PathError
	var linked *os.LinkError
	if errors.As(err, &below) || errors.As(err, &linked) {
		return fmt.Errorf("in %s: %w", s.config.Dir, err)
	}
	return err
}

func (s *Store) tooLarge() error {
	return fmt.Errorf("%w (%d bytes)", ErrTooLarge, s.config.MaxBytes)
}
