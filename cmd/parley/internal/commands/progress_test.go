package commands

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/player"
	"parley/ingest/event"
)

// TestProgressInLines is silent at first, and then prints a line every ten seconds with the rate and the rest.
func TestProgressInLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Now()
	p := &progress{out: &out, now: func() time.Time { return now }}
	p.begin("importing messages", 30_000, false)
	for second := int64(1); second <= 20; second++ {
		now = now.Add(time.Second)
		p.at(second * 1000)
	}
	p.begin("reading back", -1, true)
	now = now.Add(10 * time.Second)
	if _, err := io.Copy(io.Discard, p.reader(strings.NewReader(strings.Repeat("x", 50_000)))); err != nil {
		t.Fatal(err)
	}
	p.end()
	const want = "importing messages: 33 %, 10,000 of 30,000, 1,000/s, 20s left\nimporting messages: 66 %, 20,000 of 30,000, 1,000/s, 10s left\n" +
		"reading back: 8.2 kB, 819 B/s\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// TestProgressOfAReplay counts the lines of all recordings.
func TestProgressOfAReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "hello.json", hello)
	write(t, dir, "lines.jsonl", `{"platform":"slack","body":`+hello+"}\n\nno JSON\n")
	files := []string{filepath.Join(dir, "hello.json"), filepath.Join(dir, "lines.jsonl")}
	var out strings.Builder
	now := time.Now()
	p := &progress{out: &out, now: func() time.Time { now = now.Add(lineEvery); return now }}
	c := &cobra.Command{}
	c.SetOut(io.Discard)
	c.SetContext(t.Context())
	if err := play(c, "", player.Recording{Files: files, Platform: event.Slack}, p); err != nil {
		t.Fatal(err)
	}
	const want = "replaying: 33 %, 1 of 3, 0/s, 20s left\nreplaying: 66 %, 2 of 3, 0/s, 10s left\nreplaying: 100 %, 3 of 3, 0/s, 0s left\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
	if n := countLines(append(files, os.DevNull)); n != -1 {
		t.Errorf("%d lines, of which some can't be read twice", n)
	}
}

// TestProgressOnATerminal draws a bar after two seconds, and removes it at the end.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Now()
	p := &progress{out: &out, terminal: true, now: func() time.Time { return now }}
	p.begin("importing messages", 100, false)
	p.at(10)
	if out.Len() != 0 {
		t.Errorf("at once: %q", out.String())
	}
	now = now.Add(3 * time.Second)
	p.at(25)
	now = now.Add(time.Millisecond)
	p.at(26) // too early for another picture
	p.begin("checking lines", -1, false)
	now = now.Add(4 * time.Second)
	p.at(5000)
	p.end()
	const want = "\r█████░░░░░░░░░░░░░░░ importing messages: 25 %, 25 of 100, 8/s, 9s left\x1b[K\r\x1b[K" + "\rchecking lines: 5,000, 1,250/s\x1b[K\r\x1b[K"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
	p.quiet = true
	p.begin("silent", 100, false)
	p.at(50)
	p.end()
	if strings.Contains(out.String(), "silent") {
		t.Errorf("quiet: %q", out.String())
	}
}
