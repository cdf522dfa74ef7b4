package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// daemonEnv names the database that the test binary, started as another daemon, keeps
// open until it is killed.
const daemonEnv = "PARLEY_TEST_DAEMON"

func TestMain(m *testing.M) {
	if path := os.Getenv(daemonEnv); path != "" {
		if err := daemon(path); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// daemon writes a fact, reports that, and waits until it is killed.
func daemon(path string) error {
	ctx := context.Background()
	e, err := sqlite.Open(ctx, path, sqlite.With(sqlite.WithSteps(scratch)))
	if err != nil {
		return err
	}
	if err := e.Write(ctx, storage.WriteOptions{}, insert("from the first daemon")); err != nil {
		return err
	}
	fmt.Println("open")
	_, err = os.Stdin.Read(make([]byte, 1))
	return err
}

func TestASecondDaemonIsRefused(t *testing.T) {
	path := file(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), daemonEnv+"="+path)
	stdin, err := child.StdinPipe() // open as long as the child should wait
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("output of the first daemon: %q, %v", line, err)
	}
	_, err = sqlite.Open(t.Context(), path, sqlite.With(sqlite.WithSteps(scratch)))
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("error of the second daemon: %v", err)
	}
	for _, word := range []string{path + ".lock", fmt.Sprint("process ", child.Process.Pid)} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q lacks %s", err, word)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed by the test
	if diff := cmp.Diff([]string{"from the first daemon"}, names(t, open(t, path))); diff != "" {
		t.Error(diff)
	}
}

// TestALinkHasTheFilesLock proves that a second daemon is refused also if it knows the database by
// a symbolic link.
func TestALinkHasTheFilesLock(t *testing.T) {
	path := file(t)
	open(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), link, sqlite.With(sqlite.WithSteps(scratch))); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("open by the link: %v", err)
	}
}

func TestLockFollowsNoLink(t *testing.T) {
	path := file(t)
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(other, []byte("precious"), 0o600), os.Symlink(other, path+".lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path, sqlite.With(sqlite.WithSteps(scratch))); err == nil || !strings.Contains(err.Error(), path+".lock") {
		t.Errorf("open: %v", err)
	}
	if content, err := os.ReadFile(other); err != nil || string(content) != "precious" {
		t.Errorf("the other file contains %q, %v", content, err)
	}
}
