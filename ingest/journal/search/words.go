package search

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxText bounds the bytes of a message whose words are found.
	maxText = 256 << 10
	// maxWord bounds a word, in bytes. PostgreSQL takes at most 2 KiB.
	maxWord = 256
)

// wordsOf returns the words of a text, each once: its longest runs of letters and digits, in lower case and without
// accents. In scripts that put no spaces between words, each letter is one. Both engines get these words and
// divide nothing themselves, so that they find the same.
func wordsOf(text string) (words []string) {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	known := map[string]bool{}
	var word strings.Builder
	end := func() {
		if w := word.String(); w != "" && !known[w] {
			known[w] = true
			words = append(words, w)
		}
		word.Reset()
	}
	for _, r := range norm.NFKD.String(strings.ToLower(text)) {
		switch {
		case unicode.Is(unicode.M, r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && unicode.IsLetter(r):
			end()
			word.WriteRune(r)
			end()
		case !unicode.IsLetter(r) && !unicode.IsNumber(r):
			end()
		case word.Len() < maxWord:
			word.WriteRune(unicode.ToLower(r))
		}
	}
	end()
	return words
}

// ofWorkspace returns the word that each message of a workspace has in the index. The sign in it is in no word of a
// text, nor does an engine divide a word there.
func ofWorkspace(id string) string { return "§" + strings.ReplaceAll(id, "-", "¦") }

// ofThread returns the word that each message of a thread has in the index.
func ofThread(row int64) string { return "§§" + strconv.FormatInt(row, 10) }
