package send_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/internal/testapp"
)

var update = flag.Bool("update", false, "overwrite the golden files")

// TestFormat checks plain text without placeholders, a bubble for each paragraph, and fewer bubbles
// for many.
func TestFormat(t *testing.T) {
	a := bluebubbles.New("home", testapp.Config("http://127.0.0.1:1"))
	for text, want := range map[string][]string{
		"":                               nil,
		"**Yes**, see [it](https://a.b)": {"Yes, see it (https://a.b)"},
		"One.\n\nTwo.\n\n- a\n- b":       {"One.", "Two.", "• a\n• b"},
		"a\ufffcb\n\n\ufffc":             {"ab"},
		"__init__.py is $x\\,y$":         {"__init__.py is $x\\,y$"},
		"1\n\n2\n\n3\n\n4":               {"1", "2", "3", "4"},
		"1\n\n2\n\n3\n\n4\n\n5":          {"1\n\n2\n\n3\n\n4\n\n5"},
		"Here:\n\n```py\ndef f():\n    a = 1\n\n    return a\n```": {"Here:", "def f():\n    a = 1\n\n    return a"},
		"    one\n\n      two\n\nthree":                            {"one\n\n  two", "three"},
	} {
		if diff := cmp.Diff(want, a.Format(text, nil)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestAnswers compares texts of answers with a golden file.
func TestAnswers(t *testing.T) {
	a := bluebubbles.New("home", testapp.Config("http://127.0.0.1:1"))
	adaptertest.Answers(t, "imessage", *update, func(text string) []string { return a.Format(text, nil) })
}

// TestEveryWordOnce checks that posts lose and repeat no word of an answer.
func TestEveryWordOnce(t *testing.T) {
	a := bluebubbles.New("home", testapp.Config("http://127.0.0.1:1"))
	adaptertest.Words(t, func(text string) []string { return a.Format(text, nil) })
}

// TestDialect checks the table in the README.
func TestDialect(t *testing.T) {
	a := bluebubbles.New("home", testapp.Config("http://127.0.0.1:1"))
	adaptertest.Dialect(t, "../README.md", *update, func(text string) []string { return a.Format(text, nil) })
}
