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
