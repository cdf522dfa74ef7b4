package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/threads"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
	"parley/ingest/wake"
)

const (
	// runPage bounds the messages of a run that are read at once.
	runPage = 100
	// The ids of the messages that end a run and are not stored. They come after the seqs of
	// all stored ones, and are the same for every reader.
	replyID, lastID = 1<<40 + 1, 1<<40 + 2
)

// source has the messages of runs: it is *runs.Runs. The test of the memory that a reader needs makes the messages of a long run
// while they are read.
type source interface {
	RunEvents(ctx context.Context, run string, after int64, limit int) (runs.Page, error)
	RunMessages(ctx context.Context, run string) ([]messages.Message, error)
	FollowRun(run string) (changed <-chan struct{}, stop func())
}

// runReader reads the messages of a run in order: the questions, the stored messages, and the
// messages that follow from the run's end. A reader that begins behind an id gets what the first one gets next.
type runReader struct {
	runs  source
	run   string
	begun <-chan string // gets the id of a run that has not begun; nil for one that has
	asked bool          // the questions have been read
	after int64         // the id of the last message that was read
	// since leaves out earlier messages, except those that end the run. A message of this very
	// time is sent.
	since   time.Time
	form    form
	dropped int64 // number of messages that are not stored any more
}

// next returns the next messages, each with its id. last means that no more will come.
func (s *runReader) next(ctx context.Context) (list []runs.Event, last bool, err error) {
	if s.run == "" {
		select {
		case s.run = <-s.begun:
		default:
			return nil, false, nil
		}
	}
	page, err := s.runs.RunEvents(ctx, s.run, s.after, runPage)
	if err != nil {
		return nil, false, err
	}
	s.dropped = page.Dropped
	var messages []messages.Message
	ended := page.Ended() && !page.Full
	if !s.asked || ended {
		if messages, err = s.runs.RunMessages(ctx, s.run); err != nil {
			return nil, false, err
		}
	}
	if !s.asked {
		list, s.asked = s.early(questions(messages)), true
	}
	list = append(list, s.early(page.Events)...)
	if ended {
		for _, e := range ends(&page, messages) {
			if e.Seq > s.after {
				list = append(list, e)
			}
		}
	}
	for _, e := range page.Events {
		s.after = e.Seq
		last = last || e.Ends()
	}
	return list, last || ended, nil
}

// early leaves out the messages before since.
func (s *runReader) early(events []runs.Event) (list []runs.Event) {
	for _, e := range events {
		if s.isSince(e.Seq, e.Time) {
			list = append(list, e)
		}
	}
	return list
}

// isSince reports whether a message is one since the time, or ends the run.
func (s *runReader) isSince(id int64, at time.Time) bool { return !at.Before(s.since) || id >= replyID }

// asked are the details of a message of the run's turn.
type asked struct {
	Ack string `json:"ack,omitempty"` // the id that its client gave it
	By  author `json:"by"`
}

// author is who wrote a message: the sender_id, and the name; empty for none.
type author struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

func authorOf(m *messages.Message) author {
	metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names nobody
	return author{m.SenderID, metadata.SenderDisplayName}
}

// questions returns the messages of the run's turn.
func questions(stored []messages.Message) (list []runs.Event) {
	for i := range stored {
		m := &stored[i]
		isTold := m.Author == messages.BySystem && strings.HasPrefix(m.SenderID, "user:") // a client's words for a workstream
		if m.Author == messages.ByAgent || m.Author == messages.BySystem && !isTold {
			continue
		}
		q := stream.Message{Type: stream.Question, Text: threads.Display(m), Time: m.CreatedAt}
		q.Details, _ = json.Marshal(asked{m.ClientMessageID, authorOf(m)}) // texts always encode
		list = append(list, runs.Event{Message: q})
	}
	return list
}

