package bluebubbles

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"parley/ingest/event"
)

// wakeWords are the words that address us in groups.
type wakeWords struct {
	everywhere []string
	chats      map[string][]string // instead of everywhere, by the chat's name
}

// newWakeWords returns the configured words.
func newWakeWords(c Config) wakeWords {
	w := wakeWords{everywhere: c.Wake, chats: map[string][]string{}}
	for _, chat := range c.Channels {
		w.chats[chatName(chat.ID)] = chat.Wake
	}
	return w
}

// match returns the first wake word that a text in a channel contains; empty for none. A
// payload without a chat may be of a group.
func (w wakeWords) match(channel event.Channel, text string) string {
	if channel.Type == event.ChannelDirect {
		return ""
	}
	words, own := w.chats[channel.ID]
	if !own {
		words = w.everywhere
	}
	if i := slices.IndexFunc(words, func(word string) bool { return containsWord(text, word) }); i >= 0 {
		return strings.TrimSpace(words[i])
	}
	return ""
}

// containsWord reports whether a text contains a word or phrase as a whole, in any case.
func containsWord(text, word string) bool {
	text, word = fold(text), fold(strings.TrimSpace(word))
	starts, ends := newBoundaries(text), newBoundaries(text)
	for from := 0; word != ""; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start := from + i
		if starts.contain(start) && ends.contain(start+len(word)) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		from = start + size
	}
	return false
}

// fold returns a text in which letters that differ only in their case are equal.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, text)
}

// boundaries are the offsets of a text at which a word can begin or end. The text is read once,
// however many offsets are looked up.
type boundaries struct {
	text  string
	rest  string // behind end
	end   int    // of the last word that was read
	state int    // of uniseg
}

func newBoundaries(text string) *boundaries {
	return &boundaries{text: text, rest: text, state: -1}
}

// contain reports whether a word can begin or end at an offset: beside a character that is part
// of no word, or, in scripts without spaces, where Unicode has a boundary of words. No offset is
// less than an earlier one.
// https://www.unicode.org/reports/tr29/#Word_Boundaries
func (b *boundaries) contain(at int) bool {
	before, _ := utf8.DecodeLastRuneInString(b.text[:at])
	after, _ := utf8.DecodeRuneInString(b.text[at:])
	if at == 0 || at == len(b.text) || !isWordRune(before) && !unicode.IsMark(after) || !isWordRune(after) {
		return true
	}
	for b.end < at {
		var word string
		word, b.rest, b.state = uniseg.FirstWordInString(b.rest, b.state)
		b.end += len(word)
	}
	return b.end == at
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_'
}
