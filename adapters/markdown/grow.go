package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// minGrow keeps a limit larger than what a fence needs to be closed and opened again.
const minGrow = 1024

// Growing says how Grow is to write a text.
type Growing struct {
	// Limit is how long a post may be, in UTF-16 units; less than 1024 is taken as
	// 1024.
	Limit int
	// Mention says whether a token, such as "<@U06STGBF4Q0>", may stay one; nil: none.
	Mention func(token string) bool
	// Done says that nothing will follow the text.
	Done bool
	// From is how many bytes of the post are shown already, where it must be ended
	// soon behind them; 0 where it goes on to the limit.
	From int
	// Now ends it at From, or a word later.
	Now bool
}

// Grow writes the beginning of a text, as much as one post holds, for a platform
// that reads markdown and, in it, tokens as Slack does:
// https://docs.slack.dev/reference/block-kit/blocks/markdown-block.
// Where the post is full, rest is the text to go on with in the next one.
//
// The text goes through as it is, with these exceptions. Behind the < of a token
// that may not be one, and in a link, an image or a definition whose scheme is not
// http, https or mailto, stands a zero-width space: in code too, since nobody says
// where Slack looks for them. What is not UTF-8, and U+0000, is U+FFFD; lines end
// with \n. A code fence that the end of a post divides is closed there and opened
// again in rest. White space that fills no post by itself is dropped where a post
// would hold nothing else.
//
// What is shown of a text begins with what was shown of every beginning of it, and
// where a post ends depends on the text alone: beyond three quarters of the limit
// at the first end of a paragraph, later of a line, later of a word. What may come
// to mean something else with more behind it is held back; that is at most a line's
// first 200 bytes, a token, or a character.
func Grow(text string, how Growing) (shown, rest string, full bool) {
	g := grow(text, how)
	if !g.full {
		return g.shown(), text, false
	}
	return g.shown(), g.reopen + g.text[g.at:], true
}

// grower writes one post.
type grower struct {
	Growing
	text string
	at   int // what of text was written
	out  []byte
	size int // of out, in UTF-16 units
	// early is size where From was passed; -1 before.
	early int

	blocks    blocks
	beginning bool // of a line
	bracket   bool // the line's first sign is a [
	parted    bool // before this line a paragraph or a fence ended
	spaced    bool // the last thing written was white space within a line
	solid     int  // text before this may not be divided
	opened    int  // where the last fence's first line ended
	span      span

	full          bool
	close, reopen string // of a fence that the end of the post divides
}

// grow writes a post. White space in front stays unless it is very long.
func grow(text string, how Growing) *grower {
	how.Limit = max(how.Limit, minGrow)
	g := &grower{Growing: how, text: text, early: -1, beginning: true}
	trimmed := strings.TrimLeftFunc(text, unicode.IsSpace)
	if trimmed == "" {
		return g
	}
	if front := len(text) - len(trimmed); units(text[:front]) > how.Limit/4 {
		g.at = front
	}
	g.out = make([]byte, 0, min(len(text)-g.at, how.Limit)+64)
	g.run()
	return g
}

// shown is the post; white space alone is none.
func (g *grower) shown() string {
	if strings.TrimSpace(string(g.out)) == "" {
		return ""
	}
	return string(g.out) + g.close
}

// run writes step by step, until the text or the post ends or more text is needed.
func (g *grower) run() {
	for g.at < len(g.text) && g.line() {
		s := g.next()
		if s.wait {
			break
		}
		if g.endsBefore(s) {
			if !g.isTail() {
				g.end()
			}
			break
		}
		g.write(s)
	}
	switch {
	case g.full:
	case g.Done:
		g.close, _ = g.blocks.fenceLines(g.inLine())
	case g.Now && g.early >= 0:
		g.end()
	}
}

// line begins a line, where one begins; false where that ends the post or depends
// on what follows.
func (g *grower) line() bool {
	if !g.beginning {
		return true
	}
	l, known := g.blocks.look(g.text[g.at:], g.Done)
	if !known {
		return false
	}
	if l.leaves {
		g.blocks.fence = nil
	}
	if g.endsBeforeLine(l) {
		g.end()
		return false
	}
	g.beginning, g.bracket = false, l.bracket
	g.parted = l.blank && !g.blocks.isCode() || l.closes
	g.solid = g.at + l.solid
	if l.opens != nil {
		g.opened = g.at + l.solid
	}
	if l.deep {
		g.add(zeroWidth)
	}
	g.blocks.enter(l)
	return true
}

// step is the smallest thing that is written: so many bytes of the text, and what
// stands for them.
type step struct {
	n    int
	out  string
	wait bool // what it means depends on what follows
}

func (g *grower) write(s step) {
	g.beginning = s.out == "\n"
	g.spaced = isBlank(s.out)
	g.add(s.out)
	g.at += s.n
}

func (g *grower) add(s string) {
	g.out = append(g.out, s...)
	g.size += units(s)
	if g.early < 0 && g.From > 0 && len(g.out) >= g.From {
		g.early = g.size
	}
}

func isBlank(s string) bool { return s == " " || s == "\t" }

