package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

const (
	// changeWindow is the age up to which a message is read again because it may have
	// changed. Messages lets people edit a message for 15 minutes.
	// https://support.apple.com/en-us/104984
	changeWindow = 20 * time.Minute
	// cursorName is the name of the cursor in the workspace's state.
	cursorName = "cursor"
)

// cursor is the position of the reading, as the workspace's state stores it.
type cursor struct {
	Row  int64 `json:"row"`  // every row up to this number was read
	Date int64 `json:"date"` // the newest date of these rows, in milliseconds since 1970
	From int64 `json:"from"` // rows up to this date are from before the first start
}

// readAll reads the rows that are new, and then those that may have changed. Only the first
// part lets webhooks wait.
func (rc *Receiver) readAll(ctx context.Context, inbox adapters.Inbox) error {
	var before cursor
	if err := rc.reading(ctx, func(c *cursor) error {
		before = *c
		if err := rc.checkServer(ctx, inbox, c); err != nil {
			return err
		}
		return rc.readNew(ctx, inbox, c)
	}); err != nil || before == (cursor{}) {
		return err
	}
	after := max(before.Date-changeWindow.Milliseconds(), rc.since(before))
	newest := floors{query: call.Query{After: after, Sort: "ASC"}}
	_, err := rc.client.Rows(ctx, newest.query, func(page []json.RawMessage) error {
		if err := rc.find(ctx, &newest, page); err != nil {
			return err
		}
		var rows []event.Envelope
		for _, raw := range page {
			if row := rc.client.Row(raw); newest.has(payload.Parse(row)) {
				rows = append(rows, row)
			}
		}
		return rc.take(ctx, inbox, rows)
	})
	return err
}

// catchUp reads the rows before a webhook's row, unless they were accepted. It waits at most
// for readWait.
func (rc *Receiver) catchUp(ctx context.Context, inbox adapters.Inbox, row int64) error {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	return rc.reading(ctx, func(c *cursor) error {
		if !rc.progress.misses(row) { // another webhook's read was in time
			return nil
		}
		return rc.readNew(ctx, inbox, c)
	})
}

// readWait bounds how long a webhook waits for the rows before its own.
const readWait = 2 * time.Second

// reading runs one read at a time with the stored cursor, and stores the cursor afterwards. The
// first read of a workspace finds the cursor and hands nothing over.
func (rc *Receiver) reading(ctx context.Context, f func(c *cursor) error) error {
	select {
	case rc.progress.busy <- struct{}{}:
		defer func() { <-rc.progress.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	stored, err := rc.state.Get(ctx, cursorName)
	if err != nil {
		return fmt.Errorf("read the cursor: %w", err)
	}
	var c cursor
	if stored == "" {
		err = rc.begin(ctx, &c)
	} else if err = json.Unmarshal([]byte(stored), &c); err == nil {
		err = f(&c)
	}
	if err != nil {
		return err
	}
	after, err := json.Marshal(c)
	if err != nil || string(after) == stored {
		return err
	}
	if err := rc.state.Put(ctx, cursorName, string(after)); err != nil {
		return fmt.Errorf("store the cursor: %w", err)
	}
	return nil
}

// begin finds the cursor of a new workspace: behind every row that the server has.
func (rc *Receiver) begin(ctx context.Context, c *cursor) error {
	err := rc.findEnd(ctx, c)
	c.From = c.Date
	rc.progress.reached(c.Row)
	return err
}

// findEnd moves a new cursor behind every row that the server has.
func (rc *Receiver) findEnd(ctx context.Context, c *cursor) error {
	skip := func(page []json.RawMessage) error {
		for _, raw := range page {
			rc.see(c, payload.Parse(rc.client.Row(raw)))
		}
		return nil
	}
	var newest []json.RawMessage
	if err := rc.client.Call(ctx, http.MethodPost, "message/query", nil, call.Query{Where: []call.Where{}, Sort: "DESC", Limit: call.PageSize}, &newest); err != nil {
		return err
	}
	_ = skip(newest)
	_, err := rc.client.Rows(ctx, call.Query{Where: call.NewerThan(c.Row), Sort: "ASC"}, skip)
	return err
}

// see moves the cursor to a row that was read.
func (rc *Receiver) see(c *cursor, p *payload.Payload) {
	c.Row = max(c.Row, p.Row)
	if !p.Created.IsZero() {
		c.Date = max(c.Date, rc.date(p).UnixMilli())
	}
}

// date returns the date of a message in milliseconds. It is not in the future, although a sender's
// clock may be wrong.
func (rc *Receiver) date(p *payload.Payload) time.Time {
	if now := rc.client.Now().Truncate(time.Millisecond); p.Created.After(now) {
		return now
	}
	return p.Created
}

// readNew reads all rows behind the cursor. A row that comes during the read can shift the
// pages, so it repeats a read of several pages until one finds nothing new.
func (rc *Receiver) readNew(ctx context.Context, inbox adapters.Inbox, c *cursor) error {
	seen, end := map[int64]bool{}, *c
	newest := floors{query: call.Query{Where: call.NewerThan(c.Row), After: rc.since(*c), Sort: "ASC"}}
	for {
		before := len(seen)
		pages, err := rc.client.Rows(ctx, newest.query, func(page []json.RawMessage) error {
			if err := rc.find(ctx, &newest, page); err != nil {
				return err
			}
			var rows []event.Envelope
			for _, raw := range page {
				row := rc.client.Row(raw)
				if p := payload.Parse(row); p.Row == 0 || !seen[p.Row] {
					seen[p.Row] = true
					rc.see(&end, p)
					if newest.has(p) {
						rows = append(rows, row)
					}
				}
			}
			return rc.take(ctx, inbox, rows)
		})
		if err != nil {
			return err
		}
		if pages == 1 || len(seen) == before {
			break
		}
	}
	*c = end
	rc.progress.reached(end.Row)
	return nil
}
