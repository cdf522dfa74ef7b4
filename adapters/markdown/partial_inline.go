package markdown

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline replaces the signs in a line outside of code that would have another meaning in a chat with
// CommonMark than in CommonMark: a || hides text, and @everyone calls everybody. A zero-width space
// separates their characters. A link whose label is an address becomes its address, because such a
// chat does not make it a link. If more text can change the end of the line, used is where that end
// begins. unsure says that the line may turn out to be code. For every chat, inline replaces elements of HTML.
func inline(line string, chat Chat, whole, unsure bool) (adapted string, used int) {
	if !strings.ContainsAny(line, "|[@<_") {
		return line, len(line)
	}
	l := inlineLine{text: line, chat: chat, whole: whole, unsure: unsure}
	for l.at < len(line) && l.step() {
	}
	return l.out.String(), l.at
}

// flat replaces the beginning of a line that such a chat reads as no CommonMark: "-# " makes a line
// small, ">>> " makes a quote of everything below, and "+ " and "1) " begin no items. known says that no further text changes that.
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
	if m := otherMarker.FindStringSubmatch(line); m != nil {
		if m[2] == "+" {
			return m[1] + "-" + line[len(m[0])-1:], true
		}
		return m[1] + strings.TrimSuffix(m[2], ")") + "." + line[len(m[0])-1:], true
	}
	return line, whole || !beginsMarker.MatchString(line)
}

var (
	// otherMarker matches a marker of a list that Discord does not know.
	otherMarker = regexp.MustCompile(`^( *)(\+|[0-9]{1,9}\)) `)
	// beginsMarker matches a line that may continue with one.
	beginsMarker = regexp.MustCompile(`^ *(?:\+|[0-9]{1,9}\)?)$`)
)

// inlineLine is the state of inline.
type inlineLine struct {
	text  string
	chat  Chat
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
	switch {
	case s[0] == '`':
		return l.ticks(s)
	case s[0] == '<':
		return l.element(s)
	case l.chat != Discord:
		_, n := utf8.DecodeRuneInString(s)
		l.write(s[:n], n)
		return true
	}
	switch s[0] {
	case '_':
		return l.underscores(s)
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

// element writes a "<", or the replacement of the element of HTML that begins with it.
func (l *inlineLine) element(s string) bool {
	isEscaped := (l.at-len(strings.TrimRight(l.text[:l.at], `\`)))%2 == 1
	e, n, may := element(s)
	switch {
	case isEscaped || n == 0 && (!may || l.whole):
		l.write("<", 1)
		return true
	case n == 0:
		return false
	case e.text != "\n":
		return l.replace(e.commonMark(), n)
	}
	behind := strings.TrimLeft(s[n:], " ")
	prefix := linesPrefix.FindString(l.text)
	switch {
	case behind == "" && !l.whole:
		return false
	case behind == "" || behind[0] == '\n' || strings.TrimSpace(l.out.String()) == strings.TrimSpace(prefix):
		return l.replace("", n)
	case startsBlock(strings.TrimLeft(l.text, " >")) && strings.ContainsAny(strings.TrimLeft(l.text, " >")[:1], "|#"):
		return l.replace(" ", n)
	}
	return l.replace("\n"+listMarker.ReplaceAllString(prefix, " "), n)
}

// linesPrefix matches the marks of quotes and lists at the beginning of a line.
var linesPrefix = regexp.MustCompile(`^(?:[ \t>]|[-+*][ \t]|[0-9]{1,9}[.)][ \t])*`)

// boldWord matches a text between two pairs of underscores.
var boldWord = regexp.MustCompile(`^__([^\s_](?:[^_\n]|_[^_\n])*)__`)

// underscores writes a run of underscores. Discord underlines what CommonMark makes bold with two; a name such as __init__
// keeps them.
func (l *inlineLine) underscores(s string) bool {
	n := len(s) - len(strings.TrimLeft(s, "_"))
	before, _ := utf8.DecodeLastRuneInString(l.text[:l.at])
	if n != 2 || l.at > 0 && (isWordRune(before) || before == '\\') {
		if n == len(s) && n == 1 && !l.whole {
			return false
		}
		l.write(s[:n], n)
		return true
	}
	head := s[:min(len(s), maxLinked)]
	m := boldWord.FindStringSubmatch(head)
	switch {
	case m == nil && !l.whole && len(head) < maxLinked, m != nil && len(m[0]) == len(s) && !l.whole:
		return false
	case m == nil, strings.ContainsAny(m[1], "`<[|@*"):
		l.write("__", 2)
		return true
	}
	next, _ := utf8.DecodeRuneInString(s[len(m[0]):])
	switch {
	case isWordRune(next) || next == '_' || unicode.IsSpace(rune(m[1][len(m[1])-1])):
		l.write("__", 2)
		return true
	case literalName.MatchString(m[1]):
		return l.replace(`\_\_`+m[1]+`\_\_`, len(m[0]))
	}
	return l.replace("**"+m[1]+"**", len(m[0]))
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
