package assembly_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/assembly"
)

// TestNoWordsEndTheirFence: the first line of the fence's character that is as long as the fence
// is the last line of the message.
func TestNoWordsEndTheirFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringOf(rapid.SampledFrom([]rune("`` \n\r\u2028~a[]:"))).Filter(func(s string) bool { return s != "" }).Draw(t, "words")
		name := names.Draw(t, "name")
		text := assembly.Assemble("echo", []assembly.Turn{asked(said(1, olivia, "look", assembly.File{Name: name, Words: words}))}, wide, mentions)[0].Text()
		_, text, _ = strings.Cut(text, "\n\n")
		lines := strings.Split(text, "\n")
		fence, named, _ := strings.Cut(lines[0], " ")
		if strings.Trim(fence, "`") != "" || len(fence) < 3 || named == "" || strings.Contains(named, "`") {
			t.Fatalf("the fence %q", lines[0])
		}
		for i, line := range lines[1:] {
			if strings.Contains(line, fence) != (i == len(lines)-2) {
				t.Fatalf("line %d of %q", i, lines)
			}
		}
	})
}

// TestWordsBeyondTheWindowAreNames, those of the oldest file first, and then whole turns are left out.
func TestWordsBeyondTheWindowAreNames(t *testing.T) {
	file := func(n int) assembly.File {
		return assembly.File{Name: fmt.Sprint("f", n), MimeType: "text/plain", Words: strings.Repeat("w", 500)}
	}
	turns := []assembly.Turn{asked(said(1, olivia, "old", file(1), file(2))), asked(said(2, olivia, "new", file(3), file(4)))}
	for bytes, want := range map[int]string{5000: "1 2 3 4", 2000: "2 3 4", 1300: "3 4", 700: "4", 10: ""} {
		var got []string
		messages := assembly.Assemble("echo", turns, assembly.Window{Turns: 2, Bytes: bytes}, mentions)
		text := show(messages)
		for n := range 5 {
			if strings.Contains(text, fmt.Sprintf("``` f%d\nwww", n)) {
				got = append(got, fmt.Sprint(n))
			}
		}
		if strings.Join(got, " ") != want || !strings.Contains(text, "]: new") || strings.Contains(text, "]: old") != (bytes > 10) {
			t.Errorf("in %d bytes, the words of %q\n%s", bytes, got, text)
		}
		if turns[0].Messages[0].Files[0].Words == "" {
			t.Fatal("Assemble has changed its arguments")
		}
	}
}
