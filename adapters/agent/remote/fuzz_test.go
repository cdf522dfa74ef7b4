package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf16"
)

// FuzzStream fuzzes event streams. The events do not depend on the pieces in which the stream
// is read, and do not have more bytes than it.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		"data: a\n\ndata: b\ndata: c\n\n", "\ufeffid: 7\r\ndata:a\r\n\r\n", "data: a\rdata: b\r\r", ": comment\n\nretry: 5\nevent: x\ndata\n\n", "data: no end", "id: a\x00b\ndata: x\n\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := all(strings.NewReader(text))
		pieces, other := all(iotest.OneByteReader(strings.NewReader(text)))
		unix := strings.ReplaceAll(text, "\r\n", "\n")
		lines, third := all(strings.NewReader(unix))
		if !strings.Contains(unix, "\r") && (err != third || strings.Join(whole, "\n") != strings.Join(lines, "\n")) {
			t.Errorf("%q, %v; with LF only %q, %v", whole, err, lines, third)
		}
		if err != other || strings.Join(whole, "\n") != strings.Join(pieces, "\n") {
			t.Errorf("%q, %v; byte by byte %q, %v", whole, err, pieces, other)
		}
		if n := len(strings.Join(whole, "")); n > len(text) {
			t.Errorf("%d bytes of a stream of %d", n, len(text))
		}
	})
}

func all(body io.Reader) (list []string, err error) {
	for stream := newEvents(body, 1<<20, false); ; {
		event, err := stream.next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, event.ID+" "+string(event.Data))
	}
}

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
