package card

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// icons are the signs before a badge, and marks those before a task, by its status.
var (
	icons = map[string]string{"success": "✅", "error": "❌", "warning": "⚠️", "info": "ℹ️", "pending": "⏳"}
	marks = map[string]string{"pending": "▫️", "running": "⏳", "done": "✅", "failed": "❌", "skipped": "⏭️", "stopped": "⏹️", "unfinished": "⏹️"}
)

// String returns a badge with the sign of its status.
func (i Item) String() string { return strings.TrimPrefix(icons[i.Status]+" "+i.Text, " ") }

// Task returns a task with words about its status, if people could not tell that it neither waits nor is done.
func (i Item) Task() string {
	switch {
	case i.Words != "":
		return i.Text + ": " + i.Words
	case i.Status != "pending" && i.Status != "done":
		return i.Text + " (" + i.Status + ")"
	}
	return i.Text
}

// Plain returns the card as lines of plain text, for notifications, screen readers and platforms without cards.
func (v View) Plain() string { return v.lines(func(s string) string { return s }) }

// Markdown returns Plain in CommonMark: no character of it is markup, nor a part of a formula.
func (v View) Markdown() string { return v.lines(func(s string) string { return escape(s, true) }) }

func (v View) lines(as func(string) string) string {
	var lines []string
	for i := range v.Parts {
		for _, s := range v.Parts[i].plain() {
			lines = append(lines, as(s))
		}
	}
	return strings.Join(lines, "\n")
}

// plain returns the lines of a part as text.
func (p *Part) plain() (lines []string) {
	switch p.Kind {
	case KindBadges:
		var badges []string
		for _, b := range p.Items {
			badges = append(badges, b.String())
		}
		return []string{strings.Join(badges, " · ")}
	case KindList, KindTasks:
		for _, i := range p.Items {
			lines = append(lines, p.Entry(i))
		}
	case KindFields:
		for _, f := range p.Rows {
			lines = append(lines, f[0]+": "+f[1])
		}
	case KindTable:
		if p.Columns != nil {
			lines = append(lines, Row(p.Columns))
		}
		for _, row := range p.Rows {
			lines = append(lines, Row(row))
		}
	case KindImage:
		return []string{addressed(p.Text, p.URL)}
	case KindProgress:
		return []string{p.Bar()}
	case KindButtons:
		var labels []string
		for _, b := range p.Buttons {
			if b.URL != "" {
				labels = append(labels, addressed(b.Label, b.URL))
				continue
			}
			labels = append(labels, "["+b.Label+"]")
		}
		return []string{strings.Join(labels, "  ")}
	case KindDivider:
		return []string{"———"}
	default:
		return []string{p.Text}
	}
	return lines
}

// Entry returns an entry of a list, or a task, as a line.
func (p *Part) Entry(i Item) string {
	if p.Kind == KindTasks {
		return marks[i.Status] + " " + i.Task()
	}
	return "• " + i.Text
}

// Row returns a row of a table as a line.
func Row(cells []string) string { return strings.TrimRight(strings.Join(cells, " | "), " ") }

// bars is the length of a progress bar.
const bars = 10

// Bar returns a progress as a line: "Rows: ▰▰▰▰▱▱▱▱▱▱ 40%".
func (p *Part) Bar() string {
	share := 0.0
	if p.Max > 0 {
		share = min(max(p.Value/p.Max, 0), 1)
	}
	done := int(share * bars)
	bar := strings.Repeat("▰", done) + strings.Repeat("▱", bars-done)
	s := fmt.Sprintf("%s %d%%", bar, int(math.Floor(share*100)))
	if p.Max != 100 {
		s += " (" + decimal(p.Value) + " of " + decimal(p.Max) + ")"
	}
	if p.Text != "" {
		return p.Text + ": " + s
	}
	return s
}

// decimal returns a number without an exponent.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Escape returns a text in CommonMark that shows its characters and nothing else. It also escapes the markup that Discord adds.
func Escape(s string) string { return escape(s, false) }

// escape is Escape. If the text is parsed next, a dollar sign becomes another text, and the parser links no address with
// characters that could be markup: it reads no escapes in a link, and may end the link before them.
func escape(s string, parsed bool) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = escapeLine(l, parsed)
	}
	return strings.Join(lines, "\n")
}

// signs are the characters that may be markup anywhere. Those of starts are markup at the beginning of a line.
const signs, starts = "\\`*_[<>#&|~!@", "+-=:.)"

func escapeLine(l string, parsed bool) string {
	var b strings.Builder
	start, blank := true, true // only digits and spaces, and only spaces, come before
	for l != "" {
		if n := address(l, parsed); n > 0 {
			b.WriteString(l[:n])
			l, start, blank = l[n:], false, false
			continue
		}
		r, n := utf8.DecodeRuneInString(l)
		switch {
		case blank && r == ' ':
			b.WriteString("\u00a0") // spaces at the beginning of a line would make it code
			l = l[n:]
			continue
		case parsed && r == '$':
			b.WriteString("&#36;") // after a backslash it would still begin a formula
			l, start, blank = l[n:], false, false
			continue
		case strings.ContainsRune(signs, r), start && strings.ContainsRune(starts, r), parsed && beginsLink(b.String(), l):
			b.WriteByte('\\')
		}
		start, blank = start && unicode.IsDigit(r), false
		b.WriteString(l[:n])
		l = l[n:]
	}
	return b.String()
}

// beginsLink reports whether the parser could begin a link at the first character of after.
func beginsLink(before, after string) bool {
	return strings.HasPrefix(after, "://") || after[0] == '.' && strings.HasSuffix(before, "www")
}

// address returns the length of the address of http or https at the beginning of a text; 0 for none, and for one with
// characters that could be markup.
func address(s string, parsed bool) int {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return 0
		}
	}
	markup := "\\`*[]<>|~"
	if parsed {
		markup += "_&$"
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(markup, r) })
	if n < 0 {
		n = len(rest)
	}
	if n == 0 || n < len(rest) && strings.IndexByte(markup, rest[n]) >= 0 {
		return 0
	}
	return len(s) - len(rest) + n
}
