package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// longestLine bounds a line of a stream and an event, in bytes.
const longestLine = 1 << 20

var (
	errFlood    = errors.New("more bytes than max_bytes allows")
	errLongLine = errors.New("an event of more than 1 MiB")
)

// bounded is a body of bounded length that calls first after every read of data.
type bounded struct {
	io.ReadCloser
	left  int64
	first func()
}

// Read fails with errFlood beyond the limit.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.first()
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errFlood
	}
	return n, err
}

// events reads server-sent events. It uses only their data.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type events struct {
	lines *bufio.Scanner
	data  []byte
}

func newEvents(body io.Reader) *events {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longestLine)
	return &events{lines: lines}
}

// next returns the data of the next event. The data is valid until the next call. At the
// stream's end, next returns io.EOF; data before the end counts even without an empty line
// after it.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if len(line) == 0 && len(e.data) > 0 {
			return e.data[:len(e.data)-1], nil
		}
		name, value, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("\ufeff")), []byte(":"))
		if string(name) != "data" {
			continue
		}
		e.data = append(append(e.data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		if len(e.data) > longestLine {
			return nil, errLongLine
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, errLongLine
	case err != nil:
		return nil, err
	case len(e.data) > 0:
		return e.data[:len(e.data)-1], nil
	}
	return nil, io.EOF
}
