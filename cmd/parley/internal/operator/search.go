package operator

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/adapters/web/threads"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/search"
)

var searchRoutes = []Route{
	{Pattern: "GET search/messages", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		q, err := s.threadQuery(c)
		if err != nil {
			return nil, err
		}
		return s.SearchMessages(c.Context(), c.By, q)
	}},
	{Pattern: "GET search/people", Role: config.RoleReader, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("limit", "workspace", "q"); err != nil {
			return nil, err
		}
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.SearchPeople(c.Context(), c.Query("workspace"), c.Query("q"), page.Limit)
	}},
	{Pattern: "GET hour", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		return s.LastHour(c.Context())
	}},
}

// FoundMessage is a message that a search has found.
type FoundMessage struct {
	ID          string            `json:"message_id"`
	ThreadID    string            `json:"thread_id"`
	Thread      event.ThreadKey   `json:"thread"`
	ThreadSeq   int64             `json:"thread_seq"`
	Workspace   string            `json:"workspace"`
	Channel     string            `json:"channel"`
	ChannelName string            `json:"channel_name"` // empty if it is not known
	ChannelType event.ChannelType `json:"channel_type"`
	SenderID    string            `json:"sender_id"`
	Sender      string            `json:"sender"`  // the name, or the id without one
	Content     string            `json:"content"` // its beginning
	SentAt      time.Time         `json:"sent_at"`
	Run         string            `json:"run"` // that answers it, or whose answer it is; empty for none
}

const (
	// maxFound bounds the words of a found message, in bytes.
	maxFound = 500
	// searchPage is the number of found messages that are looked at together, and searchPages that of such pages for one answer.
	searchPage, searchPages = 200, 5
)

// found is a message that a search has found, in its thread.
type found struct {
	search.Found
	thread listing.Thread
}

// findMessages returns the messages that have the words of a query, of the threads that its filter chooses and that the caller may read, the last
// recorded first. take reports whether a message counts; find ends when limit messages count, or after searchPages pages. next is the
// position of the following messages; empty if there are none.
func (s *Service) findMessages(ctx context.Context, by Caller, q ThreadQuery, take func(f found) bool) (next string, err error) {
	ask := search.Query{Text: q.Text, Before: q.Before, Limit: searchPage}
	if len(q.Workspaces) == 1 {
		ask.Workspace = q.Workspaces[0]
	}
	filter := q.ThreadFilter
	filter.Since, filter.Until = time.Time{}, time.Time{} // of the message itself here
	known, taken := map[string]listing.Thread{}, 0
	for range searchPages {
		list, following, err := s.Journal.Search.SearchMessages(ctx, ask)
		if err != nil {
			return "", err
		}
		var unknown []string
		for i := range list {
			if _, ok := known[list[i].ThreadID]; !ok {
				unknown = append(unknown, list[i].ThreadID)
				known[list[i].ThreadID] = listing.Thread{}
			}
		}
		threads, err := s.Journal.Listing.ThreadsOf(ctx, unknown, filter)
		if err != nil {
			return "", err
		}
		for _, t := range threads {
			known[t.ID] = t
		}
		for i := range list {
			m := &list[i]
			t := known[m.ThreadID]
			if t.Row == 0 || !by.Reads(t.Room) || m.SentAt.Before(q.Since) || !q.Until.IsZero() && m.SentAt.After(q.Until) || !take(found{*m, t}) {
				continue
			}
			if taken++; taken == q.Limit {
				if i+1 < len(list) || following != "" {
					return m.Position(), nil
				}
				return "", nil
			}
		}
		if ask.Before = following; following == "" {
			return "", nil
		}
	}
	return ask.Before, nil
}

// SearchMessages returns a page of the messages that have each word of a text, the last recorded first. The caller gets only those that the
// caller may read. The agent, the channel and the state of the query are those of the thread, its times those of the message.
func (s *Service) SearchMessages(ctx context.Context, by Caller, q ThreadQuery) (list List[FoundMessage], err error) {
	if q.Workspaces, err = s.workspaceIDs(q.Workspaces); err != nil {
		return list, err
	}
	name, end := s.ChannelNames(ctx, by)
	defer end()
	var items []FoundMessage
	next, err := s.findMessages(ctx, by, q, func(f found) bool {
		items = append(items, FoundMessage{
			ID: f.UUID, ThreadID: f.ThreadID, Thread: f.thread.Key, ThreadSeq: f.Seq, Workspace: f.Workspace, Channel: f.Channel, ChannelName: name(f.Workspace, f.Channel, f.thread.Room), ChannelType: f.thread.Type,
			SenderID: f.SenderID, Sender: Author(f.SenderID, f.Metadata), Content: event.Cut(threads.Display(&f.Message), maxFound), SentAt: f.SentAt, Run: f.Run,
		})
		return true
	})
	return pageOf(items, next), err
}