// ends returns the messages that follow from the end of a run and are not stored. Each
// has a later time than every message before it.
func ends(page *runs.Page, stored []messages.Message) (list []runs.Event) {
	at := page.EndedAt
	for _, q := range questions(stored) {
		if !at.After(q.Time) {
			at = q.Time.Add(time.Millisecond)
		}
	}
	end := stream.Message{Type: stream.Terminated, Text: page.Reason}
	if page.State == "done" || page.State == "quiet" {
		end.Type = stream.Complete
	}
	for i := range stored {
		m := &stored[i]
		switch {
		case m.Author == messages.ByAgent && !page.Answered:
			list = append(list, runs.Event{Seq: replyID, Message: stream.Message{
				Type: stream.Answer, Text: m.Content, Time: at, ActivityID: runs.AnswerActivity(page.ID),
			}})
		case m.IsNotice() && page.State == "failed":
			list = append(list, runs.Event{Seq: replyID, Message: stream.Message{Type: stream.Error, Text: m.Content, Time: at}})
		case m.IsNotice():
			end.Text = m.Content
		}
	}
	if end.Time = at.Add(time.Millisecond); !page.Closed {
		list = append(list, runs.Event{Seq: lastID, Message: end})
	}
	return list
}

// sent returns the next messages as server-sent events. It reads on if it has left out a page.
func (s *runReader) sent(ctx context.Context) (events []exchange.Event, last bool, err error) {
	for {
		before := s.after
		list, last, err := s.next(ctx)
		for _, e := range list {
			events = append(events, exchange.Event{ID: strconv.FormatInt(e.Seq, 10), Data: s.form.of(s.run, e.Message)})
		}
		if err != nil || last || len(events) > 0 || s.after == before {
			return events, last, err
		}
	}
}

// beginEvery is the time between two looks for the begin of a run.
const beginEvery = 250 * time.Millisecond

// await returns a channel that gets a value after the run's begin and after each change, until
// ctx ends. id returns the run's id; empty if it has not begun.
func (s *runReader) await(ctx context.Context, id func() (string, error)) <-chan struct{} {
	begun, changed := make(chan string, 1), wake.NewSignal()
	s.begun = begun
	go func() {
		run := ""
		for run == "" {
			if !wake.After(ctx, beginEvery) {
				return
			}
			run, _ = id() // after an error it looks again
		}
		changes, stop := s.runs.FollowRun(run)
		defer stop()
		for begun <- run; ; {
			changed.Set()
			select {
			case <-ctx.Done():
				return
			case <-changes:
			}
		}
	}()
	return changed
}

// outlined is a message of a run without its words.
type outlined struct {
	id   int64
	kind stream.Type
	at   time.Time
}

// page returns the messages so far that are kept, behind an id and up to storage.PageBytes; the id behind
// which the rest is read, 0 if there is none; and the number of messages that are not kept. The questions
// of the run have no id. It reads the whole run, because later messages decide which ones are kept, and
// holds the words of the page alone.
func (s runReader) page(ctx context.Context, after int64) (page []runs.Event, next int64, dropped int, err error) {
	all := s
	all.since = time.Time{} // the earlier ones count, too
	var outline []outlined
	var held []runs.Event
	end, bytes := after, 0 // the id of the last held message, and their bytes
	for {
		before := all.after
		list, last, err := all.next(ctx)
		if err != nil {
			return nil, 0, 0, err
		}
		for _, e := range list {
			outline = append(outline, outlined{e.Seq, e.Type, e.Time})
			isFull := bytes >= storage.PageBytes && end > after
			if !isFull && (after == 0 || e.Seq > after) && s.isSince(e.Seq, e.Time) {
				held, end, bytes = append(held, e), e.Seq, bytes+len(e.Text)+len(e.Details)
			}
		}
		if last || all.after == before {
			break
		}
	}
	kept, dropped := stream.Keep(outline, func(o outlined) stream.Type { return o.kind })
	isKept := map[int64]bool{}
	for _, o := range kept {
		isKept[o.id] = true
		if o.id > end && s.isSince(o.id, o.at) {
			next = end
		}
	}
	page = slices.DeleteFunc(held, func(e runs.Event) bool { return !isKept[e.Seq] })
	if len(page) == 0 && next > 0 {
		return s.page(ctx, next)
	}
	return page, next, dropped + int(all.dropped), nil
}

// skip leaves out the messages so far, except the last one of a run.
func (s *runReader) skip(ctx context.Context) error {
	s.asked = true
	for {
		page, err := s.runs.RunEvents(ctx, s.run, s.after, runPage)
		for _, e := range page.Events {
			if e.Ends() {
				return nil
			}
			s.after = e.Seq
		}
		if page.Ended() && !page.Full {
			s.after = max(s.after, replyID)
		}
		if err != nil || !page.Full {
			return err
		}
	}
}

// heard reports whether the reader has read the last message of the run already.
func (s runReader) heard(ctx context.Context) (bool, error) {
	list, last, err := s.next(ctx)
	return last && len(list) == 0, err
}
