package markdown_test

import (
	"strings"
	"testing"

	"parley/adapters/markdown"
)

const adaptedSource = "Intro | with a bar\n\n  | a | b |\n|---|--:|\n| `x` | 10 |\n\n#### Deep\n### Three\n```\n| not | a table |\n|---|---|\n#### code\n```\n| no table\nend\n"

const adaptedWant = "Intro | with a bar\n\n```\na |  b\n--+---\nx | 10\n```\n\n### Deep\n### Three\n```\n| not | a table |\n|---|---|\n#### code\n```\n| no table\nend\n"

func TestAdapt(t *testing.T) {
	if got, held := markdown.Adapt(adaptedSource, markdown.Discord, true); got != adaptedWant || held != "" {
		t.Errorf("got %q, held %q", got, held)
	}
}

// TestAdaptGrows checks that the adapted text of a longer text begins with that of a shorter one,
// and that nothing is lost.
func TestAdaptGrows(t *testing.T) {
	last := ""
	for n := range adaptedSource {
		got, held := markdown.Adapt(adaptedSource[:n], markdown.Discord, false)
		if !strings.HasPrefix(got, last) || !strings.HasSuffix(adaptedSource[:n], held) {
			t.Fatalf("%q becomes %q, held %q; before %q", adaptedSource[:n], got, held, last)
		}
		last = got
	}
	if !strings.HasPrefix(adaptedWant, last) {
		t.Errorf("the last is %q", last)
	}
}

// TestTablesAreBounded checks that no table becomes a text of another order of size: one with a
// long cell above many short ones, and one whose short rows have as many cells as its first.
func TestTablesAreBounded(t *testing.T) {
	for name, source := range map[string]string{
		"long cell":    "| " + strings.Repeat("x", 2000) + " | b |\n|---|---|\n" + strings.Repeat("| a | b |\n", 200),
		"many columns": strings.Repeat("|a", 400) + "|\n" + strings.Repeat("|-", 400) + "|\n" + strings.Repeat("|\n", 1200),
		"empty cells":  strings.Repeat("|a", 30) + "|\n" + strings.Repeat("|-", 30) + "|\n" + strings.Repeat("|\n", 300),
	} {
		adapted, _ := markdown.Adapt(source, markdown.Discord, true)
		plain := strings.Join(markdown.Format(source, markdown.Plain, 1<<20), "")
		if most := 8 * len(source); len(adapted) > most || len(plain) > most {
			t.Errorf("%s: %d bytes become %d and %d", name, len(source), len(adapted), len(plain))
		}
	}
}
