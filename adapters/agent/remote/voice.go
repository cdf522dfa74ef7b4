package remote

import (
	"strings"

	"parley/assembly"
)

// voice keeps an answer in the agent's own voice, because models also write the headers of the input. It
// removes the agent's own header at the beginning. A later line that begins with the header of another
// author ends the answer: the model goes on writing the conversation. Inside a fence no line does.
type voice struct {
	speakers assembly.Speakers
	names    []string // of the agent and its account
	state    voiceState
	space    strings.Builder // white space before the first words
	named    bool            // the own header has come
	held     []byte          // may be a header
	code     code
	over     bool            // the answer has ended
	rest     strings.Builder // behind its end
}

type voiceState int

const (
	beginning voiceState = iota
	inLine
	lineStart
)

// add takes the next text and returns the words of the answer.
func (v *voice) add(text string) string {
	var out strings.Builder
	for text != "" {
		switch {
		case v.over:
			v.rest.WriteString(text)
			text = ""
		case v.state == inLine:
			text = v.line(&out, text)
		default:
			text = v.next(&out, text)
		}
	}
	return out.String()
}

// line writes the rest of a line and returns the text behind it.
func (v *voice) line(out *strings.Builder, text string) (rest string) {
	end := len(text)
	v.state = inLine
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		end, v.state = i+1, lineStart
	}
	for i := range end {
		v.code.add(text[i])
	}
	if v.code.fence != 0 {
		v.state = inLine
	}
	out.WriteString(text[:end])
	return text[end:]
}

// next takes one byte at a place where a header may stand, and returns the text behind it. Each byte is
// looked at once, however many lines a text has.
func (v *voice) next(out *strings.Builder, text string) (rest string) {
	if v.state == beginning && len(v.held) == 0 && strings.IndexByte(" \t\r\n", text[0]) >= 0 {
		v.space.WriteByte(text[0])
		return text[1:]
	}
	v.held, text = append(v.held, text[0]), text[1:]
	header := v.isOther
	if v.state == beginning {
		header = v.isOwn
	}
	whole, more := header(string(v.held))
	switch {
	case more:
		return text
	case whole && v.state == beginning:
		v.held, v.named = nil, true
		v.space.Reset()
		return text
	case whole:
		v.over = true
		v.rest.WriteString(v.release())
		return text
	}
	for held := v.release(); held != ""; {
		held = v.line(out, held)
	}
	return text
}

// release returns the held text, which is no header.
func (v *voice) release() string {
	text := string(v.held)
	if v.state == beginning && !v.named {
		text = v.space.String() + text
	}
	v.state, v.held = inLine, nil
	v.space.Reset()
	return text
}

// end returns the held words.
func (v *voice) end() string { return v.release() }

// isOther reports whether a text is the header of another author, and whether a longer one may be.
func (v *voice) isOther(text string) (whole, more bool) {
	if text[0] != '[' {
		return false, false
	}
	for _, header := range v.speakers.Headers {
		if text == header {
			return true, false
		}
		more = more || strings.HasPrefix(header, text)
	}
	return false, more
}

// maxToken is more than the length of a mention token in a header, in bytes.
const maxToken = 64

// isOwn is isOther for the agent: [Name]: and [Name (token)]: with the name of the agent or of its account, and
// Name: with that of the agent, in any case.
func (v *voice) isOwn(text string) (whole, more bool) {
	if v.names == nil {
		v.names = []string{v.speakers.Agent}
		if text[0] == '[' {
			v.names = append(v.names, v.speakers.AccountName())
		}
	}
	for _, name := range v.names {
		if name == "" {
			continue
		}
		headers := []string{"[" + name + "]:"}
		if name == v.speakers.Agent {
			headers = append(headers, name+":")
		}
		for _, header := range headers {
			if begins(header, text) {
				whole, more = whole || len(text) == len(header), more || len(text) < len(header)
			}
		}
		w, m := isNamed(text, "["+name+" (")
		whole, more = whole || w, more || m
	}
	return whole, more && !whole
}

// begins reports whether a header begins with a text, in any case of ASCII letters.
func begins(header, text string) bool {
	return len(text) <= len(header) && strings.EqualFold(header[:len(text)], text)
}

// isNamed reports whether a text is a header with a token behind a beginning, and whether a longer one may be.
func isNamed(text, begin string) (whole, more bool) {
	if len(text) <= len(begin) {
		return false, begins(begin, text)
	}
	if !begins(text, begin) || len(text) > len(begin)+maxToken {
		return false, false
	}
	token, end, ended := strings.Cut(text[len(begin):], ")")
	switch {
	case token != "" && ended && end == "]:":
		return true, false
	case strings.ContainsAny(token, "[]\r\n"):
		return false, false
	}
	return false, !ended || strings.HasPrefix("]:", end)
}
