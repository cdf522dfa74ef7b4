// Package lookalike reads a text as people see it: it replaces characters that look like the syntax or
// the letters of ASCII by them.
package lookalike

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// tables are pairs of an ASCII character and the characters that look like it after NFKC: brackets, colons,
// bars and dashes of other alphabets, the letters of Cyrillic and Greek, and small capitals.
var tables = []struct {
	ascii rune
	like  string
}{
	{'[', "⟦⁅【〔〖〘〚⦋⦍⦏❲⟬⦗［⸢⌈⌊「『⟮"},
	{']', "⟧⁆】〕〗〙〛⦌⦎⦐❳⟭⦘］⸣⌉⌋」』⟯"},
	{'<', "‹⟨〈❬❮❰⟪《«˂ᐸᚲ⧼≺"},
	{'>', "›⟩〉❭❯❱⟫》»˃ᐳ⧽≻"},
	{':', "∶꞉ː˸։׃܃܄᛬᠄⁚⦂ꓽ፡፥⠆፦"},
	{'|', "∣ǀ│┃❘❙❚⏐׀⎜⎟￨¦▏"},
	{'-', "‐‑‒–—―−⁃˗➖﹘ー─━ᅳ"},
	{'!', "ǃⵑ"},
	{'/', "⁄∕╱⧸"},
	{'_', "▁ˍ"},
	{'#', "⋕♯"},
	{'*', "∗⁎٭✱"},
	{'a', "аαᴀɑ"}, {'b', "Ьвʙᖯ"}, {'c', "сϲᴄⅽ"}, {'d', "ԁᴅɗ"}, {'e', "еεᴇҽɛё"}, {'f', "ꜰғϝ"}, {'g', "ɡցɢԍ"}, {'h', "һհʜн"},
	{'i', "іιıɪӏɩ"}, {'j', "јϳᴊ"}, {'k', "кκᴋ"}, {'l', "ӏⅼʟǀ"}, {'m', "мᴍϻ"}, {'n', "пηɴո"}, {'o', "оοσᴏօ০"}, {'p', "рρᴘ"},
	{'q', "ԛզ"}, {'r', "гʀᴦ"}, {'s', "ѕꜱʂ"}, {'t', "тτᴛ"}, {'u', "υսᴜʋцμ"}, {'v', "ѵνᴠ"}, {'w', "ԝωᴡшѡ"}, {'x', "хχ"}, {'y', "уγʏүყ"}, {'z', "ᴢʐζ"},
	{'a', "АΑ"}, {'b', "ВΒ"}, {'c', "СϹ"}, {'e', "ЕΕ"}, {'h', "НΗ"}, {'i', "ІΙӀ"}, {'j', "Ј"}, {'k', "КΚ"}, {'m', "МΜ"}, {'n', "Ν"},
	{'o', "ОΟ"}, {'p', "РΡ"}, {'s', "Ѕ"}, {'t', "ТΤ"}, {'u', "Ս"}, {'x', "ХΧ"}, {'y', "УΥҮ"}, {'z', "Ζ"},
}

// boxed are the first of the letters A to Z in boxes and circles that NFKC leaves as they are: white in a black circle or
// square, and the letters of flags.
var boxed = [...]rune{'\U0001F150', '\U0001F170', '\U0001F1E6'}

var ascii = func() map[rune]rune {
	m := map[rune]rune{}
	for _, t := range tables {
		for _, r := range t.like {
			if _, known := m[r]; !known {
				m[r] = t.ascii
			}
		}
	}
	return m
}()

// Rune returns the ASCII character that a character looks like, or the character itself.
func Rune(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	if like, ok := ascii[r]; ok {
		return like
	}
	for _, first := range boxed {
		if first <= r && r < first+26 {
			return 'A' + r - first
		}
	}
	plain := norm.NFKC.String(string(r))
	if like, width := utf8.DecodeRuneInString(plain); width == len(plain) {
		if folded, ok := ascii[like]; ok {
			return folded
		}
		return like
	}
	return r
}

// Fold returns a text after NFKC, with the ASCII that its characters look like and without marks that
// combine with a letter. It is for comparisons: the text itself stays as it is.
func Fold(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			return -1
		}
		return Rune(r)
	}, norm.NFKD.String(norm.NFKC.String(text)))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// IsLineEnd reports whether some reader treats the character as the end of a line: the union of Unicode's
// and Python's line ends.
func IsLineEnd(r rune) bool {
	switch r {
	case '\n', '\v', '\f', '\r', '\x1c', '\x1d', '\x1e', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// IsSeen reports whether a character leaves something to see by itself: it is no white space, no format
// character, no mark that combines with another character, and no blank one.
func IsSeen(r rune) bool {
	switch r {
	case '\u2800', '\u3164', '\u115F', '\u1160', '\uFFA0', unicode.ReplacementChar: // blank
		return r == unicode.ReplacementChar
	}
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.In(r, unicode.M, unicode.Other_Default_Ignorable_Code_Point)
}

// Seen returns a text as people see it: folded, with plain spaces, and without characters that leave nothing
// to see.
func Seen(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !IsSeen(r):
			return -1
		}
		return r
	}, Fold(text))
}
