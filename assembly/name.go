package assembly

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"parley/assembly/lookalike"
	"parley/ingest/event"
)

const (
	maxNameGraphemes = 80
	// maxGraphemePoints is more code points than any real grapheme has. A longer one is a
	// flood of combining marks.
	maxGraphemePoints = 16
)

// clean returns a name on one line, without invisible characters and without characters
// that could end a header: white space becomes single spaces, and brackets become
// parentheses. The result is empty if no character of the name is visible. Cleaning a
// clean name changes nothing.
func clean(name string) string { return cleanTo(name, maxNameGraphemes) }

// cleanTo is clean for a name of at most the given number of graphemes.
func cleanTo(name string, graphemes int) string {
	name = strings.ToValidUTF8(name, string(utf8.RuneError))
	var b strings.Builder
	b.Grow(len(name))
	seen := false
	var last rune // the rune before this one, 0 after white space
	for i, r := range name {
		switch {
		case unicode.IsSpace(r):
			last = 0
		case invisible(r) && !insideEmoji(last, r, name[i+utf8.RuneLen(r):]):
		default:
			if last == 0 && b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteRune(withoutSyntax(r))
			seen = seen || lookalike.IsSeen(r)
			last = r
		}
	}
	if !seen {
		return ""
	}
	return shorten(b.String(), graphemes)
}

// CleanName returns a name as a header shows it; see clean.
func CleanName(name string) string { return clean(name) }

// NameOf returns the name of an author as a header shows it.
func NameOf(author *event.Metadata) string {
	return cmp.Or(clean(author.SenderDisplayName), clean(author.SenderID), unknownName)
}

// withoutSyntax replaces the characters that have a meaning in headers and tokens, and those that look like
// them.
func withoutSyntax(r rune) rune {
	switch lookalike.Rune(r) {
	case '[':
		return '('
	case ']':
		return ')'
	case '<':
		return '‹'
	case '>':
		return '›'
	}
	return r
}

// invisible reports whether r is a control character, a format character (such as bidi
// controls and tags), or default-ignorable.
func invisible(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

const (
	joiner    = '\u200D'
	textStyle = '\uFE0E'
	iconStyle = '\uFE0F'
	keycap    = '\u20E3'
)

// insideEmoji reports whether the invisible r is a part of an emoji: a joiner between two
// pictographs, or the variation selector of one.
func insideEmoji(last, r rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case joiner:
		return (pictograph(last) || last == iconStyle) && pictograph(next)
	case textStyle, iconStyle:
		return pictograph(last) || next == keycap && strings.ContainsRune("0123456789#*", last)
	}
	return false
}

// pictograph reports whether r can be a visible part of an emoji.
func pictograph(r rune) bool {
	return r == '©' || r == '®' || 0x1F000 <= r && r <= 0x1FAFF ||
		r >= 0x2100 && unicode.In(r, unicode.So, unicode.Sm)
}

// shorten returns the first graphemes of a name, and the first code points of each.
func shorten(name string, graphemes int) string {
	if len(name) <= maxGraphemePoints {
		return name
	}
	var b strings.Builder
	cluster, rest, state := "", name, -1
	for range graphemes {
		if rest == "" {
			break
		}
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		b.WriteString(strings.TrimRight(event.Beginning(cluster, maxGraphemePoints), string(joiner)))
	}
	return strings.TrimRight(b.String(), " ")
}
