package journal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// released has the SHA-256 of each step of a schema that a store may have. A line is added with a step, and never
// changes.
var released = map[string]string{
	"postgres/migrations/0001_init.sql": "",
	"sqlite/migrations/0001_init.sql":   "",
}

// TestReleasedStepsStay proves that a store of any version gets the same steps for good.
func TestReleasedStepsStay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		got[filepath.ToSlash(file)] = hex.EncodeToString(sum[:])
	}
	if diff := cmp.Diff(released, got); diff != "" {
		t.Errorf("a released step never changes; a new one goes into the list: %s", diff)
	}
}
