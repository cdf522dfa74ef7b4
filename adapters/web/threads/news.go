package threads

import (
	"context"
	"net/http"
	"strconv"

	"parley/adapters/web/exchange"
	"parley/ingest/event"
)

// streamNews tells a caller of the threads in which it begins to take part, as the event thread, and of
// the messages that mention it, as the event mention, behind the id of an event: GET
// /api/v1/chat/stream?after=. It tells only of threads that the caller may still read. An agent learns of
// threads that name it as a participant.
func (c call) streamNews(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	c.html = exchange.HTMLOf(r, &faults)
	s := newsReader{call: c, after: exchange.PositionOf(r, "the id of an event: 0 or more", &faults)}
	if len(faults) > 0 {
		return faults
	}
	changed, stop := c.Places.FollowNews(c.Workspace, string(c.Actor))
	defer stop()
	return c.Streams.Follow(w, r, c, exchange.Source{Changed: changed, Next: s.next})
}

// newsReader is the position of a stream in its caller's news.
type newsReader struct {
	call  call
	after int64
}

// next returns the next news. It reads on if nothing of a page can be told.
func (s *newsReader) next(ctx context.Context) (events []exchange.Event, last bool, err error) {
	c := s.call
	for len(events) == 0 {
		page, err := c.Messages.NewsOf(ctx, c.Workspace, string(c.Actor), c.Actor.IsAgent(), s.after, streamPage)
		if err != nil || len(page) == 0 {
			return nil, false, err
		}
		for i := range page {
			n := &page[i]
			id := strconv.FormatInt(n.Seq, 10)
			switch s.after = n.Seq; {
			case n.Void:
			case n.Message != nil:
				events = append(events, exchange.Event{ID: id, Kind: "mention", Data: c.viewChat(ctx, n.Thread.ID, n.Message)})
			default:
				events = append(events, exchange.Event{ID: id, Kind: "thread", Data: viewThread(&n.Thread)})
			}
		}
	}
	return events, false, nil
}
