package attach

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"parley/ingest/journal/storage"
)

// ErrWrite means that the place of copies, or the folder of drafts, cannot be written: a directory of
// another user, a full disk, or a bucket that does not answer. Put may succeed later.
var ErrWrite = errors.New("the place of files can't be written")

// unwritten marks an error of the place with ErrWrite. An error of the journal is none.
func unwritten(err error) error {
	if err == nil || storage.Unavailable(err) || errors.Is(err, ErrWrite) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrWrite, err)
}

// written is the file of a draft; its errors are ErrWrite.
type written struct{ *os.File }

// Write implements io.Writer.
func (w written) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	return n, unwritten(err)
}

// trouble is the error of the place since the last file that it took; nil for none.
type trouble struct {
	mu  sync.Mutex
	err error
}

// note notes the end of a Put. Changed gets the first error, and nil after the recovery.
func (s *Store) note(err error) {
	if err != nil && !errors.Is(err, ErrWrite) {
		return
	}
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	if (err == nil) != (s.trouble.err == nil) {
		s.Changed(err)
	}
	s.trouble.err = err
}

// Trouble returns the error of the last file if the place could not be written; nil otherwise. A directory
// is tried again.
func (s *Store) Trouble() error {
	s.trouble.mu.Lock()
	err := s.trouble.err
	s.trouble.mu.Unlock()
	if _, local := s.place.(directory); err != nil && local && s.CheckDir() == nil {
		s.note(nil)
		return nil
	}
	return err
}
