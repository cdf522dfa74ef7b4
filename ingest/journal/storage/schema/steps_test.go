package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLinesForAnEngine proves that an engine gets the common lines and its own.
func TestLinesForAnEngine(t *testing.T) {
	t.Parallel()
	const text = "a INTEGER\n--- sqlite\nb\n--- postgres\nc INTEGER\n--- both\nd -- sqlite\n"
	got := map[string]string{}
	for _, engine := range []string{"sqlite", "postgres"} {
		got[engine] = linesFor(engine, text)
	}
	if diff := cmp.Diff(map[string]string{"sqlite": "a INTEGER\nb\nd -- sqlite\n", "postgres": "a INTEGER\nc INTEGER\nd -- sqlite\n"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestEachLineIsForAnEngine proves that no line is lost, because it is for an engine that does not exist.
func TestEachLineIsForAnEngine(t *testing.T) {
	t.Parallel()
	for _, step := range written() {
		own := false
		for line := range strings.Lines(step.Text) {
			if begins, ok := strings.CutPrefix(line, "---"); ok {
				if !slices.Contains([]string{" sqlite\n", " postgres\n", " both\n"}, begins) {
					t.Errorf("%s: %q names no engine", step.Name, line)
				}
				own = begins != " both\n"
			}
		}
		if own {
			t.Errorf("%s: --- both is missing at its end", step.Name)
		}
	}
}
