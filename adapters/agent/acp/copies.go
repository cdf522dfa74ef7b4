package acp

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// copies is a folder for copies of files. A lock on one of its files ends with the daemon, for any reason.
type copies struct {
	dir  string
	lock *os.File
}

const (
	copiesPrefix = "parley-acp-"
	copiesLock   = "lock"
)

// newCopies makes a folder. The file gets its name after its lock, so that removeLeft never takes a new folder for one that was left.
func newCopies() (*copies, error) {
	dir, err := os.MkdirTemp("", copiesPrefix)
	if err != nil {
		return nil, err
	}
	c := &copies{dir: dir}
	if c.lock, err = os.CreateTemp(dir, ""); err == nil {
		err = errors.Join(syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX), os.Rename(c.lock.Name(), filepath.Join(dir, copiesLock)))
	}
	if err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

// remove removes the folder.
func (c *copies) remove() {
	_ = os.RemoveAll(c.dir)
	_ = c.lock.Close()
}

// removeLeft removes the folders of daemons that were killed.
func removeLeft() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), copiesPrefix+"*")) // the pattern is valid
	for _, dir := range found {
		lock, err := os.OpenFile(filepath.Join(dir, copiesLock), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue // it is another user's, or its daemon has not locked it yet
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
