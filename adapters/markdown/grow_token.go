package markdown

import "strings"

const (
	// tokenHeld is how much of what may be a token is waited for, in bytes.
	tokenHeld = 200
	// maxName is how long a name in a token can be, in bytes: a scheme, a user's id.
	maxName = 64
)

// meaning is what may be read in a piece of text.
type meaning int

const (
	asItIs  meaning = iota // nothing: it stays
	live                   // something that must be made plain
	unknown                // that depends on what follows
)

// token reads a <. It is made plain where Slack may read something behind it that
// the agent may not say.
// https://docs.slack.dev/messaging/formatting-message-text#advanced
func (g *grower) token(s string) step {
	n, known := mention(s)
	switch span := g.inSpan(); {
	case n == 0 || g.blocks.isCode() || span == live:
	case (!known || span == unknown) && !g.Done:
		return step{wait: true}
	case g.Mention != nil && g.Mention(s[:n]):
		return step{n: n, out: s[:n]}
	}
	return g.plain("<", s[1:])
}

// entity reads a &. Where it is shown as a < it is one.
func (g *grower) entity(s string) step {
	n, known := lessThan(s)
	switch {
	case !known && !g.Done:
		return step{wait: true}
	case n > 0:
		return g.plain(s[:n], s[n:])
	}
	return step{n: 1, out: "&"}
}

// plain writes a < and, where what follows would make it a token, sets them apart.
func (g *grower) plain(bracket, after string) step {
	is := g.tokenAt(after)
	switch {
	case is == unknown && !g.Done:
		return step{wait: true}
	case is == live, is == unknown && len(after) > 1 && isSign(after[0]):
		return step{n: len(bracket), out: bracket + zeroWidth}
	}
	return step{n: len(bracket), out: bracket}
}

// tokenAt says what s is, behind a <. The signs of a token may be escaped.
func (g *grower) tokenAt(s string) meaning {
	switch {
	case s == "":
		return unknown
	case isSign(s[0]):
		return command(s[0], s[1:])
	case s[0] == '\\':
		return startsAny(s[1:], "!", "@", "#")
	case s[0] == '&':
		return startsAny(s[1:], "#", "excl;", "commat;", "num;")
	case isLetter(s[0]):
		return g.scheme(s)
	}
	return asItIs
}

// isSign tells what stands behind the < of a token of Slack's.
func isSign(c byte) bool { return c == '!' || c == '@' || c == '#' }

// startsAny is live for a text that begins with one of the prefixes.
func startsAny(s string, prefixes ...string) meaning {
	found := asItIs
	for _, prefix := range prefixes {
		switch {
		case strings.HasPrefix(s, prefix):
			return live
		case strings.HasPrefix(prefix, s):
			found = unknown
		}
	}
	return found
}

// command reads what stands behind <!, <@ or <#. Of text that happens to look like
// that, such as <!DOCTYPE html> and <@NonNull String>, the name ends differently.
func command(sign byte, s string) meaning {
	n := 0
	for n < len(s) && n <= maxName && isLetterOrDigit(s[n]) {
		n++
	}
	name := s[:n]
	switch {
	case n > maxName:
		return live
	case n == len(s):
		return unknown
	case strings.IndexByte(">|^&\\", s[n]) >= 0 && (n > 0 || s[n] == '&' || s[n] == '\\'):
		return live
	case sign == '!' && isCommand(strings.ToLower(name)), sign != '!' && isID(name):
		return live
	}
	return asItIs
}

// isCommand tells the words that do something in a text. Group is what everyone in
// a private channel was called.
func isCommand(word string) bool {
	switch word {
	case "channel", "here", "everyone", "group", "subteam", "date":
		return true
	}
	return false
}

func isID(s string) bool {
	return len(s) > 1 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// scheme reads a name behind a <. In code, what stands before a colon is mostly a
// name space: there only what opens something is made plain.
func (g *grower) scheme(s string) meaning {
	n := schemeLen(s)
	switch {
	case n > maxName:
		return live
	case n == len(s):
		return unknown
	case s[n] == '&' || s[n] == '\\':
		return startsAny(s[n:], "&#", "&colon;", "\\:")
	case s[n] != ':' || isLinkScheme(s[:n]):
		return asItIs
	case isAction(s[:n]):
		return live
	}
	slashes := startsAny(s[n+1:], "//")
	if slashes == live {
		return live
	}
	if inCode := g.unlessCode(live); inCode != asItIs {
		return inCode
	}
	return slashes
}

// unlessCode is m outside of code.
func (g *grower) unlessCode(m meaning) meaning {
	switch span := g.inSpan(); {
	case g.blocks.isCode(), span == live:
		return asItIs
	case span == unknown:
		return unknown
	}
	return m
}

// schemeLen is the length of the scheme that s begins with, and more than maxName
// for anything longer.
func schemeLen(s string) int {
	n := 0
	for n < len(s) && n <= maxName && (isLetterOrDigit(s[n]) || strings.IndexByte("+.-", s[n]) >= 0) {
		n++
	}
	return n
}

func isLinkScheme(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}

// isAction tells schemes that do something without // behind them.
func isAction(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "javascript", "vbscript", "data", "blob", "file", "tel", "sms", "facetime", "slack", "skype", "intent", "view-source":
		return true
	}
	return strings.HasPrefix(strings.ToLower(scheme), "ms-")
}

