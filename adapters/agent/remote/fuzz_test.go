package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
)

// FuzzHalves fuzzes the strings of consecutive events. Joined, they are the text of the one
// string that was cut, wherever it was cut.
func FuzzHalves(f *testing.F) {
	f.Add("Grüße 🙂 \\ud83d", 9)
	f.Add(`\\\ud83d`, 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		text = strings.ToValidUTF8(text, "")
		units := encode(text)
		cut = max(0, min(cut, len(units)))
		var h Halves
		joined := ""
		for _, part := range []string{strings.Join(units[:cut], ""), strings.Join(units[cut:], "")} {
			got, err := h.Join([]byte(`"` + part + `"`))
			if err != nil {
				t.Fatal(err)
			}
			joined += got
		}
		if joined != text {
			t.Errorf("%q, want %q", joined, text)
		}
	})
}

// encode returns the JSON escapes of a text's UTF-16 units.
func encode(text string) (units []string) {
	for _, r := range text {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			units = append(units, fmt.Sprintf(`\u%04x`, high), fmt.Sprintf(`\u%04x`, low))
			continue
		}
		raw, _ := json.Marshal(string(r))
		units = append(units, string(raw[1:len(raw)-1]))
	}
	return units
}
