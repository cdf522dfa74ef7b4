package bluebubbles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

const (
	// pageSize is the number of rows of one query.
	pageSize = 200
	// changeWindow is the age up to which a message is read again because it may have
	// changed. Messages lets people edit a message for 15 minutes.
	// https://support.apple.com/en-us/104984
	changeWindow = 20 * time.Minute
	// recentAge is the age up to which a webhook waits for the rows before its own, and the
	// server is asked for an unknown message that has changed. After its restart, the server
	// repeats the webhooks of a week.
	recentAge = 24 * time.Hour
	// maxTaken bounds the messages whose last accepted state is remembered.
	maxTaken = 10_000
	// cursorName is the name of the cursor in the workspace's state.
	cursorName = "cursor"
)

// reader is the reading of the server's rows. Each row has a number, the ROWID, and a new row
// has a greater one than all others.
type reader struct {
	busy chan struct{} // holds a value during a read

	mu sync.Mutex
	// top is the number up to which every row is accepted, or has its place before later ones,
	// as far as this process knows.
	top int64
	// taken are the last accepted states of messages, by guid. They spare the store most
	// repetitions, and show that a webhook was overtaken.
	taken map[string]state
	// chats are the guids of the chats, by the chat's name.
	chats map[string]seenGUID
}

// state is an accepted state of a message.
type state struct {
	dedupe string
	edited time.Time // of a message that is known or gone
}

// seenGUID is a chat's guid in its newest message, and the date of that message.
type seenGUID struct {
	guid string
	at   time.Time
}

func newReader() reader {
	return reader{busy: make(chan struct{}, 1), taken: map[string]state{}, chats: map[string]seenGUID{}}
}

// cursor is the position of the reading, as the workspace's state stores it.
type cursor struct {
	Row  int64 `json:"row"`  // every row up to this number was read
	Date int64 `json:"date"` // the newest date of these rows, in milliseconds since 1970
	From int64 `json:"from"` // rows up to this date are from before the first start
}

// query is the body of message/query.
type query struct {
	With   []string `json:"with"`
	Where  []where  `json:"where"`
	After  int64    `json:"after,omitempty"`
	Sort   string   `json:"sort"`
	Offset int      `json:"offset"`
	Limit  int      `json:"limit"`
}

type where struct {
	Statement string         `json:"statement"`
	Args      map[string]any `json:"args"`
}

// newerThan returns the condition that a row has a greater number.
func newerThan(row int64) []where {
	return []where{{"message.ROWID > :r", map[string]any{"r": row}}}
}

