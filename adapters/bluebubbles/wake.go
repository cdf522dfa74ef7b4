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
	if word == "" || !strings.Contains(text, word) {
		return false
	}
	boundaries := wordBoundaries(text)
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start := from + i
		if boundaries[start] && boundaries[start+len(word)] {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		from = start + size
	}
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

// wordBoundaries reports for each offset of a text whether a word can begin or end there: beside a
// character that is part of no word, or, in scripts without spaces, where Unicode has a boundary of
// words.
// https://www.unicode.org/reports/tr29/#Word_Boundaries
func wordBoundaries(text string) []bool {
	at := make([]bool, len(text)+1)
	at[0], at[len(text)] = true, true
	before := rune(-1)
	for i, r := range text {
		at[i] = at[i] || !isWordRune(before) && !unicode.IsMark(r) || !isWordRune(r)
		before = r
	}
	rest, state := text, -1
	for rest != "" {
		_, rest, state = uniseg.FirstWordInString(rest, state)
		at[len(text)-len(rest)] = true
	}
	return at
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_'
}
