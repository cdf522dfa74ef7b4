package chat

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Keys of a terminal in raw mode.
const (
	keyInterrupt  = 0x03 // Ctrl-C
	keyDeleteLine = 0x15 // Ctrl-U
	// lineMark shows a line end of a pasted block, which is edited as one line.
	lineMark = "⏎"
)

var pasteStart, pasteEnd = []byte("\x1b[200~"), []byte("\x1b[201~")

// Editor lets a person edit and recall lines at a terminal. It shows a pasted block as one line, with lineMark for each line end. Text
// written to the Editor appears above the line that the person types.
type Editor struct {
	*term.Terminal
	// Interrupts gets each Ctrl-C, which also empties the line.
	Interrupts <-chan os.Signal
}

// NewEditor returns an editor that reads the keys of a terminal in raw mode and writes to its screen.
func NewEditor(keys io.Reader, screen io.Writer) *Editor {
	interrupts := make(chan os.Signal, 2)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keyFilter{keys: keys, interrupts: interrupts}, screen}, "")
	t.SetBracketedPasteMode(true)
	return &Editor{t, interrupts}
}

// SetWidth sets the columns of the terminal. The prompt takes some of them in the first row.
func (e *Editor) SetWidth(columns int, prompt string) {
	_ = e.SetSize(max(columns-len(prompt), 1), 1) // a failure to paint shows at the next line
}

// Next returns the next question. A pasted block with its lines is one.
func (e *Editor) Next() (string, error) {
	line, err := e.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return strings.ReplaceAll(line, lineMark, "\n"), err
}

// keyFilter takes Ctrl-C out of the keys, and marks the line ends of a pasted block.
type keyFilter struct {
	keys       io.Reader
	interrupts chan<- os.Signal
	pasting    bool
	rest       []byte // filtered
	held       []byte // may be the beginning of the sequence that begins or ends a block
}

func (f *keyFilter) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		raw := make([]byte, 4096)
		n, err := f.keys.Read(raw)
		if err != nil {
			return 0, err
		}
		f.filter(append(f.held, raw[:n]...))
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// filter adds keys to the rest.
func (f *keyFilter) filter(keys []byte) {
	f.held = nil
	for i := 0; i < len(keys); i++ {
		left := keys[i:]
		switch key := keys[i]; {
		case bytes.HasPrefix(left, pasteStart), bytes.HasPrefix(left, pasteEnd):
			f.pasting = bytes.HasPrefix(left, pasteStart)
			f.rest = append(f.rest, left[:len(pasteStart)]...)
			i += len(pasteStart) - 1
		case len(left) > 2 && (bytes.HasPrefix(pasteStart, left) || bytes.HasPrefix(pasteEnd, left)):
			f.held = bytes.Clone(left)
			return
		case f.pasting && key == '\r' && len(left) > 1 && left[1] == '\n':
		case f.pasting && (key == '\r' || key == '\n'):
			f.rest = append(f.rest, lineMark...)
		case !f.pasting && key == keyInterrupt:
			select {
			case f.interrupts <- os.Interrupt:
			default: // two wait, which end the chat
			}
			f.rest = append(f.rest, keyDeleteLine)
		default:
			f.rest = append(f.rest, key)
		}
	}
}
