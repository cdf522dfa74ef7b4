package markdown_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	{"__Important__ __init__ a__b__ __c d__e __f", "**Important** \\_\\_init\\_\\_ a__b__ __c d__e __f"},
	{"+ a\n  + b\n1) c\n 12) d\n1)e +", "- a\n  - b\n1. c\n 12. d\n1)e +"},
	{"a<br>b<BR/>\nc <br > d\n> - e<br>f\n# g<br>h\n`i<br>` \\<br>", "a\nb\nc \n d\n> - e\n>   f\n# g h\n`i<br>` \\<br>"},
	{"H<sub>2</sub>O x<sup>-1</sup> y<sup>a+b</sup> 3<sup>rd</sup> z<sub>min</sub> <kbd>Esc</kbd> <sub>k <b>l</b>", "H₂O x⁻¹ y^(a+b) 3rd z\\_min Esc <sub>k <b>l</b>"},
	{"<details>\n<summary>s</summary>\nt\n</details>\nu<details>", "\ns\nt\n\nu"},
	{"<a href=\"https://x.y/(a b)?c&amp;d\" class=\"e\">f</a> <a href='https://x.y'>https://x.y</a> <a href=\"/g\">h</a> <img alt=\"i[0]\" src=\"https://x.y/j\"/> <img src=\"data:x\">",
		"[f](https://x.y/%28a%20b%29?c&d) https://x.y <a href=\"/g\">h</a> [i(0)](https://x.y/j) <img src=\"data:x\">"},
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
		if got, held := markdown.Adapt(row[0], markdown.Discord, true); got != want || held != "" {
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
		got, held := markdown.Adapt(part, markdown.Discord, n > len(source))
		if !strings.HasPrefix(got, last) || !strings.HasSuffix(part, held) {
			t.Errorf("%q becomes %q, held %q; before %q", part, got, held, last)
			return
		}
		last = got
	}
}

func TestAnyAdaptedTextOnlyGrows(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"|", "||", "`", "``", "```", "\n", "\n\n", " ", "  ", "| a | b |\n", "|---|---|\n", "a", "\\", "#", "####", "@here", "@every", "[", "https://x", "](https://x)", "[https://x](https://x)", "!", "> ", "- ", "-", ">", ">>> ", "-# ", "~~~\n", "<", "<br>", "<sub>", "</sub>", "<a href=\"https://x\">", "</a>", "</", "__", "_", "b c", "+ ", "1", ") "})
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

// TestAddressesAreWhole: a post ends before an address, a link or a row of a table, and the next post of a table
// begins with its head. No sign of emphasis comes into an address.
func TestAddressesAreWhole(t *testing.T) {
	address := "https://x.y/_layouts/15/" + strings.Repeat("a_b&", 50) + "c"
	row := "| " + strings.Repeat("r", 200) + " | 1 |\n"
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"address": {strings.Repeat("x", 900) + " " + address + " end", []string{strings.Repeat("x", 900) + " ", address + " end"}},
		"link":    {strings.Repeat("x", 900) + " [the report](" + address + ") end", []string{strings.Repeat("x", 900) + " ", "[the report](" + address + ") end"}},
		"table":   {"| a | b |\n|---|---|\n" + strings.Repeat(row, 6), []string{"| a | b |\n|---|---|\n" + strings.Repeat(row, 4), "| a | b |\n|---|---|\n" + strings.Repeat(row, 2)}},
		"aligned": {"```\na | b\n--+--\n" + strings.Repeat(row, 5) + "```\n", []string{"```\na | b\n--+--\n" + strings.Repeat(row, 3) + "```", "```\na | b\n--+--\n" + strings.Repeat(row, 2) + "```\n"}},
	} {
		if diff := cmp.Diff(c.want, posts(c.source, 1024)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		checkCuts(t, c.source, 800, markdown.PartialOptions{Limit: 1024})
	}
}
