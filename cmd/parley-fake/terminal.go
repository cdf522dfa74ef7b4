package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
)

// terminal prints lines from several goroutines, and reads the typed lines.
type terminal struct {
	mu  sync.Mutex
	out io.Writer
}

func (t *terminal) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// eachLine calls do for each typed line, without the spaces around it. It returns at the
// line "quit", at the end of the input, and when ctx ends. It does not interrupt a read of
// the input.
func eachLine(ctx context.Context, in io.Reader, do func(line string)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case lines <- strings.TrimSpace(scanner.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case line, more := <-lines:
			if !more || line == "quit" {
				return
			}
			do(line)
		}
	}
}

// oneLine replaces the line ends in a text by a visible sign.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ ") }
