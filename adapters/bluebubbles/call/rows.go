package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// PageSize is the number of rows of one page.
const PageSize = 200

// Query is the body of message/query.
type Query struct {
	With   []string `json:"with"`
	Where  []Where  `json:"where"`
	After  int64    `json:"after,omitempty"`
	Sort   string   `json:"sort"`
	Offset int      `json:"offset"`
	Limit  int      `json:"limit"`
}

// Where is a condition of a Query.
type Where struct {
	Statement string         `json:"statement"`
	Args      map[string]any `json:"args"`
}

// NewerThan returns the condition that a row has a greater number.
func NewerThan(row int64) []Where {
	return []Where{{"message.ROWID > :r", map[string]any{"r": row}}}
}

// Rows calls f for each page of a query's rows, and returns the number of pages. The server
// orders rows by date.
func (c *Client) Rows(ctx context.Context, q Query, f func(page []json.RawMessage) error) (pages int, err error) {
	q.With, q.Limit = []string{"chat", "attachment", "attributedBody"}, PageSize
	if q.Where == nil {
		q.Where = []Where{}
	}
	for {
		var page []json.RawMessage
		asking, cancel := context.WithTimeout(ctx, c.Timeout)
		err := c.Call(asking, http.MethodPost, "message/query", nil, q, &page)
		cancel()
		if err != nil {
			return pages, err
		}
		if err := f(page); err != nil {
			return pages, err
		}
		pages++
		if len(page) < q.Limit {
			return pages, nil
		}
		q.Offset += len(page)
	}
}

// Row returns a row's envelope, which is parsed. Its body has the form of a webhook.
func (c *Client) Row(raw json.RawMessage) event.Envelope {
	return c.Envelope(event.Backfilled, fmt.Appendf(nil, `{"type":%q,"data":%s}`, payload.NewMessage, raw))
}

// Envelope returns the envelope of a body, which is parsed.
func (c *Client) Envelope(transport string, body []byte) event.Envelope {
	e := event.Envelope{Workspace: c.Workspace, Platform: event.BlueBubbles, Transport: transport, ReceivedAt: c.Now(), Body: body}
	e.Parsed = payload.Parse(e)
	return e
}

// Message asks the server for a message with its chats.
func (c *Client) Message(ctx context.Context, guid string) (row json.RawMessage, err error) {
	err = c.Call(ctx, http.MethodGet, "message/"+Escape(guid), url.Values{"with": {"chats,attachments"}}, nil, &row)
	if err == nil && len(row) == 0 {
		err = errors.New("the answer has no message")
	}
	return row, err
}
