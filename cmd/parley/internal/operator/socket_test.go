package operator_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/journaltest"
)

// TestMain dials a socket instead of running the tests if PARLEY_DIAL names one.
func TestMain(m *testing.M) {
	if path := os.Getenv("PARLEY_DIAL"); path != "" {
		if _, err := net.Dial("unix", path); err != nil {
			_, _ = os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := operator.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestTheSocketOfADeadDaemonIsReplaced, and that of a living one is not.
func TestTheSocketOfADeadDaemonIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(journaltest.Dir(t), "data", "parley.sock")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	if _, err := operator.Dial(t.Context(), path); !errors.Is(err, operator.ErrNoDaemon) {
		t.Errorf("a dead daemon: %v", err)
	}
	living := listen(t, path)
	if _, err := operator.Listen(path); !errors.Is(err, operator.ErrTaken) {
		t.Errorf("a living daemon: %v", err)
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 || !strings.HasSuffix(left[0], ".lock") {
		t.Errorf("left: %q", left)
	}
	_ = listen(t, path)
}

// TestTheSocketReplacesNoFile that is something else.
func TestTheSocketReplacesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(journaltest.Dir(t), "parley.sock")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Listen(path); err == nil {
		t.Error("a file was replaced")
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path+".lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Listen(path); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a lock that is a symbolic link: %v", err)
	}
}

// TestALongPath is longer than the system's greatest length of a socket's address.
func TestALongPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(journaltest.Dir(t), strings.Repeat("long/", 40), "parley.sock")
	s := newService(t)
	serve(t, listen(t, path), s.Local())
	c, err := operator.Dial(t.Context(), path)
	if err != nil {
		t.Skipf("the system has no way to such a socket: %v", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// serve serves a handler until the test ends.
func serve(t *testing.T, l net.Listener, h http.Handler) {
	t.Helper()
	server := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
}

// TestAnotherUserCannotUseTheSocket although the folder is open to all users.
func TestAnotherUserCannotUseTheSocket(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can run a program as another user")
	}
	dir := journaltest.Dir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "parley.sock")
	serve(t, listen(t, path), newService(t).Local())
	program := filepath.Join(dir, "dial")
	raw, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, raw, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	dial := func(uid uint32) (string, error) {
		command := exec.Command(program)
		command.Env, command.Dir = []string{"PARLEY_DIAL=" + path}, "/"
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := command.Output()
		return string(out), err
	}
	if out, err := dial(65534); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("another user: %v %s", err, out)
	}
	if out, err := dial(0); err != nil {
		t.Errorf("the daemon's user: %v %s", err, out)
	}
}
