package remote

import (
	"bytes"
	"strings"

	"parley/ingest/event"
)

// The values of Thinking.
const (
	SplitThinking = "split"
	KeepThinking  = "keep"
)

// Reading is the settings of the agents whose text is a model's.
type Reading struct {
	// Thinking says whether the thinking in a text becomes a THOUGHT or stays a part of the text.
	Thinking string `yaml:"thinking"`
}

// DefaultReading returns the defaults.
func DefaultReading() Reading { return Reading{Thinking: SplitThinking} }

// Check adds the faults of the settings.
func (r Reading) Check(faults *event.FieldErrors) {
	faults.Check(r.Thinking == SplitThinking || r.Thinking == KeepThinking, "thinking", "must be split or keep")
}

// piece is a piece of an answer.
type piece struct {
	kind pieceKind
	text string
}

type pieceKind int

const (
	words   pieceKind = iota // a text of the answer
	thought                  // a whole thought, or the markup of a call
	turned                   // without a text: all words before it are a thought
	over                     // the answer has ended before this text
	cut                      // without a text: marks were left out
)

// splitter separates the words of an answer from the thinking, the calls and the marks of its template: see marks.
// Thinking is a part at the beginning of a text between two tags, a beginning that only a closing tag ends, because some
// chat templates write the opening one into the prompt, and behind words a pair alone on its lines. Inside code, and
// in the middle of a line of prose, marks are words. The cuts of the text into chunks do not matter, except that they cut
// the words.
type splitter struct {
	keep   bool // thinking stays a part of the words
	state  splitState
	tag    []byte // that may begin
	space  []byte // white space before the first words
	code   code
	opened map[int]int // the tags among the words that are open, of each pair
	again  bool        // a thought has come
	trim   bool        // white space before the first words is left out
	words  []byte      // of the current chunk
	first  []byte      // the first words
	inLine bool        // words have come in the line
	spaced bool        // the last byte of the words is white space

	block   *block
	prose   bool   // the text of a block that was none is read again
	pending []byte // ends, and the white space behind them
	over    bool   // the answer has ended
	cut     bool   // a mark was left out
	called  bool   // a call has come
	struck  int    // open tags of HTML
	wrapped int    // the pair around the answer, + 1; 0 for none

	mark    int // the pair of the current thought
	thought []byte
	early   int // the length of the thought at the first closing tag inside code; 0 for none
}

func newSplitter(keep bool) *splitter {
	s := &splitter{keep: keep, opened: map[int]int{}}
	if keep {
		s.state = certain
	}
	return s
}

type splitState int

const (
	leading   splitState = iota // only white space or thoughts have come
	thinking                    // the opening tag has come
	uncertain                   // words have come that a closing tag makes a thought
	certain                     // all further text is words
)

// held returns the number of bytes that are neither words nor thoughts yet.
func (s *splitter) held() int {
	n := len(s.thought) + len(s.pending)
	if s.block != nil {
		n += len(s.block.text)
	}
	return n
}

// add takes the next chunk.
func (s *splitter) add(text string) (pieces []piece) {
	for i := range len(text) {
		if s.over {
			s.words = append(s.words, text[i:]...)
			break
		}
		pieces = s.next(pieces, text[i])
	}
	return s.flush(pieces)
}

// end ends the text. A thought that no tag has closed stays one, unless a closing tag
// inside code was meant to close it.
func (s *splitter) end() (pieces []piece) {
	tag := s.tag
	s.tag = nil
	for _, b := range tag {
		pieces = s.plain(pieces, b)
	}
	switch b := s.block; {
	case b == nil:
	case b.closed, marks[b.mark].kind == headMark && !b.header, marks[b.mark].kind == thinkMark && bytes.HasPrefix(b.text[b.inside:], []byte("\n")), marks[b.mark].kind == callMark && callMarkup.Match(b.text[b.inside:]):
		pieces = s.thoughtOf(pieces)
	default:
		pieces = s.release(pieces)
		for _, b := range s.tag {
			pieces = s.plain(pieces, b)
		}
		s.tag = nil
	}
	if s.cut = s.cut || len(s.pending) > 0; s.state == leading && !s.again && !s.trim {
		s.words = append(s.words, s.space...)
	}
	s.pending = nil
	if s.state == thinking {
		whole := string(s.thought)
		if s.early == 0 {
			return append(s.flush(pieces), piece{thought, whole})
		}
		pieces = append(pieces, piece{thought, whole[:s.early]})
		s.words = append(s.words, strings.TrimSpace(whole[s.early+len(marks[s.mark].end):])...)
	}
	s.state = certain
	pieces = s.flush(pieces)
	if s.cut {
		pieces = append(pieces, piece{kind: cut})
	}
	return pieces
}

// flush appends the words of the chunk.
func (s *splitter) flush(pieces []piece) []piece {
	if len(s.words) > 0 {
		pieces = append(pieces, piece{words, string(s.words)})
		s.words = s.words[:0]
	}
	return pieces
}

// next takes one byte.
func (s *splitter) next(pieces []piece, b byte) []piece {
	if len(s.tag) == 0 && !firstBytes[b] && !(b == 'a' && s.isBare()) {
		return s.plain(pieces, b)
	}
	s.tag = append(s.tag, b)
	mark, isEnd, prefix := match(s.tag)
	if prefix {
		return pieces
	}
	whole := s.tag
	s.tag = nil
	if mark >= 0 {
		return s.found(pieces, mark, isEnd, whole)
	}
	pieces = s.plain(pieces, whole[0])
	for _, b := range whole[1:] { // it may begin another tag
		pieces = s.next(pieces, b)
	}
	return pieces
}

