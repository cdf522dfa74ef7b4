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
	list, next, err := c.found(ctx, q)
	out.Messages = make([]message, len(list))
	for i := range list {
		out.Messages[i] = viewOf(list[i].ThreadID, &list[i].Message)
		out.Messages[i].Channel = list[i].Channel
	}
	if next != "" {
		out.Next = &next
	}
	return out, err
}

// found returns a page of messages that the caller may read.
func (c call) found(ctx context.Context, q search.Query) (list []search.Found, next string, err error) {
	for page := 0; ; page++ {
		if list, next, err = c.Store.SearchMessages(ctx, q); err == nil {
			list, err = kept(ctx, c.view, list, func(f *search.Found) string { return f.ThreadID })
		}
		if err != nil || len(list) > 0 || next == "" || page == maxPages {
			return list, next, err
		}
		q.Before = next
	}
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
	list, err := c.Store.FindPeople(ctx, workspace, in.Name, limit)
	out.People = make([]person, len(list))
	for i, p := range list {
		if out.People[i] = (person{SenderID: p.SenderID, Name: p.Name}); c.view == nil {
			out.People[i].LastAt = &p.LastAt
		}
	}
	return out, err
}
