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
	"postgres/migrations/0001_init.sql":        "2d6465f0b38f916015d6eb6101b37c49fbd42480b7b3f6bee6f79a1fc5b446f9",
	"postgres/migrations/0002_message_ids.sql": "4e177918ce5fcb1db631346dd3451c4ee957039ab9cf371d0478cd3b95203ea1",
	"sqlite/migrations/0001_init.sql":          "65ca5295137527d5a23d3c2315bb59f80411381337453080add30b6a410cad1f",
	"sqlite/migrations/0002_message_ids.sql":   "900bb648d2dcdef5e41215cb18e92f3653603d0eb4f13c45f32d34eec258da67",
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
