package threads

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/adapters/web/exchange"
	"parley/assembly/workstream"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
)

const (
	// streamPage bounds the messages that a stream reads at once.
	streamPage = 50
	// lateCommit is how much later than its time a change may be committed.
	lateCommit = 10 * time.Second
)

// streamThread sends a thread's messages as they come, behind a thread_seq: GET
// /api/v1/chat/threads/{thread_id}/stream?after=&html=&work=
//
// With work=true it also tells of the run that goes on, as the event run, and of the workstreams that were launched from the thread, as
// the event workstream: when the stream begins, and after each change.
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
	c.work = workOf(r, &faults)
	s := chatStream{call: c, thread: &t, after: exchange.PositionOf(r, "a thread_seq: 0 or more", &faults), sent: map[int64]time.Time{}, told: map[string]string{}}
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

// workOf reads from the query whether the caller wants the work of the thread.
func workOf(r *http.Request, faults *event.FieldErrors) bool {
	work := r.URL.Query().Get("work")
	faults.Check(work == "" || work == "true" || work == "false", "work", "must be true or false")
	return work == "true"
}

// chatStream is the position of a stream in its thread.
type chatStream struct {
	call   call
	thread *threads.Thread
	after  int64     // the thread_seq of the last message
	since  time.Time // changes before it are sent
	// sent are the times of the changes since then that are sent, by thread_seq.
	sent map[int64]time.Time

	told  map[string]string // what was told of each workstream, by its launch_id
	run   string            // the run that was told last
	ended time.Time         // workstreams that ended before it are not told of
}

// begin finds the time since which the reader may have missed changes: that of its last
// message.
func (s *chatStream) begin(ctx context.Context) error {
	s.since = s.call.Now().Add(-lateCommit)
	s.ended = s.since
	if s.after == 0 {
		return nil
	}
	last, err := s.call.Messages.ThreadMessages(ctx, s.call.Workspace, s.thread.ID, messages.Page{Before: s.after + 1, Limit: 1})
	if err == nil && len(last) > 0 && last[0].CreatedAt.Before(s.since) {
		s.since = last[0].CreatedAt
	}
	s.ended = s.since
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
	work, err := s.work(ctx)
	return append(events, work...), false, err
}

// work returns the events of the run that has begun, and of the workstreams that have changed.
func (s *chatStream) work(ctx context.Context) (events []exchange.Event, err error) {
	if !s.call.work {
		return nil, nil
	}
	work, err := s.call.Children.WorkIn(ctx, s.thread.Row, s.ended)
	if err != nil {
		return nil, err
	}
	if work.Run != "" && work.Run != s.run {
		s.run = work.Run
		events = append(events, exchange.Event{Kind: "run", Data: map[string]string{"run_id": work.Run}})
	}
	for _, c := range work.Children {
		told := fmt.Sprint(c.State, " ", c.Runs, " ", c.Progress)
		if s.told[c.ID] == told {
			continue
		}
		s.told[c.ID] = told
		if ended := c.EndedAt.Add(-lateCommit); c.State.Ended() && ended.After(s.ended) {
			s.ended = ended
		}
		events = append(events, exchange.Event{Kind: "workstream", Data: struct {
			workstream.Listed
			Runs []string `json:"own_run_ids"`
		}{workstream.List([]workstreams.Workstream{c.Workstream}, s.call.Now())[0], append([]string{}, c.Runs...)}})
	}
	return events, nil
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
	gone := map[string]any{"id": m.UUID, "thread_id": s.thread.ID, "thread_seq": m.Seq}
	if run := runOf(m); run != "" {
		gone["run_id"] = run
	}
	return exchange.Event{Kind: "delete", Data: gone}
}

// changedAt returns the time of a message's last change; zero for none.
func changedAt(m *messages.Message) time.Time {
	if m.DeletedAt.After(m.EditedAt) {
		return m.DeletedAt
	}
	return m.EditedAt
}
