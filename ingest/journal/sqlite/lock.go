package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"parley/ingest/journal/storage"
)

// acquire locks the named file. The lock ends when the file is closed or the process ends
// for any reason. The file contains the id of the process that has the lock. It is never
// removed, because a second process could then lock another file of the same name. A symbolic
// link is refused, because with it another user could choose the file that gets the id.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%w: remove this symbolic link", err)
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%w: %s is held by process %s; stop that daemon, or give this one a journal of its own",
				storage.ErrLocked, path, holder(file))
		} else {
			err = fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, errors.Join(err, file.Close())
	}
	_, err = file.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}

// holder returns the process id in the file, or "?".
func holder(file *os.File) string {
	text := make([]byte, 20)
	n, _ := file.ReadAt(text, 0)
	return cmp.Or(strings.TrimSpace(string(text[:n])), "?")
}
