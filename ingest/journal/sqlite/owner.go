package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// writable is the mode of access(2) that asks whether this process may write.
const writable = 2

// owned returns an error that says what to do if another user has made a file of the database at path, or its folder,
// and this process may not write it. Often that is root, with a command before the first start of a service.
func owned(path string) error {
	me := userName(os.Getuid())
	for i, name := range []string{filepath.Dir(path), path + ".lock", path, path + "-wal", path + "-shm"} {
		if !errors.Is(syscall.Access(name, writable), fs.ErrPermission) {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(stat.Uid) == os.Getuid() {
			continue
		}
		advice := "run this as that user"
		if i > 0 {
			advice = fmt.Sprintf("as root: chown -R %s %s", me, filepath.Dir(path))
		}
		return fmt.Errorf("%s belongs to the user %s, and this process is of the user %s; %s", name, userName(int(stat.Uid)), me, advice)
	}
	return nil
}

// userName returns the name of a user, or the number if there is none.
func userName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return strconv.Itoa(id)
}
