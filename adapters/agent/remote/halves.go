package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
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
