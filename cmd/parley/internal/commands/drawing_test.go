package commands

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode/utf8"
)

// shownLine is a line in a terminal.
type shownLine struct {
	typed bool // by the person
	text  string
}

// The measures of a drawn terminal, in pixels and characters.
const (
	cellWidth, lineHeight = 7.8, 20
	marginLeft, marginTop = 16, 56
	columns               = 100
)

// draw returns the picture of a terminal, in which the lines light up one after the other. A longer line goes on in
// the next one. All can be read at once, also where nothing moves.
func draw(title string, lines []shownLine) string {
	var rows strings.Builder
	y, seconds := marginTop, 0.0
	for _, line := range lines {
		seconds += 0.5
		class := "l"
		if line.typed {
			seconds, class = seconds+1, "l t"
		}
		for _, row := range wrap(line.text) {
			fmt.Fprintf(&rows, "<text class=%q x=\"%d\" y=\"%d\" style=\"animation-delay:%.1fs\">%s</text>\n", class, marginLeft, y, seconds, html.EscapeString(row))
			y += lineHeight
		}
	}
	width := int(columns*cellWidth) + 2*marginLeft
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">
<title>%[3]s</title>
<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}
.t{fill:#7ee787;font-weight:bold}.h{fill:#8b949e}
@media (prefers-reduced-motion:no-preference){.l{animation:s .2s both}}
@keyframes s{from{opacity:.45}}
</style>
<rect width="%[1]d" height="%[2]d" rx="8" fill="#0d1117"/>
<circle cx="20" cy="18" r="6" fill="#484f58"/><circle cx="40" cy="18" r="6" fill="#484f58"/><circle cx="60" cy="18" r="6" fill="#484f58"/>
<text class="h" x="%[4]d" y="23" text-anchor="middle">%[3]s</text>
%[5]s</svg>
`, width, y, html.EscapeString(title), width/2, rows.String())
}

// wrap breaks a text between words, if it has more characters than the terminal has columns.
func wrap(text string) (rows []string) {
	for utf8.RuneCountInString(text) > columns {
		row := string([]rune(text)[:columns])
		if i := strings.LastIndex(row, " "); i > columns/2 {
			row = row[:i+1]
		}
		rows, text = append(rows, row), "    "+strings.TrimPrefix(text, row)
	}
	return append(rows, text)
}

func TestDraw(t *testing.T) {
	got := draw("a <terminal>", []shownLine{{true, "$ x"}, {false, strings.Repeat("é", columns+1)}})
	for _, part := range []string{"<title>a &lt;terminal&gt;</title>", `class="l t" x="16" y="56" style="animation-delay:1.5s">$ x<`, `y="96" style="animation-delay:2.0s">    é<`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in\n%s", part, got)
		}
	}
}
