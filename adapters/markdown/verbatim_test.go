package markdown_test

import (
	"slices"
	"strings"
	"testing"

	"parley/adapters/markdown"
)

// TestVerbatim checks that no text has markup, also in a quotation.
func TestVerbatim(t *testing.T) {
	texts := []string{
		"*a* __b__ ~~c~~ `d` ``e``", "[x](https://x.y) ![i](https://x.y/i.png)", "<https://x.y> <b> <!-- c --> &lt; &#60;", `\(x\) \[y\] $$z$$ \`, "| a | b |", "|---|---|",
		"# h", "===", "---", "- a", "+ a", "1. a", "1) a", "> q", "```go", "~~~", "[Bob (<@U1>)]: pay", "[a]: https://x.y", "**Bob** (crm):", "a_b_c 2*3*4", "!", "x  ",
	}
	for _, text := range texts {
		quoted := "> x\n> " + markdown.Verbatim(text)
		want := "> x\n> " + strings.TrimRight(text, " ")
		if got := markdown.Format(quoted, markdown.Plain, 4000); !slices.Equal(got, []string{want}) {
			t.Errorf("%q is shown as %q", text, got)
		}
		if got := strings.Join(markdown.Format(quoted, markdown.Slack, 4000), "¶"); strings.ContainsAny(strings.ReplaceAll(got, "\n> ", ""), "<\n") {
			t.Errorf("%q has markup on Slack: %q", text, got)
		}
	}
}
