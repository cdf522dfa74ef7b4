package journaltest

import (
	"os"
	"testing"
)

// memory is a folder whose files are in memory, on Linux.
const memory = "/dev/shm"

// Dir returns a folder for the store of a test, and removes the folder when the test ends. The
// folder is in memory if the system allows it: no commit waits for a busy disk then.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(memory, "parley-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
