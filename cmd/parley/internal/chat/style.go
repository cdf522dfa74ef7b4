package chat

import "strings"

// The codes of a terminal for the marks of Markdown.
const (
	bold  = "\x1b[1m"
	faint = "\x1b[2m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

// style replaces the marks of Markdown in a text that comes in parts: headings and ** are bold, code has a colour, and items
// have dots. Every other mark stays as it is written. A mark waits until the characters after it tell what it is.
type style struct {
	begun  bool   // the line has more than its indentation
	code   bool   // within ` `
	strong bool   // within ** **
	fenced bool   // within a block of code
	fence  bool   // the line is a fence, which is not shown
	last   byte   // the character before
	held   string // of the end of the part before
}

// next returns the next part of the text with its codes.
func (s *style) next(text string) string {
	text = s.held + text
	s.held = ""
	var b strings.Builder
	for i := 0; i < len(text); {
		n, out := s.mark(text[i:])
		if n == 0 {
			s.held = text[i:]
			break
		}
		s.last = text[i+n-1]
		b.WriteString(out)
		i += n
	}
	return b.String()
}

// end returns what is held, and ends the codes.
func (s *style) end() string {
	held := s.held
	if s.fence {
		held = ""
	}
	coded := s.code || s.strong || s.fenced
	*s = style{}
	if coded {
		return held + reset
	}
	return held
}

// mark returns how many bytes the next mark or character has, and what is shown for it; 0 if more characters must come.
func (s *style) mark(text string) (int, string) {
	c := text[0]
	if !s.begun && !s.fence && c != ' ' && c != '\n' {
		if n, out, ok := s.first(text); ok {
			return n, out
		}
	}
	switch {
	case c == '\n':
		return s.line()
	case s.fence:
		return 1, ""
	case s.fenced:
	case c == '`':
		s.code = !s.code
		return 1, map[bool]string{true: cyan, false: reset + s.weight()}[s.code]
	case c == '*' && !s.code && strings.Trim(text, "*") == "" && (len(text) < 2 || len(text) == 2 && !s.strong):
		return 0, ""
	case !s.code && strings.HasPrefix(text, "**") && (s.strong && s.last != ' ' || !s.strong && text[2] != ' '):
		s.strong = !s.strong
		return 2, map[bool]string{true: bold, false: reset}[s.strong]
	}
	s.begun = s.begun || c != ' '
	return 1, text[:1]
}

// line ends a line with the codes that last no longer.
func (s *style) line() (int, string) {
	shown := "\n"
	if s.fence {
		shown = ""
	}
	if s.code || s.strong {
		shown = reset + shown
	}
	s.begun, s.code, s.strong, s.fence = false, false, false, false
	return 1, shown
}

// weight returns the code of the text around a piece of code.
func (s *style) weight() string {
	if s.strong {
		return bold
	}
	return ""
}

// first returns the mark at the begin of a line. ok is false if there is none.
func (s *style) first(text string) (n int, out string, ok bool) {
	word, _, whole := strings.Cut(text, " ")
	if end := strings.IndexByte(word, '\n'); end >= 0 {
		word, whole = word[:end], true
	}
	marks := strings.Trim(word, "`#-*+>") == ""
	switch {
	case !whole && marks && len(word) < 7 && !strings.HasPrefix(word, "```"):
		return 0, "", true
	case strings.HasPrefix(word, "```"):
		s.fenced, s.fence = !s.fenced, true
		return 3, map[bool]string{true: cyan, false: reset}[s.fenced], true
	case s.fenced:
		return 0, "", false
	case strings.Trim(word, "#") == "" && len(word) < 7 && strings.HasPrefix(text, word+" "):
		s.begun, s.strong = true, true
		return len(word) + 1, bold, true
	case (word == "-" || word == "*" || word == "+") && strings.HasPrefix(text, word+" "):
		s.begun = true
		return 2, "• ", true
	}
	return 0, "", false
}
