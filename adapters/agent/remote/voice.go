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

// isOwn is isOther for the agent: [Name]:, [Name (token)]: and Name:, in any case, because the ids of agents
// consist of ASCII.
func (v *voice) isOwn(text string) (whole, more bool) {
	name := v.speakers.Agent
	if name == "" {
		return false, false
	}
	for _, header := range []string{"[" + name + "]:", name + ":"} {
		if len(text) <= len(header) && strings.EqualFold(header[:len(text)], text) {
			if len(text) == len(header) {
				return true, false
			}
			more = true
		}
	}
	begin := "[" + name + " ("
	if len(text) <= len(begin) {
		return false, more || strings.EqualFold(begin[:len(text)], text)
	}
	if !strings.EqualFold(text[:len(begin)], begin) || len(text) > len(begin)+maxToken {
		return false, more
	}
	token, end, ended := strings.Cut(text[len(begin):], ")")
	switch {
	case token != "" && ended && end == "]:":
		return true, false
	case strings.ContainsAny(token, "[]\r\n"):
		return false, more
	}
	return false, !ended || strings.HasPrefix("]:", end)
}
