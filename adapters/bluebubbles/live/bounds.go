package live

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/payload"
)

// checkServer finds out whether the server is another one: it has no row with the cursor's number or a
// greater one. Then the rows after the cursor's date are read, and the cursor begins at the new server's
// greatest number.
func (rc *Receiver) checkServer(ctx context.Context, inbox adapters.Inbox, c *cursor) error {
	if c.Row == 0 {
		return nil
	}
	var found []json.RawMessage
	asking, cancel := context.WithTimeout(ctx, rc.client.Timeout)
	defer cancel()
	q := call.Query{Where: call.NewerThan(c.Row - 1), Sort: "DESC", Limit: 1}
	if err := rc.client.Call(asking, http.MethodPost, "message/query", nil, q, &found); err != nil || len(found) > 0 {
		return err
	}
	var end cursor
	if err := rc.findEnd(ctx, &end); err != nil {
		return err
	}
	missed := cursor{Date: c.Date, From: max(c.From, c.Date)}
	if err := rc.readNew(ctx, inbox, &missed); err != nil {
		return err
	}
	c.Row, c.Date = max(end.Row, missed.Row), missed.Date
	rc.progress.restart(c.Row)
	return nil
}

// since returns the date, in milliseconds, from which on missed rows are handed over: after those from
// before the first start, and not older than missed messages may be. Old rows get new numbers if a Mac
// is restored, or reads its messages from iCloud.
func (rc *Receiver) since(c cursor) int64 {
	since := c.From + 1
	if wants := rc.wants.Load(); wants != nil && wants.MissedAge > 0 {
		since = max(since, rc.client.Now().Add(-wants.MissedAge).UnixMilli())
	}
	return since
}

// floors are the dates from which on missed rows of a query are handed over, by the chat's name: each chat
// that has more than may be missed gets only its newest ones.
type floors struct {
	query call.Query
	dates map[string]time.Time // nil: not known yet
}

// find finds the floors, if a page of the query's rows shows that they may matter.
func (rc *Receiver) find(ctx context.Context, f *floors, page []json.RawMessage) error {
	wants := rc.wants.Load()
	if f.dates != nil || wants == nil || wants.MissedMessages == 0 || len(page) < min(call.PageSize, wants.MissedMessages) {
		return nil
	}
	dates, count, q := map[string]time.Time{}, map[string]int{}, f.query
	q.Sort = "DESC"
	_, err := rc.client.Rows(ctx, q, func(page []json.RawMessage) error {
		for _, raw := range page {
			if p := payload.Parse(rc.client.Row(raw)); p.Chat != nil {
				name := payload.ChatName(p.Chat.GUID)
				if count[name]++; count[name] == wants.MissedMessages {
					dates[name] = p.Created
				}
			}
		}
		return nil
	})
	if err == nil {
		f.dates = dates
	}
	return err
}

// has reports whether a row is handed over.
func (f *floors) has(p *payload.Payload) bool {
	return p.Chat == nil || !p.Created.Before(f.dates[payload.ChatName(p.Chat.GUID)])
}
