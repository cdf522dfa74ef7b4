package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// inline replaces the signs in a line outside of code that would have another meaning in a chat with
// CommonMark than in CommonMark: a || hides text, and @everyone calls everybody. A zero-width space
// separates their characters. A link whose label is an address becomes its address, because such a
// chat does not make it a link. If more text can change the end of the line, used is where that end
// begins. unsure says that the line may turn out to be code.
func inline(line string, whole, unsure bool) (adapted string, used int) {
	if !strings.ContainsAny(line, "|[@") {
		return line, len(line)
	}
	l := inlineLine{text: line, whole: whole, unsure: unsure}
	for l.at < len(line) && l.step() {
	}
	return l.out.String(), l.at
}

// flat replaces the beginning of a line that such a chat reads as no CommonMark: "-# " makes a line
// small, and ">>> " makes a quote of everything below. known says that no further text changes that.
func flat(line string, whole bool) (flat string, known bool) {
	for _, sign := range []string{"-# ", ">>> "} {
		rest, ok := strings.CutPrefix(line, sign)
		switch {
		case ok && sign == ">>> ":
			return "> " + rest, true
		case ok:
			return "-" + zeroWidth + "# " + rest, true
		case !whole && strings.HasPrefix(sign, line):
			return line, false
		}
	}
	return line, true
}

// inlineLine is the state of inline.
type inlineLine struct {
	text  string
	whole bool
	at    int // the number of bytes of text that are written
	out   strings.Builder
	// unsure says that the next characters may be code: more text may close the code.
	unsure bool
	never  [maxTicks + 1]bool // the lengths of runs of backticks that do not come again
}

// step writes the next characters. It returns false if more text can change them.
func (l *inlineLine) step() bool {
	s := l.text[l.at:]
	switch s[0] {
	case '`':
		return l.ticks(s)
	case '|':
		switch {
		case strings.HasPrefix(s, "||"):
			return l.replace("|"+zeroWidth, 1)
		case s == "|" && l.unsure && !l.whole:
			return false
		}
	case '[':
		if l.at > 0 && l.text[l.at-1] == '!' {
			break
		}
		return l.link(s)
	case '@':
		for _, name := range []string{"@everyone", "@here"} {
			switch {
			case strings.HasPrefix(s, name):
				return l.replace("@"+zeroWidth, 1)
			case !l.whole && strings.HasPrefix(name, s):
				return false
			}
		}
	}
	_, n := utf8.DecodeRuneInString(s)
	l.write(s[:n], n)
	return true
}

func (l *inlineLine) write(s string, n int) {
	l.out.WriteString(s)
	l.at += n
}

// replace writes s instead of the next n bytes, unless they may be code.
func (l *inlineLine) replace(s string, n int) bool {
	if !l.unsure {
		l.write(s, n)
	}
	return !l.unsure
}

// ticks writes a run of backticks, with the code that it begins.
func (l *inlineLine) ticks(s string) bool {
	n := ticks(s)
	isEscaped := (l.at-len(strings.TrimRight(l.text[:l.at], `\`)))%2 == 1
	switch {
	case isEscaped:
		n = 1
	case n == len(s) && !l.whole:
		return false
	case n <= maxTicks && !l.never[n]:
		end := codeEnd(s[n:], n)
		if end >= 0 && (l.whole || n+end < len(s)) {
			n += end
			break
		}
		l.never[n] = end < 0
		l.unsure = l.unsure || !l.whole // the run at the end may become longer
	}
	l.write(s[:n], n)
	return true
}

// maxLinked bounds an address whose link is replaced, in bytes with its label.
const maxLinked = 1024

var (
	// addressed matches a link whose label is an address.
	addressed = regexp.MustCompile(`^\[(https?://[^][()\s<>]+)\]\((https?://[^()\s<>]+)\)`)
	// beginsAddressed matches a text that may continue as such a link.
	beginsAddressed = regexp.MustCompile(`^\[(?:h|ht|htt|https?|https?:/?|https?://[^][()\s<>]*(?:\](?:\([^()\s<>]*)?)?)?$`)
)

// link writes a "[", or a whole link whose label is an address.
func (l *inlineLine) link(s string) bool {
	head := s[:min(len(s), maxLinked)]
	m := addressed.FindStringSubmatch(head)
	switch {
	case m == nil && !l.whole && len(head) < maxLinked && beginsAddressed.MatchString(head), m != nil && len(m[0]) == len(s) && !l.whole:
		return false
	case m == nil:
		l.write("[", 1)
		return true
	}
	label, address := m[1], m[2]
	if strings.TrimSuffix(label, "/") != strings.TrimSuffix(address, "/") {
		return l.replace(label+" ("+address+")", len(m[0]))
	}
	if next, _ := utf8.DecodeRuneInString(s[len(m[0]):]); isWordRune(next) {
		address = "<" + address + ">"
	}
	return l.replace(address, len(m[0]))
}

// maxTicks bounds the length of a run of backticks that begins code.
const maxTicks = 32

// WithoutCode returns a text of a chat with CommonMark without its code spans and code blocks. Both
// begin with a run of backticks and end with the next run of the same length; without such an end, the
// run is text.
func WithoutCode(text string) string {
	if !strings.Contains(text, "`") {
		return text
	}
	var prose strings.Builder
	var never [maxTicks + 1]bool // the lengths of runs that do not come again
	for {
		at := strings.IndexByte(text, '`')
		if at < 0 {
			return prose.String() + text
		}
		isEscaped := (at-len(strings.TrimRight(text[:at], `\`)))%2 == 1
		n := 1
		if !isEscaped {
			n = ticks(text[at:])
		}
		prose.WriteString(text[:at+n])
		text = text[at+n:]
		if isEscaped || n > maxTicks || never[n] {
			continue
		}
		end := codeEnd(text, n)
		never[n] = end < 0
		text = text[max(end, 0):]
	}
}

// ticks returns the length of the run of backticks at the beginning of a text.
func ticks(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }

// codeEnd returns the end of the first run of exactly n backticks; -1 if there is none.
func codeEnd(text string, n int) int {
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '`')
		if next < 0 {
			return -1
		}
		at += next
		run := ticks(text[at:])
		at += run
		if run == n {
			return at
		}
	}
}
