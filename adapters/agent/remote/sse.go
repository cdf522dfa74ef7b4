package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var (
	errFlood      = errors.New("more bytes than max_bytes allows")
	errLongEvent  = errors.New("an event that is longer than max_bytes allows")
	errManyEvents = fmt.Errorf("more than %d events", maxEvents)
)

// longestEvent returns the bound of one event, in bytes. Escapes may double a text of maxBytes, and
// the event's other members have the rest.
func longestEvent(maxBytes int64) int { return int(2*maxBytes + 1<<20) }

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
	ID   string // of this event; empty for none
	Name string // of this event; empty for none
	Data []byte
	// Cut says that the event is too long, and that Data is only its beginning. An agent gets such
	// an event if it asks for it with Response.TakeCut. For others the event is an error.
	Cut bool
}

// IsNote reports whether an event that is not readable is a sign of life, such as a ping with a text as its data.
func (e Event) IsNote() bool {
	return e.Name != "" && e.Name != "error" && e.Name != "message" && bytes.IndexAny(bytes.TrimSpace(e.Data), "{[") != 0
}

// events reads server-sent events. A line ends at LF or CRLF; the standard's
// third form, CR alone, is a part of the line.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type events struct {
	body    *bufio.Reader
	longest int // bytes of an event
	cuts    bool
	line    []byte
	event   Event
}

func newEvents(body io.Reader, longest int, cuts bool) *events {
	return &events{body: bufio.NewReaderSize(body, 16<<10), longest: longest, cuts: cuts}
}

// next returns the next event with data. At the stream's end it returns io.EOF; data before
// the end counts even without an empty line after it.
func (e *events) next() (Event, error) {
	e.event = Event{}
	hasData := false
	for {
		err := e.readLine()
		switch {
		case err == io.EOF && hasData, err == nil && len(e.line) == 0 && hasData:
			return e.event, nil
		case err != nil:
			return Event{}, err
		}
		name, value, _ := bytes.Cut(e.line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			e.event.ID = string(value)
		case "event":
			e.event.Name = string(value)
		case "data":
			e.add(value, hasData)
			hasData = true
		case "error": // a llama.cpp server ends its stream so
			e.add(fmt.Appendf(nil, `{"error":%s}`, value), hasData)
			hasData = true
		}
		if e.event.Cut && !e.cuts {
			return Event{}, errLongEvent
		}
	}
}

// readLine reads the next line without the line break. It looks at each byte once, however the body is cut
// into pieces. The rest of a line that is too long is left out.
func (e *events) readLine() error {
	e.line = e.line[:0]
	for {
		part, err := e.body.ReadSlice('\n')
		room := e.longest + len("data: \r\n") - len(e.line)
		if len(part) > room {
			if part, e.event.Cut = part[:room], true; !e.cuts {
				return errLongEvent
			}
		}
		e.line = append(e.line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && (err != io.EOF || len(e.line) == 0):
			return err
		}
		line := bytes.TrimSuffix(bytes.TrimSuffix(e.line, []byte("\n")), []byte("\r"))
		e.line = bytes.TrimPrefix(line, []byte("\ufeff")) // the first line may begin with it
		return nil
	}
}

// add adds a line of data, which goes on if it is not the event's first one.
func (e *events) add(line []byte, goesOn bool) {
	if goesOn {
		e.event.Data = append(e.event.Data, '\n')
	}
	room := max(0, e.longest-len(e.event.Data))
	e.event.Data, e.event.Cut = append(e.event.Data, line[:min(len(line), room)]...), e.event.Cut || len(line) > room
}

// objects returns the event as several, if its lines are several complete JSON values, perhaps with an
// end mark behind them.
func (e Event) objects() []Event {
	if e.Cut || !bytes.Contains(e.Data, []byte("\n")) || json.Valid(e.Data) {
		return []Event{e}
	}
	var list []Event
	for decoder := json.NewDecoder(bytes.NewReader(e.Data)); ; {
		begin := decoder.InputOffset()
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			if rest := bytes.TrimSpace(e.Data[begin:]); len(rest) > 0 {
				list = append(list, Event{ID: e.ID, Name: e.Name, Data: rest})
			}
			return list
		}
		list = append(list, Event{ID: e.ID, Name: e.Name, Data: value})
	}
}