// How far behind From, in UTF-16 units, a post ends at a line's end, at a word's
// end, and anywhere; and anywhere where it is to end now.
const (
	earlyLine = 300
	earlyWord = 600
	earlyAny  = 1200
	nowAny    = 64
)

// endsBeforeLine says whether the post ends before a line. An empty one, or the end
// of a fence, is the end of what stands before it.
func (g *grower) endsBeforeLine(l line) bool {
	switch {
	case len(g.out) == 0 || l.blank || l.closes || g.isNew():
		return false
	case l.opens != nil && g.size+openRoom > g.Limit:
		return true
	case !g.blocks.isCode() && (g.parted || l.leaves || l.opens != nil):
		return g.ripe(4, 0)
	}
	return g.ripe(2, earlyLine)
}

// endsBefore says whether the post ends before the step, within a line.
func (g *grower) endsBefore(s step) bool {
	switch {
	case g.at < g.solid || len(g.out) == 0 || g.isNew():
		return false
	case s.out == "\n" && g.blocks.isCode() && g.inLine():
		return false // there is room for it, and the fence may end behind it
	case g.size+units(s.out) > g.limit():
		return true
	case s.out == "\n" || isBlank(s.out):
		return false
	case g.spaced && g.ripe(1, earlyWord):
		return true
	}
	return g.early >= 0 && g.size-g.early >= g.sooner(earlyAny, nowAny)
}

// limit is how long the post may become without the end of a fence.
func (g *grower) limit() int {
	if g.blocks.isCode() {
		return g.Limit - fenceRoom
	}
	return g.Limit
}

// ripe says whether the post may end here: so many sixteenths of its limit are left
// at most, or it is so far behind From.
func (g *grower) ripe(sixteenths, behind int) bool {
	return g.size >= g.limit()*(16-sixteenths)/16 || g.early >= 0 && g.size-g.early >= g.sooner(behind, 0)
}

func (g *grower) sooner(soon, now int) int {
	if g.Now {
		return now
	}
	return soon
}

// isNew says whether a fence was just opened: what it holds comes along.
func (g *grower) isNew() bool { return g.blocks.isCode() && g.at <= g.opened }

// isTail says whether all that is left, so far, is white space: that begins no post.
func (g *grower) isTail() bool { return strings.TrimSpace(g.text[g.at:]) == "" }

// end makes the post full.
func (g *grower) end() {
	g.full = true
	g.close, g.reopen = g.blocks.fenceLines(g.inLine())
}

func (g *grower) inLine() bool { return len(g.out) > 0 && g.out[len(g.out)-1] != '\n' }

// isTight says whether the post may have no room for a character that grows.
func (g *grower) isTight() bool { return g.size+fenceRoom+maxGrapheme > g.Limit }

// next reads the step at g.at.
func (g *grower) next() step {
	s := g.text[g.at:]
	switch s[0] {
	case '\n':
		return step{n: 1, out: "\n"}
	case '\r':
		return g.lineEnd(s)
	case 0:
		return step{n: 1, out: "\uFFFD"}
	case '<':
		return g.token(s)
	case '&':
		return g.entity(s)
	case ']':
		return g.target(s)
	case '`':
		return g.ticks(s)
	case '\\':
		return g.backslash(s)
	}
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return step{n: 1, out: s[:1], wait: len(s) == 1 && !g.Done && g.isTight()}
	}
	return g.grapheme(s)
}

// backslash keeps a backtick that is only shown from beginning code.
func (g *grower) backslash(s string) step {
	switch {
	case len(s) == 1:
		return step{n: 1, out: s, wait: !g.Done}
	case s[1] == '`' && !g.blocks.isCode() && g.at >= g.span.end, s[1] == '\\':
		return step{n: 2, out: s[:2]}
	}
	return step{n: 1, out: s[:1]}
}

func (g *grower) lineEnd(s string) step {
	switch {
	case len(s) == 1 && !g.Done:
		return step{wait: true}
	case len(s) > 1 && s[1] == '\n':
		return step{n: 2, out: "\n"}
	}
	return step{n: 1, out: "\n"}
}

// maxGrapheme is how many bytes of one character stay together.
const maxGrapheme = 256

// grapheme reads what a reader takes for one character. One that ends the text may
// go on. What is ASCII and not first is left for a step of its own.
func (g *grower) grapheme(s string) step {
	window := s[:min(len(s), maxGrapheme)]
	grows := len(window) == len(s) && !g.Done
	if grows || len(window) < len(s) {
		window = window[:wholeRunes(window)]
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(window, -1)
	for i := 1; i < len(cluster); i++ {
		if cluster[i] < utf8.RuneSelf {
			return step{n: i, out: valid(cluster[:i])}
		}
	}
	switch {
	case !grows || len(cluster) < len(window):
		return step{n: len(cluster), out: valid(cluster)}
	case s[0] < utf8.RuneSelf && !g.isTight():
		return step{n: 1, out: s[:1]}
	}
	return step{wait: true}
}

// wholeRunes is the length of s without a last character that is not all there.
func wholeRunes(s string) int {
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return i
			}
			break
		}
	}
	return len(s)
}

// valid replaces each byte that is no text.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
