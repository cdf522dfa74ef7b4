package commands

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

const (
	// quietFor is the time in which work shows no progress, because most work ends within it.
	quietFor = 2 * time.Second
	// lineEvery is the time between two lines of progress where no terminal is.
	lineEvery = 10 * time.Second
)

// progress shows on stderr how far long work is: by a bar on a terminal, else by lines. Its methods
// are called by one goroutine.
type progress struct {
	out      io.Writer
	terminal bool
	quiet    bool
	now      func() time.Time

	what  string
	bytes bool // the amounts are bytes
	total int64
	begun time.Time
	shown time.Time // when the last line was written
	done  int64
	bar   *progressbar.ProgressBar
}

// newProgress returns the progress of a command. quiet shows nothing.
func newProgress(c *cobra.Command, quiet bool) *progress {
	file, isFile := c.ErrOrStderr().(*os.File)
	return &progress{out: c.ErrOrStderr(), terminal: isFile && isatty.IsTerminal(file.Fd()) && os.Getenv("TERM") != "dumb", quiet: quiet, now: time.Now}
}

// begin begins a part of the work with a total number of bytes or other things; -1: unknown.
func (p *progress) begin(what string, total int64, bytes bool) {
	p.end()
	p.what, p.total, p.done, p.bytes = what, total, 0, bytes
	p.begun = p.now()
	p.shown = p.begun
	if p.terminal && !p.quiet {
		p.bar = p.newBar()
	}
}

// at sets the number of things that are done.
func (p *progress) at(done int64) {
	p.done = done
	now := p.now()
	switch {
	case p.bar != nil && p.total > 0:
		_ = p.bar.Set64(min(done, p.total)) // it refuses more; an error is one of the terminal
	case p.bar != nil:
		_ = p.bar.Set64(done)
	case p.quiet:
	case now.Sub(p.shown) >= lineEvery:
		p.shown = now
		fmt.Fprintln(p.out, p.line(now.Sub(p.begun)))
	}
}

// newBar returns the bar of the present part, which is invisible for quietFor.
func (p *progress) newBar() *progressbar.ProgressBar {
	things := "/s"
	if p.bytes {
		things = ""
	}
	return progressbar.NewOptions64(p.total, progressbar.OptionSetWriter(late{p}), progressbar.OptionSetDescription(p.what),
		progressbar.OptionShowBytes(p.bytes), progressbar.OptionShowTotalBytes(p.total > 0), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(things), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(20), progressbar.OptionUseANSICodes(true))
}

// late drops what is written in the first time of a part.
type late struct{ *progress }

// Write implements io.Writer.
func (l late) Write(b []byte) (int, error) {
	if l.now().Sub(l.begun) < quietFor {
		return len(b), nil
	}
	return l.out.Write(b)
}

// line returns the progress in words, such as "messages: 42 %, 12,300 of 29,000, 1,230/s, 14s left".
func (p *progress) line(after time.Duration) string {
	rate := float64(p.done) / after.Seconds()
	words := p.what + ": "
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
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
		p.bar = nil
	}
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
