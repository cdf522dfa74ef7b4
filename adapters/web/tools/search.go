package tools

import (
	"context"
	"strings"
	"time"

	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/search"
)

// usualFound and mostFound are the numbers of results of a search.
const usualFound, mostFound = 20, 100

type searchMessages struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	Query     string `json:"query" jsonschema:"1 to 20 words"`
	ThreadID  string `json:"thread_id,omitempty" jsonschema:"the UUID of the only thread to search"`
	Before    string `json:"before,omitempty" jsonschema:"next of the page before"`
	Limit     *int   `json:"limit,omitempty" jsonschema:"1 to 100 messages; without it, 20"`
}

type foundPage struct {
	Messages []message `json:"messages"`
	Next     *string   `json:"next" jsonschema:"before of the next page; null if there is none"`
}

// searchMessages returns a page of the messages that have some words. A caller that may not list a workspace's threads
// searches those that it may read, one at a time.
func (c call) searchMessages(ctx context.Context, in searchMessages) (out foundPage, err error) {
	var faults event.FieldErrors
	q := search.Query{Text: in.Query, Thread: strings.ToLower(in.ThreadID), Before: in.Before, Limit: limitOf(in.Limit, usualFound, mostFound, &faults)}
	if v := c.view; v != nil && q.Thread == "" && v.scope != ReadChannel && v.scope != ReadWorkspace {
		q.Thread = v.run.ThreadID
	}
	needs := mayList
	if q.Thread != "" {
		needs = mayRead
		faults.Check(payload.IsUUID(q.Thread), "thread_id", "must be a UUID")
	}
	if len(faults) > 0 {
		return out, faults
	}
	if q.Workspace, err = c.workspace(in.Workspace, needs); err == nil && q.Thread != "" {
		if err = c.view.sees(ctx, q.Thread); err == nil {
			err = c.Threads.Admit(ctx, c.Caller, q.Workspace, q.Thread)
		}
	}
	if err != nil {
		return out, err
	}
	found := func(f *search.Found) message {
		m := viewOf(f.ThreadID, &f.Message)
		m.Channel = f.Channel
		return m
	}
	if v := c.view; v != nil {
		limit := q.Limit
		q.Limit = mostFound
		out.Messages, out.Next, err = page(limit, q.Before, func(from string) ([]search.Found, bool, error) {
			q.Before = from
			list, next, err := c.Search.SearchMessages(ctx, q)
			return list, next != "", err
		}, func(f *search.Found) (m message, ok bool, err error) {
			if f.Message, ok, err = v.message(ctx, f.ThreadID, f.Message); ok {
				m = found(f)
			}
			return m, ok, err
		}, (*search.Found).Position)
		return out, err
	}
	list, next, err := c.Search.SearchMessages(ctx, q)
	out.Messages = make([]message, len(list))
	for i := range list {
		out.Messages[i] = found(&list[i])
	}
	if next != "" {
		out.Next = &next
	}
	return out, err
}

type findPerson struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	Name      string `json:"name" jsonschema:"a part of the person's name, or the whole sender_id"`
	Limit     *int   `json:"limit,omitempty" jsonschema:"1 to 100 people; without it, 20"`
}

type personList struct {
	People []person `json:"people"`
}

type person struct {
	SenderID string     `json:"sender_id"`
	Name     string     `json:"name" jsonschema:"in the person's newest message"`
	LastAt   *time.Time `json:"last_at,omitempty" jsonschema:"the time of that message; absent for the agent of a run, which may not see it"`
}

// findPerson returns the people of a workspace with a name.
func (c call) findPerson(ctx context.Context, in findPerson) (out personList, err error) {
	var faults event.FieldErrors
	limit := limitOf(in.Limit, usualFound, mostFound, &faults)
	faults.Check(strings.TrimSpace(in.Name) != "", "name", "is required")
	if len(faults) > 0 {
		return out, faults
	}
	workspace, err := c.workspace(in.Workspace, mayList)
	if err == nil && c.view != nil && c.view.scope != ReadWorkspace {
		err = errNoPeople
	}
	if err != nil {
		return out, err
	}
	list, err := c.Search.FindPeople(ctx, workspace, in.Name, limit)
	out.People = []person{}
	for _, p := range list {
		switch found := (person{SenderID: p.SenderID, Name: p.Name}); {
		case c.view == nil:
			found.LastAt = &p.LastAt
			out.People = append(out.People, found)
		case c.view.sight.AdmitsPerson(p.SenderID):
			out.People = append(out.People, found)
		}
	}
	return out, err
}
