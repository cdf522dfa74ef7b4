package markdown_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/adapters/markdown"
)

// inlineRows are pairs of a text and its adapted form. A ‸ is a zero-width space.
var inlineRows = [][2]string{
	{"Use a || b ||| c, and `x || y` in code.", "Use a |‸| b |‸|‸| c, and `x || y` in code."},
	{"``a ` || b`` || `c\nd || e` \\`x || y`", "``a ` || b`` |‸| `c\nd |‸| e` \\`x |‸| y`"},
	{"```\na || b\n```\na || b", "```\na || b\n```\na |‸| b"},
	{"||hidden||\n|| no || table\nend", "|‸|hidden|‸|\n|‸| no |‸| table\nend"},
	{">>> ```\n>>> all || x\n>>> ```\na || b", "> ```\n>>> all || x\n>>> ```\na |‸| b"},
	{"-# small\n- # item\n>>> all || x\n> >>> y\n>> z\n-#", "-‸# small\n- # item\n> all |‸| x\n> >>> y\n>> z\n-#"},
	{"#### a || b", "### a |‸| b"},
	{"@everyone, @here and @hereby `@everyone`", "@‸everyone, @‸here and @‸hereby `@everyone`"},
	{"[https://x.y/a](https://x.y/a) [https://x.y](https://x.y/) [x.y](https://x.y)", "https://x.y/a https://x.y/ [x.y](https://x.y)"},
	{"[https://x.y](https://z.y)[http://a](http://a)b ![https://x.y](https://x.y)", "https://x.y (https://z.y)<http://a>b ![https://x.y](https://x.y)"},
	{"`[https://x.y](https://x.y)` [https://x.y] [https://x.y](z)", "`[https://x.y](https://x.y)` [https://x.y] [https://x.y](z)"},
	{"  | a | b |\n  |---|---|\n  | c | d |\n  x", "```\na | b\n--+--\nc | d\n```\n  x"},
}

// TestInline adapts each text whole, and cut after each byte: more text never changes what is adapted.
func TestInline(t *testing.T) {
	for _, row := range inlineRows {
		want := strings.ReplaceAll(row[1], "‸", "\u200b")
		if got, held := markdown.Adapt(row[0], true); got != want || held != "" {
			t.Errorf("%q became %q, held %q", row[0], got, held)
		}
		checkGrows(t, row[0])
	}
}

// checkGrows adapts every beginning of a text.
func checkGrows(t reporter, source string) {
	t.Helper()
	last := ""
	for n := range len(source) + 2 {
		part := source[:min(n, len(source))]
		got, held := markdown.Adapt(part, n > len(source))
		if !strings.HasPrefix(got, last) || !strings.HasSuffix(part, held) {
			t.Errorf("%q becomes %q, held %q; before %q", part, got, held, last)
			return
		}
		last = got
	}
}

func TestAnyAdaptedTextOnlyGrows(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"|", "||", "`", "``", "```", "\n", "\n\n", " ", "  ", "| a | b |\n", "|---|---|\n", "a", "\\", "#", "####", "@here", "@every", "[", "https://x", "](https://x)", "[https://x](https://x)", "!", "> ", "- ", "-", ">", ">>> ", "-# ", "~~~\n"})
	rapid.Check(t, func(t *rapid.T) {
		checkGrows(t, strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "source"), ""))
	})
}

// TestWithoutCode covers what an agent's platform and a person's both read as code.
func TestWithoutCode(t *testing.T) {
	for text, want := range map[string]string{
		"a `b` c": "a ` c", "``a ` b`` c": "`` c", "```\nx\n``` y": "``` y", "`a": "`a", "\\`a`": "\\`a`", "``a`": "``a`", "a": "a",
	} {
		if got := markdown.WithoutCode(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
