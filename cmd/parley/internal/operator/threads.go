package operator

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
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
		q, err := s.threadQuery(c)
		if err != nil {
			return nil, err
		}
		return s.Threads(c.Context(), c.By, q)
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
	// ChannelName is empty if it is not known or if the caller may not read the thread. ChannelType is room, direct or group; empty if it is not known.
	ChannelName string            `json:"channel_name"`
	ChannelType event.ChannelType `json:"channel_type"`
	Title       string            `json:"title"` // empty if the caller may not read it
	LastAt      time.Time         `json:"last_at"`
	Messages    int64             `json:"messages"` // its highest thread_seq
	Waiting     int64             `json:"waiting"`  // envelopes without a result yet
	Agent       string            `json:"agent"`    // of the due turn or the unfinished run; empty for none
	Run         string            `json:"run"`      // the unfinished run; empty for none
	LastRun     string            `json:"last_run"` // the state of the newest run that has ended; empty for none among the newest messages
}

// ThreadPage is a thread with a page of its messages, by thread_seq.
type ThreadPage struct {
	Thread   Thread            `json:"thread"`
	Messages []threads.Message `json:"messages"`
	Next     *int64            `json:"next"` // thread_seq at which the page ends; nil on the last one
	// Hidden tells that the caller may not read the texts.
	Hidden bool `json:"hidden"`
}

// ThreadQuery asks for threads. An empty field chooses all.
type ThreadQuery struct {
	listing.ThreadFilter
	// Text chooses the threads that have a message with each of its words, which the caller may read. They come in the order of their
	// newest such message then.
	Text string
}

// threadQuery reads the query of a request.
func (s *Service) threadQuery(c *Call) (q ThreadQuery, err error) {
	if err := c.Known("before", "limit", "workspace", "channel", "agent", "state", "since", "until", "q"); err != nil {
		return q, err
	}
	page, err := c.Page()
	if err != nil {
		return q, err
	}
	q.Text, q.Channel, q.Agent, q.State, q.Before, q.Limit = c.Query("q"), c.Query("channel"), c.Query("agent"), listing.ThreadState(c.Query("state")), page.Before, page.Limit
	if w := c.Query("workspace"); w != "" {
		q.Workspaces = []string{w}
	}
	q.Since, q.Until, err = s.Times(c.Query("since"), c.Query("until"))
	return q, err
}

// Times reads the bounds of a list's times, which Since and Until read; an empty one is none.
func (s *Service) Times(since, until string) (from, to time.Time, err error) {
	var faults event.FieldErrors
	read := func(field, text string, read func(string, time.Time) (time.Time, error)) (at time.Time) {
		if text != "" {
			var err error
			at, err = read(text, s.Now().UTC())
			faults.Check(err == nil, field, errSince.Error())
		}
		return at
	}
	if from, to = read("since", since, Since), read("until", until, Until); len(faults) > 0 {
		err = faults
	}
	return from, to, err
}

// workspaceIDs returns those of some workspaces that are configured; all configured ones for none.
func (s *Service) workspaceIDs(of []string) (ids []string, err error) {
	for _, w := range s.Config().Workspaces {
		if len(of) == 0 || slices.Contains(of, w.ID) {
			ids = append(ids, w.ID)
		}
	}
	if len(ids) == 0 {
		return nil, event.FieldErrors{{Field: "workspace", Message: "must be a configured workspace"}}
	}
	return ids, nil
}

// Threads returns a page of threads, the last active first.
func (s *Service) Threads(ctx context.Context, by Caller, q ThreadQuery) (list List[Thread], err error) {
	if q.State != "" && !slices.Contains(listing.ThreadStates(), q.State) {
		return list, event.FieldErrors{{Field: "state", Message: "must be one of " + words(listing.ThreadStates())}}
	}
	if q.Workspaces, err = s.workspaceIDs(q.Workspaces); err != nil {
		return list, err
	}
	var rows []listing.Thread
	var next string
	if q.Text != "" {
		rows, next, err = s.threadsWith(ctx, by, q)
	} else {
		rows, next, err = s.Journal.Listing.AllThreads(ctx, q.ThreadFilter)
	}
	if err != nil {
		return list, err
	}
	name, end := s.ChannelNames(ctx, by)
	defer end()
	items := make([]Thread, len(rows))
	for i := range rows {
		items[i] = threadOf(&rows[i], by, name)
	}
	return pageOf(items, next), nil
}

// words joins names for an error.
func words[T ~string](names []T) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return strings.Join(list, ", ")
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
	name, end := s.ChannelNames(ctx, by)
	defer end()
	out := ThreadPage{Thread: threadOf(&t, by, name), Messages: make([]threads.Message, len(list)), Hidden: !by.Reads(t.Room)}
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

func threadOf(t *listing.Thread, by Caller, name func(workspace, channel string, room bool) string) Thread {
	out := Thread{
		ID: t.ID, Key: t.Key, Workspace: t.Workspace, Channel: t.Channel, ChannelName: name(t.Workspace, t.Channel, t.Room), ChannelType: t.Type,
		LastAt: t.LastAt, Messages: t.Newest, Waiting: t.Pending, Agent: t.Agent, Run: t.Run, LastRun: cmp.Or(messages.StateOf(t.Last), t.Last),
	}
	if by.Reads(t.Room) {
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
