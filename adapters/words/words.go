// Package words builds the words of a message without typed text from its visible parts.
package words

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxLevels bounds the depth of nested parts from which an adapter reads words.
	MaxLevels = 32
	// MaxBytes bounds the derived words of one message, without the mark of a cut.
	MaxBytes = 16 << 10
	// cut marks words that end at MaxBytes.
	cut = "…"
)

// Builder collects the visible texts of one message, a line each. The zero value is empty.
type Builder struct {
	text strings.Builder
	full bool
}

// Line adds a text on a line of its own. It skips an empty text. A text that does not fit is cut
// between two characters, and Builder takes nothing more.
func (b *Builder) Line(text string) {
	if text == "" || b.full {
		return
	}
	if b.text.Len() > 0 {
		text = "\n" + text
	}
	if free := MaxBytes - b.text.Len(); len(text) > free {
		for free > 0 && !utf8.RuneStart(text[free]) {
			free--
		}
		text, b.full = text[:free]+cut, true
	}
	b.text.WriteString(text)
}

// Field adds a named value as "name: value", or the one that is not empty.
func (b *Builder) Field(name, value string) {
	if name != "" && value != "" {
		name += ": "
	}
	b.Line(name + value)
}

// Full reports whether nothing more fits, so a caller can stop reading.
func (b *Builder) Full() bool { return b.full }

// String returns the collected lines.
func (b *Builder) String() string { return b.text.String() }
