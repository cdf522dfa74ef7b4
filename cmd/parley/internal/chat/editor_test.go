package chat_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"parley/cmd/parley/internal/chat"
)

// TestEditor types keys as a terminal in raw mode sends them.
func TestEditor(t *testing.T) {
	in, keys := io.Pipe()
	e := chat.NewEditor(in, io.Discard)
	e.SetWidth(40, "> ")
	for _, c := range []struct {
		name, keys, want string
	}{
		{"the cursor goes back", "ac\x1b[Db\r", "abc"},
		{"an earlier line comes again", "second\r\x1b[A\x1b[A!\r", "second"},
		{"the recalled one is changed", "", "abc!"},
		{"a block is one question", "see: \x1b[200~one\r\n\ttwo\nthree\x1b[201~ end\r", "see: one\n\ttwo\nthree end"},
		{"Ctrl-C empties the line", "gone\x03kept\r", "kept"},
		{"the sequence of a block comes in parts", "\x1b[20§0~x\ry\x1b[201~\r", "x\ny"},
	} {
		go func() {
			for _, part := range strings.Split(c.keys, "§") {
				_, _ = io.WriteString(keys, part)
			}
		}()
		if got, err := e.Next(); err != nil || got != c.want {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.want)
		}
	}
	if got := <-e.Interrupts; got != os.Interrupt {
		t.Error(got)
	}
	go func() { _, _ = io.WriteString(keys, "\x04") }()
	if got, err := e.Next(); err != io.EOF {
		t.Errorf("Ctrl-D: %q %v", got, err)
	}
}
