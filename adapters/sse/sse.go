// Package sse reads server-sent events: the answers of agents, and the streams of our own API.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrLong says that an event is longer than its reader's bound.
var ErrLong = errors.New("the event is too long")

// Event is one server-sent event.
type Event struct {
	ID   string // of this event; empty for none
	Name string // of this event; empty for none
	Data []byte
	// Cut says that the event is too long, and that Data is only its beginning. Only a Reader with
	// Cuts returns such an event.
	Cut bool
}

// Reader reads server-sent events. A line ends at LF or CRLF; the standard's
// third form, CR alone, is a part of the line.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type Reader struct {
	// Cuts makes Next return the beginning of an event that is too long, instead of ErrLong.
	Cuts bool

	body    *bufio.Reader
	longest int // bytes of an event
	line    []byte
	name    string // the last one
	event   Event
}

// NewReader returns a reader of a body. Longest bounds the bytes of one event.
func NewReader(body io.Reader, longest int) *Reader {
	return &Reader{body: bufio.NewReaderSize(body, 16<<10), longest: longest}
}

// Next returns the next event with data. At the stream's end it returns io.EOF; data before
// the end counts even without an empty line after it.
func (r *Reader) Next() (Event, error) {
	r.event = Event{}
	hasData := false
	for {
		err := r.readLine()
		switch {
		case err == io.EOF && hasData, err == nil && len(r.line) == 0 && hasData:
			return r.event, nil
		case err != nil:
			return Event{}, err
		}
		name, value, _ := bytes.Cut(r.line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			r.event.ID = string(value)
		case "event":
			if string(value) != r.name { // most events of a stream have the same one
				r.name = string(value)
			}
			r.event.Name = r.name
		case "data":
			r.add(value, hasData)
			hasData = true
		case "error": // a llama.cpp server ends its stream so
			r.add(fmt.Appendf(nil, `{"error":%s}`, value), hasData)
			hasData = true
		}
		if r.event.Cut && !r.Cuts {
			return Event{}, ErrLong
		}
	}
}

// readLine reads the next line without the line break. It looks at each byte once, however the body is cut
// into pieces. The rest of a line that is too long is left out.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	for {
		part, err := r.body.ReadSlice('\n')
		room := r.longest + len("data: \r\n") - len(r.line)
		if len(part) > room {
			if part, r.event.Cut = part[:room], true; !r.Cuts {
				return ErrLong
			}
		}
		r.line = append(r.line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && (err != io.EOF || len(r.line) == 0):
			return err
		}
		line := bytes.TrimSuffix(bytes.TrimSuffix(r.line, []byte("\n")), []byte("\r"))
		r.line = bytes.TrimPrefix(line, []byte("\ufeff")) // the first line may begin with it
		return nil
	}
}

// add adds a line of data, which goes on if it is not the event's first one.
func (r *Reader) add(line []byte, goesOn bool) {
	if goesOn {
		r.event.Data = append(r.event.Data, '\n')
	}
	room := max(0, r.longest-len(r.event.Data))
	r.event.Data, r.event.Cut = append(r.event.Data, line[:min(len(line), room)]...), r.event.Cut || len(line) > room
}
