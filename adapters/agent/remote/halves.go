package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Halves joins a character whose UTF-16 halves come in the strings of two events, as servers
// write them that cut a text at any code unit. The zero value is ready to use.
type Halves struct{ held []byte }

// Join returns the text of a JSON string. It holds back a first half at the string's end and
// puts it before the next string. A null or an absent value is an empty text.
func (h *Halves) Join(raw json.RawMessage) (text string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if raw[0] != '"' {
		return "", fmt.Errorf("%s is not a string", Plain(string(raw), 40))
	}
	inner := raw[1 : len(raw)-1]
	if len(h.held) > 0 {
		inner, h.held = append(h.held, inner...), nil
	}
	if cut := len(inner) - len(`\ud83d`); cut >= 0 && isFirstHalf(inner[cut:]) && !isEscaped(inner[:cut]) {
		h.held, inner = bytes.Clone(inner[cut:]), inner[:cut]
	}
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), nil
	}
	err = json.Unmarshal(append(append([]byte{'"'}, inner...), '"'), &text)
	return text, err
}

// isFirstHalf reports whether an escape such as \ud83d is the first half of a character.
func isFirstHalf(escape []byte) bool {
	if escape[0] != '\\' || escape[1] != 'u' {
		return false
	}
	unit, err := strconv.ParseUint(string(escape[2:]), 16, 16)
	return err == nil && unit >= 0xd800 && unit < 0xdc00
}

// isEscaped reports whether a text ends in a backslash that escapes the next byte.
func isEscaped(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}

// Part is a part of a model's text: a text of the answer, a part of a thought, or a picture.
type Part struct {
	Text    string
	Thought bool
	Picture string // its address; empty for none
}

// Parts returns the parts of a content: a string, as Join reads it, or a list of parts, as the servers of
// some models write it. It leaves out parts that are neither text nor thinking nor a picture.
func (h *Halves) Parts(raw json.RawMessage) (parts []Part, err error) {
	if len(raw) == 0 || raw[0] != '[' {
		text, err := h.Join(raw)
		return []Part{{Text: text}}, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for _, raw := range list {
		if raw[0] != '{' {
			text, err := h.Join(raw)
			if err != nil {
				return nil, err
			}
			parts = append(parts, Part{Text: text})
			continue
		}
		var part struct {
			Type                               string
			Text, Refusal, Thinking, Reasoning json.RawMessage
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, err
		}
		if picture := pictureOf(raw); picture != "" && strings.Contains(part.Type, "image") {
			parts = append(parts, Part{Picture: picture})
			continue
		}
		thought := part.Type == "thinking" || part.Type == "reasoning"
		if !thought && !slices.Contains([]string{"", "text", "output_text", "refusal"}, part.Type) {
			continue
		}
		for _, raw := range []json.RawMessage{part.Thinking, part.Reasoning, part.Text, part.Refusal} {
			text, err := h.texts(raw)
			if err != nil {
				return nil, err
			}
			parts = append(parts, Part{Text: text, Thought: thought})
		}
	}
	return parts, nil
}

// texts returns a text that is a string, or a list of objects with one.
func (h *Halves) texts(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return h.Join(raw)
	}
	var list []struct{ Text string }
	err := json.Unmarshal(raw, &list)
	var all strings.Builder
	for _, part := range list {
		all.WriteString(part.Text)
	}
	return all.String(), err
}
