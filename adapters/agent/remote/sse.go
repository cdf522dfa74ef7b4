package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"parley/adapters/sse"
)

var (
	errFlood      = errors.New("more bytes than max_bytes allows")
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

// paced is the body of a stream. Before each read, the answer emits the text of the events so far, which have arrived
// together, and the next ones gather until the next chunk is due. So a stream of tokens costs a read for each chunk and not
// for each token.
type paced struct {
	response *Response
	answer   *Answer
	err      error // of the answer's emit
}

func (p *paced) Read(b []byte) (int, error) {
	if !p.answer.done { // the text of the last events belongs to the last chunk
		if p.err = p.answer.grown(); p.err != nil {
			return 0, p.err
		}
		rest(p.answer.last)
	}
	return p.response.Body.Read(b)
}

// rest waits until the next chunk is due after the last one. All answers wake at the same multiples of interval, so that
// the process can sleep between them: it wakes as often for many streams as for one. No end of a run is worth a wake for itself.
func rest(last time.Time) {
	if now := time.Now(); now.Sub(last) < interval {
		due := last.Add(interval / 2).Truncate(interval).Add(interval)
		time.Sleep(due.Sub(now))
	}
}

// Event is one server-sent event of an agent. An agent gets one that is cut if it asks for it with Response.TakeCut. For
// others the event is an error.
type Event = sse.Event

// IsNote reports whether an event that is not readable is a sign of life, such as a ping with a text as its data.
func IsNote(e Event) bool {
	return e.Name != "" && e.Name != "error" && e.Name != "message" && bytes.IndexAny(bytes.TrimSpace(e.Data), "{[") != 0
}

// objects returns an event as several, if its lines are several complete JSON values, perhaps with an
// end mark behind them.
func objects(e Event) []Event {
	if e.Cut || json.Valid(e.Data) {
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
