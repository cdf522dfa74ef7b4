package event

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// JSON returns a value as JSON on one line, with <, > and & as they are.
func JSON(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Text makes a platform's string safe to store: invalid UTF-8 and U+0000 become U+FFFD.
// Nothing else changes. The envelope keeps the original bytes.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Beginning returns the first n characters of a text.
func Beginning(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// Cut shortens a text to n bytes and an ellipsis.
func Cut(text string, n int) string {
	if len(text) > n {
		return strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}

// Line returns a text on one line of at most the given number of characters, the last of which is an
// ellipsis if the text is longer.
func Line(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case most <= 0:
		return ""
	case len(Beginning(text, most)) < len(text):
		return Beginning(text, most-1) + "…"
	}
	return text
}
