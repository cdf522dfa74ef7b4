package adaptertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constructs are the constructs of CommonMark and GFM, and what models write beside them.
var constructs = [][2]string{
	{"heading", "## Beds"}, {"deep heading", "#### Beds"}, {"underlined heading", "Beds\n===="}, {"bold", "**a** __B c__"}, {"italic", "*a* _b_"},
	{"bold and italic", "***a***"}, {"strikethrough", "~~a~~"}, {"bold beside Japanese", "は**「重要」**で"}, {"code", "`a || b`"}, {"fence", "```sh\nls\n```"},
	{"fence of tildes", "~~~sh\nls\n~~~"}, {"fence in a list", "1. a\n   ```\n   b\n     c\n   ```"}, {"indented code", "a\n\n    b"}, {"list", "- a\n  - b\n- c"},
	{"list of plus signs", "+ a"}, {"numbered list", "1. a\n2. b"}, {"numbers with brackets", "1) a"}, {"task list", "- [ ] a\n- [x] b"}, {"quote", "> a\n> b"},
	{"rule", "a\n\n---\n\nb"}, {"line break", "a\\\nb"}, {"table", "| a | b |\n|---|--:|\n| c | 10 |"}, {"link", "[a](https://x.example)"},
	{"reference link", "[a][1]\n\n[1]: https://x.example"}, {"address", "https://x.example/a_b_c"}, {"image", "![a](https://x.example/b.png)"}, {"footnote", "a[^1]\n\n[^1]: b"},
	{"formula", "$x^2$ and \\(y\\)"}, {"emoji name", ":leaf:"}, {"entity", "&lt;a&gt; &copy;"}, {"escape", "\\*a\\*"}, {"`<br>`", "a<br>b"},
	{"`<details>`", "<details><summary>a</summary>\n\nb\n\n</details>"}, {"`<sub>`, `<sup>`, `<kbd>`", "H<sub>2</sub>O x<sup>2</sup> <kbd>Esc</kbd>"},
	{"`<a>`, `<img>`", "<a href=\"https://x.example\">a</a> <img src=\"https://x.example/b.png\" alt=\"b\">"}, {"other HTML", "<b>a</b>"},
}

// Dialect compares the table of constructs in a README, between two marks, with the texts that a platform gets. It writes the
// table if update is set. A ⏎ is the end of a line, and a ¶ the end of a post; characters without a width are left out.
func Dialect(t *testing.T, readme string, update bool, format func(text string) []string) {
	t.Helper()
	const from, to = "<!-- dialect: made by the tests with -update -->\n", "<!-- end of dialect -->\n"
	cell := func(text string) string {
		text = strings.NewReplacer("\n", "⏎", "|", "\\|", "\u200b", "").Replace(text)
		fence := "`"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		return fence + " " + text + " " + fence
	}
	var table strings.Builder
	table.WriteString("\n| Construct | The agent writes | Is sent |\n|---|---|---|\n")
	for _, c := range constructs {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", c[0], cell(c[1]), cell(strings.Join(format(c[1]), "¶")))
	}
	table.WriteString("\n")
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(raw), from)
	have, after, ends := strings.Cut(rest, to)
	if !begins || !ends {
		t.Fatalf("%s has no marks of the table", readme)
	}
	if update {
		if err := os.WriteFile(readme, []byte(before+from+table.String()+to+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(table.String(), "\n"), strings.Split(have, "\n")); diff != "" {
		t.Errorf("%s (-made +there):\n%s", readme, diff)
	}
}
