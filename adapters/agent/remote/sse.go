package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// longestLine bounds a line of a stream and an event, in bytes.
const longestLine = 1 << 20

var (
	errFlood      = errors.New("more bytes than max_bytes allows")
	errLongLine   = errors.New("an event of more than 1 MiB")
	errManyEvents = fmt.Errorf("more than %d events", maxEvents)
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

// Event is one server-sent event.
type Event struct {
	ID   string // the last id of the stream so far; empty for none
	Data []byte
}

// events reads server-sent events. It ignores their names. A line ends at LF or CRLF; the standard's
// third form, CR alone, is a part of the line.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type events struct {
	lines *bufio.Scanner
	id    string
	data  []byte
}

func newEvents(body io.Reader) *events {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, longestLine)
	return &events{lines: lines}
}

// next returns the next event with data. At the stream's end it returns io.EOF; data before
// the end counts even without an empty line after it.
func (e *events) next() (Event, error) {
	e.data = nil
	for e.lines.Scan() {
		line := bytes.TrimPrefix(e.lines.Bytes(), []byte("\ufeff")) // the first line may begin with it
		if len(line) == 0 && len(e.data) > 0 {
			return e.event(), nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			e.id = string(value)
		case "data":
			e.data = append(append(e.data, value...), '\n')
		}
		if len(e.data) > longestLine {
			return Event{}, errLongLine
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Event{}, errLongLine
	case err != nil:
		return Event{}, err
	case len(e.data) > 0:
		return e.event(), nil
	}
	return Event{}, io.EOF
}

func (e *events) event() Event { return Event{e.id, e.data[:len(e.data)-1]} }
