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
	// Thinking says whether the thinking at the beginning of a text becomes a THOUGHT or stays a
	// part of the text.
	Thinking string `yaml:"thinking"`
}

// DefaultReading returns the defaults.
func DefaultReading() Reading { return Reading{Thinking: SplitThinking} }

// Check adds the faults of the settings.
func (r Reading) Check(faults *event.FieldErrors) {
	faults.Check(r.Thinking == SplitThinking || r.Thinking == KeepThinking, "thinking", "must be split or keep")
}

// marks are the pairs of tags that models write around their thinking, without regard to case.
// The last one is Gemma's channel. No tag begins another one, and < only begins one.
// https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4
var marks = [...]struct{ begin, end string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<reasoning>", "</reasoning>"},
	{"<thought>", "</thought>"},
	{"<|channel>thought", "<channel|>"},
}

// piece is a piece of an answer.
type piece struct {
	kind pieceKind
	text string
}

type pieceKind int

const (
	words   pieceKind = iota // a text of the answer
	thought                  // a whole thought
	turned                   // without a text: all words before it are a thought
)

// splitter separates the thinking at the beginning of a text from the words of the answer: parts
// between two tags, and a part that only a closing tag ends, because some chat templates write the
// opening one into the prompt. Later in the text and inside code, tags are words. The cuts of the
// text into chunks do not matter, except that they cut the words.
type splitter struct {
	state  splitState
	tag    []byte // that may begin
	space  []byte // white space before the first words
	code   code
	opened [len(marks)]int // the tags among the words that are open, of each pair
	again  bool            // a thought has come
	words  []byte          // of the current chunk

	mark    int // the pair of the current thought
	thought []byte
	early   int // the length of the thought at the first closing tag inside code; 0 for none
}

type splitState int

const (
	leading   splitState = iota // only white space or thoughts have come
	thinking                    // the opening tag has come
	uncertain                   // words have come that a closing tag makes a thought
	certain                     // all further text is words
)

// add takes the next chunk.
func (s *splitter) add(text string) (pieces []piece) {
	if s.state == certain {
		return []piece{{words, text}}
	}
	for i := range len(text) {
		if s.state == certain {
			s.words = append(s.words, text[i:]...)
			break
		}
		pieces = s.next(pieces, text[i])
	}
	return s.flush(pieces)
}

// end ends the text. A thought that no tag has closed stays one, unless a closing tag
// inside code was meant to close it.
func (s *splitter) end() []piece {
	for _, b := range s.tag {
		s.plain(b)
	}
	s.tag = nil
	if s.state == leading && !s.again {
		s.words = append(s.words, s.space...)
	}
	var pieces []piece
	if s.state == thinking {
		whole := string(s.thought)
		if s.early == 0 {
			return []piece{{thought, whole}}
		}
		pieces = []piece{{thought, whole[:s.early]}}
		s.words = append(s.words, strings.TrimSpace(whole[s.early+len(marks[s.mark].end):])...)
	}
	s.state = certain
	return s.flush(pieces)
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
	if len(s.tag) == 0 && b != '<' {
		s.plain(b)
		return pieces
	}
	s.tag = append(s.tag, b)
	mark, isEnd, prefix := match(s.tag)
	if prefix {
		return pieces
	}
	whole := s.tag
	if mark >= 0 {
		s.tag = nil
		return s.found(pieces, mark, isEnd, whole)
	}
	s.tag = nil
	for _, b := range whole[:len(whole)-1] {
		s.plain(b)
	}
	return s.next(pieces, b) // it may begin another tag
}

// match returns the pair of a tag, or -1, and whether a longer text may be one.
func match(text []byte) (mark int, isEnd, prefix bool) {
	for i, m := range marks {
		for _, tag := range []string{m.begin, m.end} {
			if len(text) <= len(tag) && strings.EqualFold(tag[:len(text)], string(text)) {
				if len(text) == len(tag) {
					return i, tag == m.end, false
				}
				prefix = true
			}
		}
	}
	return -1, false, prefix
}

// found takes a whole tag.
func (s *splitter) found(pieces []piece, mark int, isEnd bool, tag []byte) []piece {
	inside := s.code.inside()
	switch {
	case s.state == leading && !isEnd:
		s.state, s.mark, s.space, s.code = thinking, mark, nil, code{}
		return pieces
	case s.state == leading && !s.again, s.state == uncertain && isEnd && !inside && s.opened[mark] == 0:
		pieces = append(s.flush(pieces), piece{kind: turned})
		s.state, s.again, s.space = leading, true, nil
		return pieces
	case s.state == thinking && isEnd && mark == s.mark && !inside:
		pieces = append(pieces, piece{thought, string(s.thought)})
		s.state, s.again, s.thought, s.early = leading, true, nil, 0
		return pieces
	case s.state == thinking && isEnd && mark == s.mark && s.early == 0:
		s.early = len(s.thought)
	case s.state == uncertain && !inside && isEnd:
		s.opened[mark]--
	case s.state == uncertain && !inside:
		s.opened[mark]++
	}
	for _, b := range tag {
		s.plain(b)
	}
	return pieces
}

// plain takes a byte of no tag.
func (s *splitter) plain(b byte) {
	if s.state == leading {
		if bytes.IndexByte([]byte(" \t\r\n"), b) >= 0 {
			s.space = append(s.space, b)
			return
		}
		if s.state = uncertain; s.again {
			s.state = certain
		} else {
			s.words = append(s.words, s.space...)
		}
		s.code = code{}
	}
	s.code.add(b)
	if s.state == thinking {
		s.thought = append(s.thought, b)
	} else {
		s.words = append(s.words, b)
	}
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
