package chat

import "testing"

// TestStyle: the marks of Markdown have the look of a terminal, wherever the parts of a stream are cut.
func TestStyle(t *testing.T) {
	for text, want := range map[string]string{
		"**Well** done, 2 ** 3\n":            bold + "Well" + reset + " done, 2 ** 3\n",
		"# Head\ntext":                       bold + "Head" + reset + "\ntext",
		"- one\n  * two\n+ x":                "• one\n  • two\n• x",
		"say `a*b**` now":                    "say " + cyan + "a*b**" + reset + " now",
		"**a `b` c**":                        bold + "a " + cyan + "b" + reset + bold + " c" + reset,
		"```go\n# no **head**\n```\n**end**": cyan + "# no **head**\n" + reset + bold + "end" + reset,
		"#no head, -3, a*b":                  "#no head, -3, a*b",
		"**open\nnext":                       bold + "open" + reset + "\nnext",
		"---":                                "---",
		"`open":                              cyan + "open" + reset,
	} {
		for size := 1; size <= len(text); size++ {
			var s style
			got := ""
			for at := 0; at < len(text); at += size {
				got += s.next(text[at:min(at+size, len(text))])
			}
			if got += s.end(); got != want {
				t.Errorf("%q in parts of %d: %q, want %q", text, size, got, want)
				break
			}
		}
	}
}
