package sqlite_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFilesOfAnotherUser starts a daemon as another user: on files that root has made in the user's folder, and in
// root's folder. It says what to do, and does so no more once that is done.
func TestFilesOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: only root starts a process as another user")
	}
	const nobody = 65534
	base, err := os.MkdirTemp("", "owner") // other users can't enter the folder of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	program, dir := filepath.Join(base, "program"), filepath.Join(base, "data")
	raw, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.Chmod(base, 0o755), os.WriteFile(program, raw, 0o755), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "parley.db")
	says := func() string {
		child := exec.CommandContext(t.Context(), program)
		child.Dir, child.Env = base, append(os.Environ(), daemonEnv+"="+path)
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, _ := child.CombinedOutput() // it ends with a status, because its input does
		return string(out)
	}
	owner := func(names ...string) {
		for _, name := range names {
			if err := os.Chown(name, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := says(); !strings.Contains(got, dir+" belongs to the user root") || !strings.Contains(got, "as that user") {
		t.Errorf("in root's folder: %s", got)
	}
	owner(dir)
	for _, name := range []string{path, path + ".lock"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := says(); !strings.Contains(got, path+".lock belongs to the user root") || !strings.Contains(got, " "+dir) {
		t.Errorf("on root's files: %s", got)
	}
	owner(path + ".lock")
	if got := says(); !strings.Contains(got, path+" belongs to the user root") {
		t.Errorf("on root's database: %s", got)
	}
	owner(path)
	if got := says(); !strings.Contains(got, "open\n") {
		t.Errorf("on files of its own: %s", got)
	}
}
