package threads

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// Post accepts the message of an authenticated caller.
func (a API) Post(w http.ResponseWriter, r *http.Request, workspace string, caller access.Caller, raw []byte) error {
	b, err := caller.Complete(raw)
	if err == nil {
		err = a.Admit(r.Context(), caller, workspace, b.ThreadID)
	}
	if err == nil {
		err = a.Storage.Keep(r.Context(), w, workspace, caller.Sender, &b)
	}
	if err != nil {
		return err
	}
	s, err := a.Send(r, workspace, b)
	if err != nil {
		return err
	}
	if b.TokenID != "" && s.Message != nil {
		if err := a.join(r.Context(), caller, workspace, b.ThreadID); err != nil {
			a.Gate.Guard.Fault(fmt.Errorf("let the sender take part in the thread: %w", err)) // the message is accepted: its sender must not send it again
		}
	}
	return a.Accepted(w, s, b.ThreadID, caller)
}

// join lets a caller that has written in its own name take part in a thread that no client has made, so that the thread is its
// conversation on the other routes, too.
func (a API) join(ctx context.Context, c access.Caller, workspace, id string) error {
	actor := string(c.Token.ActorIn(c.Workspace))
	t, takes, err := a.Places.ThreadFor(ctx, workspace, id, actor)
	if err == nil && !takes && !isPrivate(&t) {
		_, err = a.Places.AddParticipant(ctx, &t, actor)
	}
	return err
}

// Accepted responds to the caller of a message that was accepted in a thread.
func (a API) Accepted(w http.ResponseWriter, s Accepted, thread string, caller access.Caller) error {
	var message any = map[string]string{"id": s.ID}
	if s.Message != nil {
		message = view(s.Message, caller)
	}
	return exchange.Respond(w, s.Status(), map[string]any{"thread_id": thread, "message": message})
}

// ListMessages responds with a page of a thread's messages: GET
// /api/v1/workspaces/{workspace}/threads/{thread_id}/messages?after=&before=&limit=
func (a API) ListMessages(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(a.Gate.Guard, "", a.listMessages)(w, r)
}

func (a API) listMessages(w http.ResponseWriter, r *http.Request) error {
	workspace := r.PathValue("workspace")
	c, err := a.Gate.Admit(w, r, workspace, access.Caller.Reads)
	if err != nil {
		return err
	}
	var faults event.FieldErrors
	id := strings.ToLower(r.PathValue("thread_id"))
	page := pageOf(r, &faults)
	faults.Check(payload.IsUUID(id), "thread_id", "must be a UUID")
	if len(faults) > 0 {
		return faults
	}
	end, err := a.Streams.Begin(r.Context(), c.Owner())
	if err != nil {
		return err
	}
	defer end()
	list, next, err := a.Read(r.Context(), c, workspace, id, page)
	if err != nil {
		return err
	}
	return exchange.RespondList(w, "messages", pointers(list), func(m *messages.Listed) any { return view(m, c) }, exchange.Member{Key: "next", Value: next})
}

// Read returns a page of the messages of a thread in a workspace that the caller reads. next is the thread_seq
// where the following page begins; nil if there is none. A thread that the caller may not see is storage.ErrNotFound.
func (a API) Read(ctx context.Context, c access.Caller, workspace, id string, page messages.Page) (list []messages.Listed, next *int64, err error) {
	if err := a.Admit(ctx, c, workspace, id); err != nil {
		return nil, nil, err
	}
	list, err = a.Messages.ThreadMessages(ctx, workspace, id, page)
	return list, nextSeq(list, page), err
}

// pointers returns the addresses of a list's elements.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// nextSeq returns the thread_seq that the next page begins after, or ends before if the
// caller reads backwards; nil after the last page.
func nextSeq(list []messages.Listed, page messages.Page) *int64 {
	switch {
	case !messages.IsFull(list, page.Limit):
		return nil
	case page.Before > 0 && page.After == 0:
		return &list[0].Seq
	}
	return &list[len(list)-1].Seq
}

// pageOf reads the bounds of a page of messages from the query.
func pageOf(r *http.Request, faults *event.FieldErrors) messages.Page {
	return messages.Page{After: exchange.SeqOf(r, "after", faults), Before: exchange.SeqOf(r, "before", faults), Limit: exchange.LimitOf(r, faults)}
}
