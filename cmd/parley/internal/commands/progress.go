package commands

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	// quietFor is the time in which work shows no progress, because most work ends within it.
	quietFor = 2 * time.Second
	// lineEvery is the time between two lines of progress where no terminal is.
	lineEvery = 10 * time.Second
	// drawEvery is the time between two pictures of the bar on a terminal.
	drawEvery = 100 * time.Millisecond
	// barCells is the width of the bar.
	barCells = 20
)

// progress shows on stderr how far long work is: by a bar on a terminal, else by lines. Its methods
// are called by one goroutine.
type progress struct {
	out      io.Writer
	terminal bool
	width    int // of the terminal; 0: unknown
	quiet    bool
	now      func() time.Time

	mu    sync.Mutex  // of the rest, which first also uses
	first *time.Timer // draws the bar of work that tells no amounts

	what  string
	bytes bool // the amounts are bytes
	total int64
	begun time.Time
	shown time.Time // when the last line or bar was written
	done  int64
	drawn bool // a bar is on the terminal
}

// newProgress returns the progress of a command. quiet shows nothing.
func newProgress(c *cobra.Command, quiet bool) *progress {
	p := &progress{out: c.ErrOrStderr(), quiet: quiet, now: time.Now}
	if file, ok := p.out.(*os.File); ok && isTerminal(file) && os.Getenv("TERM") != "dumb" {
		p.terminal = true
		p.width, _, _ = term.GetSize(int(file.Fd())) // 0 if the terminal does not tell
	}
	return p
}

// begin begins a part of the work with a total number of bytes or other things; -1: unknown.
func (p *progress) begin(what string, total int64, bytes bool) {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.total, p.done, p.bytes = what, total, 0, bytes
	p.begun = p.now()
	p.shown = p.begun
	if p.terminal && !p.quiet {
		p.first = time.AfterFunc(quietFor, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.draw()
		})
	}
}

// at sets the number of things that are done.
func (p *progress) at(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	switch now := p.now(); {
	case p.quiet:
	case p.terminal && now.Sub(p.shown) >= drawEvery:
		p.draw()
	case !p.terminal && now.Sub(p.shown) >= lineEvery:
		p.shown = now
		fmt.Fprintln(p.out, p.line(now.Sub(p.begun)))
	}
}

// draw draws the bar in the place of the one before, unless the part has just begun.
func (p *progress) draw() {
	now := p.now()
	if now.Sub(p.begun) < quietFor {
		return
	}
	line := p.line(now.Sub(p.begun))
	if p.total > 0 {
		full := int(min(p.done, p.total) * barCells / p.total)
		line = strings.Repeat("█", full) + strings.Repeat("░", barCells-full) + " " + line
	}
	if p.width > 0 {
		line = cut(line, p.width-1)
	}
	fmt.Fprint(p.out, "\r"+line+"\x1b[K")
	p.shown, p.drawn = now, true
}

// line returns the progress in words, such as "messages: 42 %, 12,300 of 29,000, 1,230/s, 14s left".
func (p *progress) line(after time.Duration) string {
	rate := float64(p.done) / after.Seconds()
	words := p.what + ": "
	if p.done == 0 && p.total <= 0 {
		return p.what
	}
	if p.total > 0 {
		words += fmt.Sprintf("%d %%, ", min(100, p.done*100/p.total))
	}
	words += p.amount(p.done)
	if p.total > 0 {
		words += " of " + p.amount(p.total)
	}
	words += fmt.Sprintf(", %s/s", p.amount(int64(rate)))
	if p.total > 0 && rate > 0 {
		left := time.Duration(float64(max(0, p.total-p.done)) / rate * float64(time.Second))
		words += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return words
}

// amount returns a number of things or bytes.
func (p *progress) amount(n int64) string {
	if p.bytes {
		return size(n)
	}
	return humanize.Comma(n)
}

// end ends the part, and removes the bar.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first != nil {
		p.first.Stop()
	}
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.first, p.drawn = nil, false
}

// reader returns a reader that moves the progress on by each byte.
func (p *progress) reader(r io.Reader) io.Reader { return progressReader{r, p} }

type progressReader struct {
	io.Reader
	progress *progress
}

// Read implements io.Reader.
func (r progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.progress.at(r.progress.done + int64(n))
	return n, err
}
