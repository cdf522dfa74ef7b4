package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWritesSurviveAReopen(t *testing.T) {
	path := file(t)
	e := open(t, path)
	write(t, e, insert("one"))
	write(t, e, insert("two"))
	if diff := cmp.Diff([]string{"one", "two"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, names(t, open(t, path))); diff != "" {
		t.Error(diff)
	}
}

func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	path := file(t)
	write(t, open(t, path), insert("one"))
	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + ".lock": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}
