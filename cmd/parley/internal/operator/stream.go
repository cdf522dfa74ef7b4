package operator

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"parley/adapters/sse"
	"parley/adapters/web/exchange"
	"parley/ingest/event"
)

// streamPage is the number of values of a stream that are sent together.
const streamPage = 100

// listener is an operator who reads a stream.
type listener struct {
	service *Service
	by      Caller
}

// Owner implements exchange.Listener.
func (l listener) Owner() exchange.Owner { return exchange.Owner{Token: "operator " + l.by.ID} }

// IsAdmitted implements exchange.Listener.
func (l listener) IsAdmitted() bool { return l.service.Has(l.by) }

// follow answers with the values of a ring that pick accepts, as server-sent events: first the kept
// ones, then the new ones as they come, unless follow is false in the query.
func follow[T any](s *Service, c *Call, w http.ResponseWriter, from *ring[T], pick func(T) bool) error {
	var faults event.FieldErrors
	at := exchange.PositionOf(c.request, "the number of an event", &faults)
	if len(faults) > 0 {
		return faults
	}
	woken, stop := from.wait()
	defer stop()
	once := c.Query("follow") == "false"
	next := func(context.Context) (events []exchange.Event, last bool, err error) {
		for {
			values, end := from.after(at, streamPage)
			at = end
			for i, v := range values {
				if pick(v) {
					events = append(events, exchange.Event{ID: strconv.FormatInt(end-int64(len(values)-1-i), 10), Data: v})
				}
			}
			if len(events) > 0 || len(values) == 0 {
				return events, once && len(values) == 0, nil
			}
		}
	}
	return s.Live.Streams.Follow(w, c.request, listener{s, c.By}, exchange.Source{Changed: woken, Next: next})
}

// Stream calls each with the data of every event of a stream, until the stream or ctx ends or each
// fails.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, each func(data []byte) error) error {
	response, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for events := sse.NewReader(response.Body, 1<<20); ; {
		e, err := events.Next()
		switch {
		case err == io.EOF, err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := each(e.Data); err != nil {
			return err
		}
	}
}

// Follow is Stream for events of a type.
func Follow[T any](ctx context.Context, c *Client, path string, query url.Values, each func(T) error) error {
	return c.Stream(ctx, path, query, func(data []byte) error {
		var value T
		if err := json.Unmarshal(data, &value); err != nil {
			return err
		}
		return each(value)
	})
}