// threadsWith returns the threads that have a message with the words of a query, which the caller may read.
func (s *Service) threadsWith(ctx context.Context, by Caller, q ThreadQuery) (list []listing.Thread, next string, err error) {
	next, err = s.findMessages(ctx, by, q, func(f found) bool {
		if slices.ContainsFunc(list, func(t listing.Thread) bool { return t.Row == f.thread.Row }) {
			return false
		}
		list = append(list, f.thread)
		return true
	})
	return list, next, err
}

// FoundPerson is a person or a bot that has written in a workspace.
type FoundPerson struct {
	Workspace string    `json:"workspace"`
	SenderID  string    `json:"sender_id"`
	Name      string    `json:"name"` // the newest one
	LastAt    time.Time `json:"last_at"`
}

// SearchPeople returns the people with a sender_id, or with a name that contains a text, of a workspace or of all configured ones, the last
// active first.
func (s *Service) SearchPeople(ctx context.Context, workspace, text string, limit int) (list List[FoundPerson], err error) {
	var of []string
	if workspace != "" {
		of = []string{workspace}
	}
	if of, err = s.workspaceIDs(of); err != nil {
		return list, err
	}
	if strings.TrimSpace(text) == "" {
		return list, event.FieldErrors{{Field: "q", Message: "must be a part of a name, or an id"}}
	}
	var items []FoundPerson
	for _, id := range of {
		people, err := s.Journal.Search.FindPeople(ctx, id, text, limit)
		if err != nil {
			return list, err
		}
		for _, p := range people {
			items = append(items, FoundPerson{id, p.SenderID, p.Name, p.LastAt})
		}
	}
	slices.SortStableFunc(items, func(a, b FoundPerson) int { return b.LastAt.Compare(a.LastAt) })
	return pageOf(items[:min(limit, len(items))], ""), nil
}

// Hour has the figures of the last hour; see listing.Hour.
type Hour struct {
	Messages int64   `json:"messages"`
	Answers  int64   `json:"answers"`
	Failures int64   `json:"failures"`
	MedianMS int64   `json:"median_ms"` // from the begin of a run to its answer; 0 without answers
	ByMinute []int64 `json:"by_minute"` // messages, the earliest minute first
}

// kept keeps an answer of the store for a while, because many pages show it. The zero value is empty.
type kept[T any] struct {
	mu    sync.Mutex
	at    time.Time
	known T
}

// get returns the answer, which is at most age old.
func (k *kept[T]) get(now time.Time, age time.Duration, ask func() (T, error)) (known T, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if since := now.Sub(k.at); since >= 0 && since < age {
		return k.known, nil
	}
	if known, err = ask(); err == nil {
		k.at, k.known = now, known
	}
	return known, err
}

// LastHour returns the figures of the last hour, which are at most ten seconds old.
func (s *Service) LastHour(ctx context.Context) (Hour, error) {
	return s.hour.get(s.Now(), 10*time.Second, func() (Hour, error) {
		h, err := s.Journal.Listing.LastHour(ctx)
		return Hour{h.Messages, h.Answers, h.Failures, h.Median.Milliseconds(), h.ByMinute[:]}, err
	})
}

// Needs returns what waits for an operator, as it was at most five seconds ago.
func (s *Service) Needs(ctx context.Context) (Needs, error) {
	return s.needs.get(s.Now(), 5*time.Second, func() (Needs, error) {
		st, err := s.Status(ctx)
		return st.Needs, err
	})
}

// SearchMessages returns a page of the messages that have the words q of a query.
func (c *Client) SearchMessages(ctx context.Context, query url.Values) (List[FoundMessage], error) {
	return Get[List[FoundMessage]](ctx, c, "search/messages", query)
}

// SearchPeople returns the people with a name that contains a text, of a workspace or of all; limit 0 is the usual number.
func (c *Client) SearchPeople(ctx context.Context, workspace, text string, limit int) (List[FoundPerson], error) {
	query := url.Values{"q": {text}}
	if workspace != "" {
		query.Set("workspace", workspace)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return Get[List[FoundPerson]](ctx, c, "search/people", query)
}

// LastHour returns the figures of the last hour.
func (c *Client) LastHour(ctx context.Context) (Hour, error) {
	return Get[Hour](ctx, c, "hour", nil)
}
