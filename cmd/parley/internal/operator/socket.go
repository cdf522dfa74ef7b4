package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// ErrTaken means that a running daemon has the socket.
var ErrTaken = errors.New("another daemon has the socket")

// maxPath is the length of the longest path of a socket that every system takes.
const maxPath = 100

// Listen opens the socket at a path, whose folder it makes. Only the user of the process can open the
// socket: it is made in a folder of its own and has its mode before it gets its name. A lock beside it
// shows whether its daemon lives: the socket of a dead daemon is replaced, and that of a living one is
// not, with ErrTaken. Close removes the socket.
func Listen(path string) (net.Listener, error) {
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return l, nil
}

func listen(path string) (_ net.Listener, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrTaken
	} else if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, errors.New("it is a file of another kind: remove it")
	}
	draft, err := os.MkdirTemp(dir, ".sock-") // of mode 0700
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	l, err := bind(filepath.Join(draft, "s"), path)
	if err != nil {
		return nil, err
	}
	return &socket{UnixListener: l, path: path, lock: lock}, nil
}

// bind makes a socket at the path draft, and moves it to path.
func bind(draft, path string) (*net.UnixListener, error) {
	short, done, err := shorten(draft)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(draft, 0o600); err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// shorten returns a name of a socket that the system takes. On Linux, a long path gets a short name
// through its open folder; done closes the folder.
func shorten(path string) (short string, done func(), err error) {
	switch {
	case len(path) <= maxPath:
		return path, func() {}, nil
	case runtime.GOOS != "linux":
		return "", nil, fmt.Errorf("the path is longer than %d bytes: use a folder with a shorter path", maxPath)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// socket is a listener that removes its socket.
type socket struct {
	*net.UnixListener
	path string
	lock *os.File
	once sync.Once
	err  error
}

// Close ends the listener and removes the socket. Closing twice does nothing.
func (s *socket) Close() error {
	s.once.Do(func() {
		s.err = errors.Join(os.Remove(s.path), s.UnixListener.Close(), s.lock.Close())
	})
	return s.err
}
