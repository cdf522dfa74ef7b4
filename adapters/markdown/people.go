package markdown

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Person is somebody whom an answer may mention by name.
type Person struct{ Token, Name string }

// People are the persons whom an answer may mention, the longest name first. No two have the same name.
type People []Person

// NewPeople returns the persons of a list, which it sorts.
func NewPeople(list []Person) People {
	slices.SortStableFunc(list, func(a, b Person) int { return cmp.Compare(len(b.Name), len(a.Name)) })
	return list
}

// Mention replaces each @Name of a person in a Markdown text by the person's token: the longest name, in any case, as a whole word,
// outside code. If more text may follow, it returns as held the end of the text whose meaning that text could change. So a
// longer text never changes what was shown of a shorter one.
func (people People) Mention(text string, done bool) (shown, held string) {
	if len(people) == 0 || !strings.Contains(text, "@") {
		return text, ""
	}
	var out strings.Builder
	from, fence := 0, "" // the end of the written part, and the marks of the open fence
	for at := 0; at < len(text); {
		if at == 0 || text[at-1] == '\n' {
			line, _, _ := strings.Cut(text[at:], "\n")
			if marks, opens := fenceIn(line, fence); marks {
				fence, at = opens, at+len(line)
				continue
			}
		}
		switch {
		case fence != "":
			at = afterLine(text, at)
		case text[at] == '\\':
			at += 2
		case text[at] == '`':
			at = afterCode(text, at)
		case text[at] == '@' && opensMention(text[:at]):
			token, n, may := people.at(text[at+1:], done)
			if may || token != "" && !done && mayBeCode(text, at) {
				out.WriteString(text[from:at])
				return out.String(), text[at:]
			}
			if token != "" {
				out.WriteString(text[from:at] + token)
				from = at + 1 + n
			}
			at += 1 + n
		default:
			at++
		}
	}
	out.WriteString(text[from:])
	return out.String(), ""
}

// at returns the token of the person whose name a text begins with, and the length of the name; may says that more text may tell.
func (people People) at(text string, done bool) (token string, n int, may bool) {
	for _, p := range people {
		n, rest := 0, p.Name
		for rest != "" && n < len(text) {
			a, size := utf8.DecodeRuneInString(text[n:])
			b, width := utf8.DecodeRuneInString(rest)
			if !strings.EqualFold(string(a), string(b)) {
				break
			}
			n, rest = n+size, rest[width:]
		}
		switch next, _ := utf8.DecodeRuneInString(text[n:]); {
		case n == len(text) && !done:
			return "", 0, true
		case rest == "" && !isWord(next):
			return p.Token, n, false
		}
	}
	return "", 0, false
}

// isWord reports whether a character goes on with a word.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// opensMention reports whether an @ behind a text may begin a mention: it is no part of an address or a token.
func opensMention(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("<@/.&=%+:", r)
}

// fenceIn reports whether a line is a mark of a code fence, and returns the marks of the fence that is open behind it.
func fenceIn(line, open string) (marks bool, opens string) {
	line = strings.TrimLeft(line, " \t>")
	sign := "`"
	if strings.HasPrefix(line, "~") {
		sign = "~"
	}
	rest := strings.TrimLeft(line, sign)
	run := line[:len(line)-len(rest)]
	switch {
	case len(run) < 3, open == "" && sign == "`" && strings.Contains(rest, "`"):
		return false, open
	case open == "":
		return true, run
	case run[0] == open[0] && len(run) >= len(open) && strings.TrimSpace(rest) == "":
		return true, ""
	}
	return false, open
}

// afterLine returns where the line that has a place ends.
func afterLine(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// afterCode returns the end of the code that the backticks at a place begin; of the backticks if they begin none.
func afterCode(text string, at int) int {
	n := ticks(text[at:])
	end, _ := codeWithin(text[at+n:], n)
	return at + n + max(end, 0)
}

// codeWithin returns the end of code that a number of backticks before a text has begun, within the paragraph; -1 for none. ended
// says that the paragraph ends.
func codeWithin(text string, n int) (end int, ended bool) {
	paragraph, _, ended := strings.Cut(text, "\n\n")
	return codeEnd(paragraph, n), ended
}

// mayBeCode reports whether backticks before a place of an unfinished text may still begin code that has the place.
func mayBeCode(text string, at int) bool {
	for i := strings.LastIndex(text[:at], "\n\n") + 1; i < at; {
		n := ticks(text[i:])
		if n == 0 {
			i++
			continue
		}
		end, ended := codeWithin(text[i+n:], n)
		if end < 0 && !ended {
			return true
		}
		i += n + max(end, 0)
	}
	return false
}
