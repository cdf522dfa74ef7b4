package words_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/adapters/words"
)

func TestLinesAndFields(t *testing.T) {
	var b words.Builder
	b.Line("")
	b.Line("Disk full")
	b.Field("severity", "page")
	b.Field("", "only a value")
	b.Field("only a name", "")
	b.Field("", "")
	if got, want := b.String(), "Disk full\nseverity: page\nonly a value\nonly a name"; got != want {
		t.Errorf("words are %q, want %q", got, want)
	}
	if b.Full() {
		t.Error("a few lines fill the builder")
	}
}

func TestWordsEndAtTheBound(t *testing.T) {
	for _, line := range []string{"a", "ä", "€", "😀"} {
		var b words.Builder
		b.Line("x")
		for range words.MaxBytes {
			b.Line(line)
		}
		got, isCut := strings.CutSuffix(b.String(), "…")
		switch {
		case !isCut || !b.Full():
			t.Errorf("%q: words over the bound have no mark", line)
		case len(got) > words.MaxBytes || len(got) < words.MaxBytes-len(line)-1:
			t.Errorf("%q: %d bytes are kept of %d", line, len(got), words.MaxBytes)
		case !utf8.ValidString(got):
			t.Errorf("%q: a character is cut", line)
		}
	}
}

func TestWordsThatJustFitAreWhole(t *testing.T) {
	var b words.Builder
	b.Line(strings.Repeat("a", words.MaxBytes))
	if b.Full() || len(b.String()) != words.MaxBytes {
		t.Error("words of exactly the bound are cut")
	}
}
