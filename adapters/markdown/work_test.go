package markdown_test

import (
	"strings"
	"testing"

	"parley/adapters/markdown"
)

// TestWorkIsBounded parses texts that cost the parser the square of their length.
func TestWorkIsBounded(t *testing.T) {
	for _, piece := range []string{
		"[a](", "[a](b \"", "[a](<", "![", "[", "](", "*a ", "**a_b ", "a*", "`a``b```c", "<a ", "<!--", "<?x", "~~a ", "a@b*", "*a_", "http://a.b/(", "www.a.b*",
	} {
		for _, size := range []int{64 << 10, 128 << 10} {
			source := strings.Repeat(piece, size/len(piece))
			if work, _ := markdown.Work(source); work > markdown.MaxWork+len(source) {
				t.Errorf("%d bytes of %q are read as %d bytes", size, piece, work)
			}
		}
	}
}

// TestWorkOfLongLinesIsBounded: each sign of a run is read without the rest of the run, and a line that is too
// long for a fence is not searched for one. Else a long run or line costs the square of its length.
func TestWorkOfLongLinesIsBounded(t *testing.T) {
	for _, sign := range []string{"*", "_", "~", "`"} {
		for length, want := range map[int]int{1: 1, 3: 3, 32: 32, 33: 33, 34: 33, 100_000: 33} {
			if got := markdown.RunOf(strings.Repeat(sign, length) + "a"); got != want {
				t.Errorf("%d bytes of a run of %d %q are read, want %d", got, length, sign, want)
			}
		}
	}
	for info, want := range map[string]bool{"go": true, strings.Repeat("a", 190): true, strings.Repeat("a", 200): false} {
		if got := markdown.OpensFence("```" + info); got != want {
			t.Errorf("a line of %d bytes opens a fence: %v", len(info)+3, got)
		}
	}
}

// TestDepthIsBounded parses quotes and lists inside each other.
func TestDepthIsBounded(t *testing.T) {
	for _, piece := range []string{"> ", ">", "- ", "* ", "1. ", "> - ", "- 7) > "} {
		if _, depth := markdown.Work(strings.Repeat(piece, 128<<10/len(piece)) + "end"); depth != markdown.MaxDepth {
			t.Errorf("%q: %d quotes and lists are inside each other", piece, depth)
		}
	}
	var steps strings.Builder
	for i := range 300 {
		steps.WriteString(strings.Repeat("  ", i) + "- step\n")
	}
	if _, depth := markdown.Work(steps.String()); depth != markdown.MaxDepth {
		t.Errorf("%d lists are inside each other", depth)
	}
}

// TestLongAnswersStayWithinTheBounds: the last lines of a long answer have links, code and emphasis too.
func TestLongAnswersStayWithinTheBounds(t *testing.T) {
	const item = "- See **the [page](https://example.org/a)** for `code`, _why_ and https://example.org.\n  > - quoted\n"
	for name, source := range map[string]string{
		"many blocks":   strings.Repeat("Some words.\n\n"+item+"\n", 1500),
		"one list":      strings.Repeat(item, 1500),
		"one paragraph": strings.Repeat("A [page](https://example.org/a) and `code`. ", 200),
	} {
		work, _ := markdown.Work(source)
		posts := markdown.Format(source, markdown.Slack, 4000)
		if last := posts[len(posts)-1]; work > markdown.MaxWork/4 || !strings.Contains(last, "<https://example.org/a|page>") {
			t.Errorf("%s: %d bytes need %d, and the last post is %q", name, len(source), work, last)
		}
	}
}