// found takes a whole tag.
func (s *splitter) found(pieces []piece, mark int, isEnd bool, tag []byte) []piece {
	if s.over {
		s.words = append(s.words, tag...)
		return pieces
	}
	if s.block != nil {
		return s.inBlock(pieces, mark, isEnd, tag)
	}
	inside := s.code.inside()
	isThinking := marks[mark].kind == thinkMark
	switch {
	case isThinking && s.keep:
	case !isThinking && s.state != thinking && !inside:
		var taken bool
		if pieces, taken = s.token(pieces, mark, isEnd, tag); taken {
			return pieces
		}
	case !isThinking:
	case s.state == leading && !isEnd:
		s.state, s.mark, s.space, s.code = thinking, mark, nil, code{}
		return pieces
	case s.state == leading && !s.again, s.state == uncertain && isEnd && !inside && s.opened[mark] == 0:
		pieces = append(s.flush(pieces), piece{kind: turned})
		s.state, s.again, s.space, s.inLine = leading, true, nil, false
		return pieces
	case s.state == thinking && isEnd && mark == s.mark && !inside:
		pieces = append(pieces, piece{thought, string(s.thought)})
		s.state, s.again, s.thought, s.early = leading, true, nil, 0
		return pieces
	case s.state == thinking && isEnd && mark == s.mark && s.early == 0:
		s.early = len(s.thought)
	case s.state != thinking && !inside && !isEnd && s.isAtStart() && !s.prose:
		s.begin(mark, tag)
		return pieces
	case s.state == uncertain && !inside && isEnd:
		s.opened[mark]--
	case s.state == uncertain && !inside:
		s.opened[mark]++
	}
	for _, b := range tag {
		pieces = s.plain(pieces, b)
	}
	return pieces
}

// plain takes a byte of no tag.
func (s *splitter) plain(pieces []piece, b byte) []piece {
	isSpace := b == ' ' || b == '\t' || b == '\r'
	switch {
	case s.over:
		s.words = append(s.words, b)
		return pieces
	case s.block != nil:
		return s.blockByte(pieces, b)
	case len(s.pending) > 0 && isSpace:
		s.pending = append(s.pending, b)
		return pieces
	case len(s.pending) > 0 && b == '\n':
		s.pending, s.cut = nil, true
	case len(s.pending) > 0:
		pending := s.pending
		s.pending = nil
		for _, b := range pending {
			s.word(b)
		}
	}
	s.word(b)
	return pieces
}

// word takes a byte of the words, or of the thought that has begun.
func (s *splitter) word(b byte) {
	isSpace := bytes.IndexByte([]byte(" \t\r\n"), b) >= 0
	if s.state == leading {
		if isSpace {
			s.space = append(s.space, b)
			return
		}
		if s.state = uncertain; s.again {
			s.state = certain
		} else if !s.trim {
			s.words = append(s.words, s.space...)
		}
		s.code = code{}
	}
	s.code.add(b)
	if s.state == thinking {
		s.thought = append(s.thought, b)
		return
	}
	if s.words = append(s.words, b); len(s.first) < 16 {
		s.first = append(s.first, b)
	}
	s.inLine, s.spaced = b != '\n' && (s.inLine || !isSpace), isSpace
}

// code follows a Markdown text and knows whether its next byte stands inside a fence, or inside
// the code of one line.
type code struct {
	fence  byte // of the open fence; 0 for none
	length int  // of the open fence

	// The current line.
	place  linePlace
	indent int
	mark   byte // begins the line: a character that can be a fence
	run    int  // the number of marks
	ticks  int  // the length of the backticks that have begun code in the line
	now    int  // the length of the backticks that may go on
}

type linePlace int

const (
	indented linePlace = iota
	fencing            // in the marks
	informed           // behind the marks
	other
)

func (c *code) add(b byte) {
	if b == '\n' {
		c.endLine()
		return
	}
	if b == '`' {
		c.now++
	} else {
		c.settle()
	}
	space := b == ' ' || b == '\t' || b == '\r'
	switch {
	case c.place == indented && b == ' ' && c.indent < 3:
		c.indent++
	case c.place == indented && (b == '`' || b == '~'):
		c.place, c.mark, c.run = fencing, b, 1
	case c.place == fencing && b == c.mark:
		c.run++
	case c.place == fencing && space:
		c.place = informed
	case c.place == fencing && c.run >= 3 && c.fence == 0 && b != '`', c.place == informed && space:
		c.place = informed
	case c.place == informed && c.run >= 3 && c.fence == 0 && (c.mark == '~' || b != '`'): // the name of a language
	default:
		c.place = other
	}
}

// settle ends a row of backticks, which begins or ends code in its line.
func (c *code) settle() {
	switch {
	case c.now > 0 && c.ticks == 0:
		c.ticks = c.now
	case c.now == c.ticks:
		c.ticks = 0
	}
	c.now = 0
}

// endLine ends a line, which may begin or end a fence.
func (c *code) endLine() {
	switch isFence := (c.place == fencing || c.place == informed) && c.run >= 3; {
	case isFence && c.fence == 0:
		c.fence, c.length = c.mark, c.run
	case isFence && c.mark == c.fence && c.run >= c.length:
		c.fence = 0
	}
	*c = code{fence: c.fence, length: c.length}
}

// inside reports whether the next byte is code.
func (c *code) inside() bool {
	c.settle()
	return c.fence != 0 || c.ticks > 0 || (c.place == fencing || c.place == informed) && c.run >= 3
}
