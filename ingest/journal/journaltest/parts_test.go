package journaltest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var onSQLite = regexp.MustCompile(`journaltest\.SQLite\(t, "(\w+)"\)`)

// TestEachPartRunsOnSQLite proves that the test of each part's own package runs its promises on SQLite, and that no
// other does.
func TestEachPartRunsOnSQLite(t *testing.T) {
	var want, got []string
	for _, p := range parts() {
		want = append(want, p.name+" in "+p.name)
	}
	journal, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	beside, err := filepath.Glob(filepath.Join(journal, "*", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob(filepath.Join(journal, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(own, beside...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range onSQLite.FindAllStringSubmatch(string(text), -1) {
			got = append(got, call[1]+" in "+filepath.Base(filepath.Dir(file)))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the parts that run on SQLite (-want +got):\n%s", diff)
	}
}
