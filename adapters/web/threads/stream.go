package threads

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"parley/adapters/web/exchange"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
)

const (
	// streamPage bounds the messages that a stream reads at once.
	streamPage = 50
	// lateCommit is how much later than its time a change may be committed.
	lateCommit = 10 * time.Second
)

// streamThread sends a thread's messages as they come, behind a thread_seq: GET
// /api/v1/chat/threads/{thread_id}/stream?after=&html=
//
// An edited message is sent again as the event edit, and a deleted one as the event delete. A
// reader that comes back gets the changes since its last message, maybe again.
func (c call) streamThread(w http.ResponseWriter, r *http.Request) error {
	t, err := c.thread(r)
	if err != nil {
		return err
	}
	var faults event.FieldErrors
	c.html = exchange.HTMLOf(r, &faults)
	s := chatStream{call: c, thread: &t, after: exchange.PositionOf(r, "a thread_seq: 0 or more", &faults), sent: map[int64]time.Time{}}
	if len(faults) > 0 {
		return faults
	}
	changed, stop := c.Places.FollowThread(&t)
	defer stop()
	if err := s.begin(r.Context()); err != nil {
		return err
	}
	return c.Streams.Follow(w, r, c, exchange.Source{Changed: changed, Next: s.next, May: func(ctx context.Context) error { return c.sees(ctx, &t) }})
}

// chatStream is the position of a stream in its thread.
type chatStream struct {
	call   call
	thread *threads.Thread
	after  int64     // the thread_seq of the last message
	since  time.Time // changes before it are sent
	// sent are the times of the changes since then that are sent, by thread_seq.
	sent map[int64]time.Time
}

// begin finds the time since which the reader may have missed changes: that of its last
// message.
func (s *chatStream) begin(ctx context.Context) error {
	s.since = s.call.Now().Add(-lateCommit)
	if s.after == 0 {
		return nil
	}
	last, err := s.call.Messages.ThreadMessages(ctx, s.call.Workspace, s.thread.ID, messages.Page{Before: s.after + 1, Limit: 1})
	if err == nil && len(last) > 0 && last[0].CreatedAt.Before(s.since) {
		s.since = last[0].CreatedAt
	}
	return err
}

// next returns the next messages, and the changes of those that were sent before.
func (s *chatStream) next(ctx context.Context) (events []exchange.Event, last bool, err error) {
	changes, err := s.call.Messages.ThreadChanges(ctx, s.thread, s.after, s.since, streamPage)
	if err != nil {
		return nil, false, err
	}
	for i := range changes {
		m := &changes[i]
		if at := changedAt(&m.Message); !at.Equal(s.sent[m.Seq]) {
			s.sent[m.Seq] = at
			events = append(events, s.change(ctx, m))
		}
	}
	if len(changes) > 0 {
		s.forget(changedAt(&changes[len(changes)-1].Message), messages.IsFull(changes, streamPage))
	}
	messages, err := s.call.Messages.ThreadMessages(ctx, s.call.Workspace, s.thread.ID, messages.Page{After: s.after, Limit: streamPage})
	if err != nil {
		return events, false, err
	}
	for i := range messages {
		m := &messages[i]
		s.after = m.Seq
		if at := changedAt(&m.Message); !at.IsZero() {
			s.sent[m.Seq] = at
		}
		if m.DeletedAt.IsZero() {
			events = append(events, exchange.Event{ID: strconv.FormatInt(m.Seq, 10), Data: s.call.viewChat(ctx, s.thread.ID, m)})
		}
	}
	return events, false, nil
}

// forget moves the stream behind the changes up to the newest one that was read. A full page
// means that there may be more of that time.
func (s *chatStream) forget(newest time.Time, full bool) {
	if !full {
		newest = newest.Add(-lateCommit)
	}
	if newest.After(s.since) {
		s.since = newest
	}
	for seq, at := range s.sent {
		if at.Before(s.since) {
			delete(s.sent, seq)
		}
	}
}

// change returns the event of a changed message.
func (s *chatStream) change(ctx context.Context, m *messages.Listed) exchange.Event {
	if m.DeletedAt.IsZero() {
		return exchange.Event{Kind: "edit", Data: s.call.viewChat(ctx, s.thread.ID, m)}
	}
	return exchange.Event{Kind: "delete", Data: map[string]any{"id": m.UUID, "thread_id": s.thread.ID, "thread_seq": m.Seq}}
}

// changedAt returns the time of a message's last change; zero for none.
func changedAt(m *messages.Message) time.Time {
	if m.DeletedAt.After(m.EditedAt) {
		return m.DeletedAt
	}
	return m.EditedAt
}
