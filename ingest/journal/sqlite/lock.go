package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"parley/ingest/journal"
)

// acquire locks the file of that name, which stays locked until it is closed or
// the process ends, however it ends. The file says which process has it; it is
// never removed, since a second process could then lock another file of the
// same name.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%w: %s is held by process %s; stop that daemon, or give this one a journal of its own",
				journal.ErrLocked, path, holder(file))
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

// holder is the process id that the file names, or "?".
func holder(file *os.File) string {
	text := make([]byte, 20)
	n, _ := file.ReadAt(text, 0)
	return cmp.Or(strings.TrimSpace(string(text[:n])), "?")
}
