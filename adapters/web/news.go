package web

import (
	"context"
	"net/http"
	"strconv"

	"parley/ingest/event"
)

// StreamNews tells a caller of the threads in which it begins to take part, as the event thread, and of
// the messages that mention it, as the event mention, behind the id of an event: GET
// /api/v1/chat/stream?after=. It tells only of threads that the caller may still read. An agent learns of
// threads that name it as a participant.
func (c Call) StreamNews(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	s := newsReader{call: c, after: positionOf(r, "the id of an event: 0 or more", &faults)}
	if len(faults) > 0 {
		return faults
	}
	changed, stop := c.Store.FollowNews(c.Workspace, string(c.Actor))
	defer stop()
	return c.follow(w, r, source{changed: changed, next: s.next})
}

// newsReader is the position of a stream in its caller's news.
type newsReader struct {
	call  Call
	after int64
}

// next returns the next news. It reads on if nothing of a page can be told.
func (s *newsReader) next(ctx context.Context) (events []sent, last bool, err error) {
	c := s.call
	for len(events) == 0 {
		page, err := c.Store.NewsOf(ctx, c.Workspace, string(c.Actor), c.Actor.IsAgent(), s.after, streamPage)
		if err != nil || len(page) == 0 {
			return nil, false, err
		}
		for i := range page {
			n := &page[i]
			id := strconv.FormatInt(n.Seq, 10)
			switch s.after = n.Seq; {
			case n.Void:
			case n.Message != nil:
				events = append(events, sent{id, "mention", c.viewChat(ctx, n.Thread.ID, n.Message)})
			default:
				events = append(events, sent{id, "thread", viewThread(&n.Thread)})
			}
		}
	}
	return events, false, nil
}

// positionOf reads the position at which a stream begins: that of Last-Event-ID, or else after.
func positionOf(r *http.Request, words string, faults *event.FieldErrors) int64 {
	name, given := "after", r.URL.Query().Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		name, given = "Last-Event-ID", id
	}
	if given == "" {
		return 0
	}
	n, err := strconv.ParseInt(given, 10, 64)
	faults.Check(err == nil && n >= 0, name, "must be "+words)
	return n
}
