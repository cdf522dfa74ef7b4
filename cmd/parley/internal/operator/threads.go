package operator

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/threads"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

var threadRoutes = []Route{
	{Pattern: "GET threads", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Threads(c.Context(), c.By, c.Query("workspace"), page)
	}},
	{Pattern: "GET threads/{id}", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		var faults event.FieldErrors
		page := messages.Page{
			After: exchange.SeqOf(c.request, "after", &faults), Before: exchange.SeqOf(c.request, "before", &faults), Limit: exchange.LimitOf(c.request, &faults),
		}
		if len(faults) > 0 {
			return nil, faults
		}
		return s.Thread(c.Context(), c.By, c.Path("id"), page)
	}},
}

// Thread is a thread in a list.
type Thread struct {
	ID        string          `json:"thread_id"`
	Key       event.ThreadKey `json:"key"`
	Workspace string          `json:"workspace"`
	Channel   string          `json:"channel"`
	Title     string          `json:"title"` // empty if the caller may not read it
	LastAt    time.Time       `json:"last_at"`
	Messages  int64           `json:"messages"` // its highest thread_seq
	Waiting   int64           `json:"waiting"`  // envelopes without a result yet
	Agent     string          `json:"agent"`    // of the due turn or the unfinished run; empty for none
	Run       string          `json:"run"`      // the unfinished run; empty for none
}

// ThreadPage is a thread with a page of its messages, by thread_seq.
type ThreadPage struct {
	Thread   Thread            `json:"thread"`
	Messages []threads.Message `json:"messages"`
	Next     *int64            `json:"next"` // thread_seq at which the page ends; nil on the last one
	// Hidden tells that the caller may not read the texts.
	Hidden bool `json:"hidden"`
}

// Threads returns a page of the threads of a workspace, or of all configured ones, the last active
// first.
func (s *Service) Threads(ctx context.Context, by Caller, workspace string, page Page) (List[Thread], error) {
	var ids []string
	for _, w := range s.Config().Workspaces {
		if workspace == "" || w.ID == workspace {
			ids = append(ids, w.ID)
		}
	}
	if len(ids) == 0 {
		return List[Thread]{}, event.FieldErrors{{Field: "workspace", Message: "must be a configured workspace"}}
	}
	rows, more, err := s.Journal.Listing.AllThreads(ctx, ids, page.Before, page.Limit)
	if err != nil {
		return List[Thread]{}, err
	}
	items, next := make([]Thread, len(rows)), ""
	for i := range rows {
		items[i], next = threadOf(&rows[i], by), rows[i].Cursor()
	}
	return listOf(items, more, func(Thread) string { return next }), nil
}

// thread returns the thread that a reference names: its UUID or key, or a message or a run of it as in Why.
func (s *Service) thread(ctx context.Context, ref string) (listing.Thread, error) {
	t, err := s.Journal.Listing.ThreadOf(ctx, ref)
	if !errors.Is(err, storage.ErrNotFound) || len(ref) > maxRef {
		return t, err
	}
	_, life, err := s.find(ctx, strings.TrimSpace(ref))
	if err != nil {
		return t, err
	}
	if life.ThreadID == "" {
		return t, storage.ErrNotFound
	}
	return s.Journal.Listing.ThreadOf(ctx, life.ThreadID)
}

// Thread returns the thread that a reference names, with a page of its messages. Without a reader's
// rights, the messages of a thread outside rooms have no text.
func (s *Service) Thread(ctx context.Context, by Caller, ref string, page messages.Page) (ThreadPage, error) {
	t, err := s.thread(ctx, ref)
	if err != nil {
		return ThreadPage{}, err
	}
	list, err := s.Journal.Messages.ThreadMessages(ctx, t.Workspace, t.ID, page)
	if err != nil {
		return ThreadPage{}, err
	}
	out := ThreadPage{Thread: threadOf(&t, by), Messages: make([]threads.Message, len(list)), Hidden: !t.Room && !by.ReadsAll()}
	for i := range list {
		out.Messages[i] = threads.View(&list[i])
		if out.Hidden {
			withhold(&out.Messages[i])
		}
	}
	if messages.IsFull(list, page.Limit) {
		last := list[len(list)-1].Seq
		if page.Before > 0 && page.After == 0 {
			last = list[0].Seq
		}
		out.Next = &last
	}
	return out, nil
}

// withhold removes a person's words, and the words about them, from a message.
func withhold(m *threads.Message) {
	m.Content, m.Metadata, m.Attachments = "", []byte("{}"), []event.Attachment{}
	if m.Run != nil {
		m.Run.Cause = ""
	}
}

func threadOf(t *listing.Thread, by Caller) Thread {
	out := Thread{ID: t.ID, Key: t.Key, Workspace: t.Workspace, Channel: t.Channel, LastAt: t.LastAt, Messages: t.Newest, Waiting: t.Pending, Agent: t.Agent, Run: t.Run}
	if t.Room || by.ReadsAll() {
		out.Title = threads.Title(&t.First)
	}
	return out
}

// Threads returns a page of threads.
func (c *Client) Threads(ctx context.Context, query url.Values) (List[Thread], error) {
	return Get[List[Thread]](ctx, c, "threads", query)
}

// Thread returns a thread with a page of its messages.
func (c *Client) Thread(ctx context.Context, ref string, query url.Values) (ThreadPage, error) {
	return Get[ThreadPage](ctx, c, "threads/"+url.PathEscape(ref), query)
}
