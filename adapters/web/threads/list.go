package threads

import (
	"context"
	"net/http"
	"strings"
	"time"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// Thread is a thread in a response.
type Thread struct {
	ID       string          `json:"thread_id"`
	Key      event.ThreadKey `json:"key"`
	Title    string          `json:"title"`
	LastAt   time.Time       `json:"last_at"`
	Messages int64           `json:"messages"`
	// First is the message with the title.
	First messages.Message `json:"-"`
	at    string
}

// Cursor is the thread's position in the list.
func (t *Thread) Cursor() string { return t.at }

// ListThreads responds with a page of the workspace's threads, the last active first: GET
// /api/v1/workspaces/{workspace}/threads?before=&limit=
func (a API) ListThreads(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(a.Gate.Guard, "", a.listThreads)(w, r)
}

func (a API) listThreads(w http.ResponseWriter, r *http.Request) error {
	workspace := r.PathValue("workspace")
	c, err := a.Gate.Admit(w, r, workspace, access.Caller.Lists)
	if err != nil {
		return err
	}
	var faults event.FieldErrors
	limit := exchange.LimitOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	end, err := a.Streams.Begin(r.Context(), c.Owner())
	if err != nil {
		return err
	}
	defer end()
	list, next, err := a.List(r.Context(), workspace, r.URL.Query().Get("before"), limit)
	if err != nil {
		return err
	}
	return exchange.RespondList(w, "threads", list, func(t Thread) any { return t }, exchange.Member{Key: "next", Value: next})
}

// List returns a page of the threads of a workspace, the last active first. It begins behind the position
// before. next is the position of the following page; nil if there is none.
func (a API) List(ctx context.Context, workspace, before string, limit int) (list []Thread, next *string, err error) {
	threads, err := a.Messages.Threads(ctx, workspace, before, limit)
	if messages.AreMoreThreads(threads, limit) {
		next = given(threads[len(threads)-1].Cursor())
	}
	list = make([]Thread, len(threads))
	for i := range threads {
		t := &threads[i]
		list[i] = Thread{ID: t.ID, Key: t.Key, Title: Title(&t.First), LastAt: t.LastAt, Messages: t.Messages, First: t.First, at: t.Cursor()}
	}
	return list, next, err
}

// maxTitle is the greatest length of a thread's title, in characters.
const maxTitle = 80

// Title returns the first line of a message, cut at maxTitle.
func Title(first *messages.Message) string {
	line, _, _ := strings.Cut(strings.TrimSpace(Display(first)), "\n")
	line = strings.TrimSpace(line)
	if runes := []rune(line); len(runes) > maxTitle {
		return strings.TrimSpace(string(runes[:maxTitle-1])) + "…"
	}
	return line
}