// rows calls f for each page of a query's rows, and returns the number of pages. The server
// orders rows by date.
func (a *Adapter) rows(ctx context.Context, q query, f func(page []json.RawMessage) error) (pages int, err error) {
	q.With, q.Limit = []string{"chat", "attachment", "attributedBody"}, pageSize
	if q.Where == nil {
		q.Where = []where{}
	}
	for {
		var page []json.RawMessage
		asking, cancel := context.WithTimeout(ctx, a.config.Timeout)
		err := a.call(asking, http.MethodPost, "message/query", nil, q, &page)
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

// row returns a row's envelope, which is parsed. Its body has the form of a webhook.
func (a *Adapter) row(raw json.RawMessage) event.Envelope {
	return a.envelope(event.Backfilled, fmt.Appendf(nil, `{"type":%q,"data":%s}`, payload.NewMessage, raw))
}

// envelope returns the envelope of a body, which is parsed.
func (a *Adapter) envelope(transport string, body []byte) event.Envelope {
	e := event.Envelope{Workspace: a.workspace, Platform: event.BlueBubbles, Transport: transport, ReceivedAt: a.now(), Body: body}
	e.Parsed = payload.Parse(e)
	return e
}

// readAll reads the rows that are new, and then those that may have changed. Only the first
// part lets webhooks wait.
func (a *Adapter) readAll(ctx context.Context, inbox adapters.Inbox) error {
	var before cursor
	if err := a.reading(ctx, func(c *cursor) error {
		before = *c
		if err := a.checkServer(ctx, inbox, c); err != nil {
			return err
		}
		return a.readNew(ctx, inbox, c)
	}); err != nil || before == (cursor{}) {
		return err
	}
	after := max(before.Date-changeWindow.Milliseconds(), a.since(before))
	newest := floors{query: query{After: after, Sort: "ASC"}}
	_, err := a.rows(ctx, newest.query, func(page []json.RawMessage) error {
		if err := a.find(ctx, &newest, page); err != nil {
			return err
		}
		var rows []event.Envelope
		for _, raw := range page {
			if row := a.row(raw); newest.has(payload.Parse(row)) {
				rows = append(rows, row)
			}
		}
		return a.take(ctx, inbox, rows)
	})
	return err
}

// catchUp reads the rows before a webhook's row, unless they were accepted. It waits at most
// for readWait.
func (a *Adapter) catchUp(ctx context.Context, inbox adapters.Inbox, row int64) error {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	return a.reading(ctx, func(c *cursor) error {
		if !a.reader.misses(row) { // another webhook's read was in time
			return nil
		}
		return a.readNew(ctx, inbox, c)
	})
}

// readWait bounds how long a webhook waits for the rows before its own.
const readWait = 2 * time.Second

// reading runs one read at a time with the stored cursor, and stores the cursor afterwards. The
// first read of a workspace finds the cursor and hands nothing over.
func (a *Adapter) reading(ctx context.Context, f func(c *cursor) error) error {
	select {
	case a.reader.busy <- struct{}{}:
		defer func() { <-a.reader.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	stored, err := a.state.Get(ctx, cursorName)
	if err != nil {
		return fmt.Errorf("read the cursor: %w", err)
	}
	var c cursor
	if stored == "" {
		err = a.begin(ctx, &c)
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
	if err := a.state.Put(ctx, cursorName, string(after)); err != nil {
		return fmt.Errorf("store the cursor: %w", err)
	}
	return nil
}

// begin finds the cursor of a new workspace: behind every row that the server has.
func (a *Adapter) begin(ctx context.Context, c *cursor) error {
	err := a.findEnd(ctx, c)
	c.From = c.Date
	a.reader.reached(c.Row)
	return err
}

// findEnd moves a new cursor behind every row that the server has.
func (a *Adapter) findEnd(ctx context.Context, c *cursor) error {
	skip := func(page []json.RawMessage) error {
		for _, raw := range page {
			a.see(c, payload.Parse(a.row(raw)))
		}
		return nil
	}
	var newest []json.RawMessage
	if err := a.call(ctx, http.MethodPost, "message/query", nil, query{Where: []where{}, Sort: "DESC", Limit: pageSize}, &newest); err != nil {
		return err
	}
	_ = skip(newest)
	_, err := a.rows(ctx, query{Where: newerThan(c.Row), Sort: "ASC"}, skip)
	return err
}

// see moves the cursor to a row that was read.
func (a *Adapter) see(c *cursor, p *payload.Payload) {
	c.Row = max(c.Row, p.Row)
	if !p.Created.IsZero() {
		c.Date = max(c.Date, a.date(p).UnixMilli())
	}
}

// date returns the date of a message in milliseconds. It is not in the future, although a sender's
// clock may be wrong.
func (a *Adapter) date(p *payload.Payload) time.Time {
	if now := a.now().Truncate(time.Millisecond); p.Created.After(now) {
		return now
	}
	return p.Created
}

// readNew reads all rows behind the cursor. A row that comes during the read can shift the
// pages, so it repeats a read of several pages until one finds nothing new.
func (a *Adapter) readNew(ctx context.Context, inbox adapters.Inbox, c *cursor) error {
	seen, end := map[int64]bool{}, *c
	newest := floors{query: query{Where: newerThan(c.Row), After: a.since(*c), Sort: "ASC"}}
	for {
		before := len(seen)
		pages, err := a.rows(ctx, newest.query, func(page []json.RawMessage) error {
			if err := a.find(ctx, &newest, page); err != nil {
				return err
			}
			var rows []event.Envelope
			for _, raw := range page {
				row := a.row(raw)
				if p := payload.Parse(row); p.Row == 0 || !seen[p.Row] {
					seen[p.Row] = true
					a.see(&end, p)
					if newest.has(p) {
						rows = append(rows, row)
					}
				}
			}
			return a.take(ctx, inbox, rows)
		})
		if err != nil {
			return err
		}
		if pages == 1 || len(seen) == before {
			break
		}
	}
	*c = end
	a.reader.reached(end.Row)
	return nil
}

// take hands over rows that were read.
func (a *Adapter) take(ctx context.Context, inbox adapters.Inbox, rows []event.Envelope) error {
	return cmp.Or(adapters.InOrder(ctx, len(rows), func(i int, placed func(), batch *event.Batch) error {
		rows[i].Queued, rows[i].Batch = placed, batch
		return a.accept(ctx, inbox, rows[i])
	})...)
}

// accept makes an envelope durable, unless this process has accepted the same state of its
// message last, or a later one. If it is about an unknown message, or its files came late, the server is
// asked for the message with its chat.
func (a *Adapter) accept(ctx context.Context, inbox adapters.Inbox, envelope event.Envelope) error {
	p := payload.Parse(envelope)
	if a.reader.isTaken(p) {
		return nil
	}
	if p.Chat != nil {
		a.reader.saw(p.Chat.GUID, a.date(p))
	}
	receipt, err := inbox.Accept(ctx, envelope)
	if err != nil {
		return err
	}
	waits := receipt.Waits && p.Kind == event.KindEdit
	a.reader.took(p, !waits)
	if (waits || p.HasLateFile()) && a.isRecent(p) {
		a.askMessage(ctx, inbox, p.GUID)
	}
	return nil
}

// isRecent reports whether a message is not older than recentAge, as far as its payload shows.
func (a *Adapter) isRecent(p *payload.Payload) bool {
	return p.Created.IsZero() || a.now().Sub(p.Created) < recentAge
}

// askMessage asks the server for a message and its chat, and hands it over. If that fails, the
// payload that waits for the message is ignored later.
func (a *Adapter) askMessage(ctx context.Context, inbox adapters.Inbox, guid string) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	raw, err := a.message(ctx, guid)
	if err != nil {
		return
	}
	if row := a.row(raw); payload.Parse(row).Err == nil && payload.Parse(row).Chat != nil {
		_ = a.accept(ctx, inbox, row)
	}
}

// message asks the server for a message with its chats.
func (a *Adapter) message(ctx context.Context, guid string) (row json.RawMessage, err error) {
	err = a.call(ctx, http.MethodGet, "message/"+escape(guid), url.Values{"with": {"chats,attachments"}}, nil, &row)
	if err == nil && len(row) == 0 {
		err = errors.New("the answer has no message")
	}
	return row, err
}

// misses reports whether rows before this one may not be accepted yet.
func (r *reader) misses(row int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return row > r.top+1
}

// reached notes that every row up to this one is accepted.
func (r *reader) reached(row int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.top = max(r.top, row)
}

// restart notes the greatest number of another server.
func (r *reader) restart(row int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.top = row
}

// lost notes that a row was not accepted after all.
func (r *reader) lost(row int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.top = min(r.top, row-1)
}

// follows notes that a row has its place, if it is the next one.
func (r *reader) follows(row int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if row == r.top+1 {
		r.top = row
	}
}

// saw notes the guid that a chat has in a message of a date, unless a newer message was seen.
func (r *reader) saw(guid string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := payload.ChatName(guid); !at.Before(r.chats[name].at) {
		r.chats[name] = seenGUID{guid, at}
	}
}

// guid returns the guid that a chat has in its newest message; empty for none.
func (r *reader) guid(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chats[name].guid
}

// isTaken reports whether the state of a message, or a later one, is accepted.
func (r *reader) isTaken(p *payload.Payload) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.taken[p.GUID]
	return p.GUID != "" && (p.Dedupe == last.dedupe || p.Edited.Before(last.edited))
}

// took notes that a state of a message is accepted. An earlier state may still be needed if the
// message is not known.
func (r *reader) took(p *payload.Payload, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.taken) >= maxTaken {
		clear(r.taken)
	}
	last := state{dedupe: p.Dedupe}
	if known {
		last.edited = p.Edited
	}
	r.taken[p.GUID] = last
}