// target reads a ], behind which the address of a link, an image or a definition may
// stand.
func (g *grower) target(s string) step {
	to := asItIs
	switch {
	case g.blocks.isCode() && g.blocks.fence.sure:
	case len(s) == 1:
		to = unknown
	case s[1] == '(':
		to = address(s[2:])
	case s[1] == ':':
		to = g.definition(s[2:])
	}
	switch {
	case to == unknown && !g.Done:
		return step{wait: true}
	case to == live:
		return step{n: 1, out: "]" + zeroWidth}
	}
	return step{n: 1, out: "]"}
}

// definition is address for a definition. One without a scheme is something that was
// said, such as "[Bob]: hello", and would be taken out of the text.
func (g *grower) definition(s string) meaning {
	to := address(s)
	if known := to == asItIs || to == unknown && g.Done; !known || !g.bracket {
		return to
	}
	word := firstWord(s)
	n := schemeLen(word)
	if word == "" || n < len(word) && word[n] == ':' && isLinkScheme(word[:n]) {
		return asItIs
	}
	return live
}

// firstWord is what stands behind the white space and the signs in front of an address.
func firstWord(s string) string { return strings.TrimLeft(s, " \t\r\n><") }

// address says whether a link may lead to what s begins with: an address with one of
// our schemes, or with none.
func address(s string) meaning {
	to := firstWord(s)
	if len(s)-len(to) > tokenHeld {
		return live
	}
	angle := strings.Contains(s[:len(s)-len(to)], "<")
	for n := range len(to) {
		switch c := to[n]; {
		case n > maxName:
			return live
		case c == ':':
			return schemeOf(to, n)
		case c == '&' || c == '\\', c == 0x7f, c < ' ' && c != '\n' && c != '\r', c == ' ' && angle:
			return live // whatever it hides
		case c < 0x80 && !isLetterOrDigit(c) && strings.IndexByte("+.-", c) < 0:
			return asItIs
		}
	}
	return unknown
}

// schemeOf judges an address whose scheme ends at n.
func schemeOf(to string, n int) meaning {
	switch scheme := strings.ToLower(to[:n]); scheme {
	case "mailto":
		return asItIs
	case "http", "https":
		switch startsAny(to[n+1:], "//") {
		case live:
			return asItIs
		case unknown:
			return unknown
		}
	}
	return live
}

// mention is the length of the user or channel token that s begins with, 0 for none;
// known is false where it may go on.
func mention(s string) (n int, known bool) {
	if len(s) < 2 || s[1] == '!' || !isSign(s[1]) || command(s[1], s[2:]) == asItIs {
		return 0, true
	}
	n = strings.IndexAny(s[1:min(len(s), tokenHeld)], "<>\n\r") + 1
	switch {
	case n == 0 && len(s) < tokenHeld:
		return len(s), false
	case n > 0 && s[n] == '>':
		return n + 1, true
	}
	return 0, true
}

// lessThan is the length of the reference to < that s begins with, 0 for none; known
// is false where that depends on what follows. Readers exist that need no semicolon.
// https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
func lessThan(s string) (n int, known bool) {
	body := s[1:]
	for _, name := range []string{"lt", "LT", "Lt", "lT"} {
		if strings.HasPrefix(body, name) {
			return semicolon(s, 3)
		}
	}
	if body == "" || body == "l" || body == "L" {
		return 0, false
	}
	code, digits := "60", "0123456789"
	if body[0] != '#' {
		return 0, true
	}
	at := 2
	if at < len(s) && (s[at] == 'x' || s[at] == 'X') {
		code, digits, at = "3c", "0123456789abcdefABCDEF", 3
	}
	end := at
	for end < len(s) && end < tokenHeld && strings.IndexByte(digits, s[end]) >= 0 {
		end++
	}
	switch {
	case end == len(s):
		return 0, false
	case strings.ToLower(strings.TrimLeft(s[at:end], "0")) != code:
		return 0, true
	}
	return semicolon(s, end)
}

func semicolon(s string, n int) (int, bool) {
	switch {
	case n == len(s):
		return n, false
	case s[n] == ';':
		return n + 1, true
	}
	return n, true
}

// span is the code within a line that was looked for last.
type span struct {
	end  int     // of it, in the text
	open meaning // unknown: its end may follow the text
}

// spanHeld is how long code within a line is looked for, in bytes.
const spanHeld = 400

// inSpan is live within code, and unknown where its end has not come yet.
func (g *grower) inSpan() meaning {
	switch {
	case g.at < g.span.end:
		return live
	case g.span.open == unknown:
		return unknown
	}
	return asItIs
}

// ticks reads backticks, which may begin or end code within a line.
func (g *grower) ticks(s string) step {
	n := run(s[:min(len(s), tokenHeld)], '`')
	switch {
	case n == len(s) && n < tokenHeld && !g.Done:
		return step{wait: true}
	case !g.blocks.isCode() && g.inSpan() == asItIs:
		g.span = g.spanAt(s, n)
	}
	return step{n: n, out: s[:n]}
}

// spanAt looks for the end of what n backticks begin.
func (g *grower) spanAt(s string, n int) span {
	window := s[:min(len(s), n+spanHeld)]
	if end := strings.IndexAny(window, "\n\r"); end >= 0 {
		window = window[:end]
	} else if len(window) == len(s) && len(s) < n+spanHeld && !g.Done {
		return span{open: unknown}
	}
	for at := n; at < len(window); {
		ticks := run(window[at:], '`')
		if ticks == n {
			return span{end: g.at + at + n}
		}
		at += max(ticks, 1)
	}
	return span{}
}

// run is how often s begins with c.
func run(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isLetterOrDigit(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }
