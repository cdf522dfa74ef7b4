package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/adapters/web/payload"
	"parley/assembly/legacy"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// PostMessage accepts a message: POST /api/v1/workspaces/{workspace}/messages.
func (a API) PostMessage(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > maxBody {
		return fail(http.StatusRequestEntityTooLarge, "too-large", "the body must not be longer than 256 KiB")
	}
	caller, err := a.admit(w, r, caller.writes)
	if err != nil {
		return err
	}
	if caller.token.actor(a.Workspace).IsAgent() {
		return fail(http.StatusForbidden, "forbidden", agentsMay)
	}
	raw, err := a.body(w, r, "the body must have at most 256 KiB and arrive within 10 seconds")
	if err != nil {
		return err
	}
	return a.post(w, r, caller, raw)
}

// post accepts the message of an authenticated caller.
func (a API) post(w http.ResponseWriter, r *http.Request, caller caller, raw []byte) error {
	b, err := caller.complete(raw)
	if err == nil {
		err = a.admitThread(r, caller, b.ThreadID)
	}
	if err == nil {
		err = a.keep(r.Context(), w, caller.sender, &b)
	}
	if err != nil {
		return err
	}
	s, err := a.send(r, b)
	if err != nil {
		return err
	}
	var message any = map[string]string{"id": s.id}
	if s.message != nil {
		message = view(s.message, caller)
	}
	return respond(w, s.status(), map[string]any{"thread_id": b.ThreadID, "message": message})
}

// accepted is the result of a message that was accepted durably.
type accepted struct {
	id      string          // of the message
	known   bool            // it was accepted before
	message *journal.Listed // nil if it was not recorded in time
}

// status returns the status of the response: 200 for a message that was accepted before, else 202.
func (s accepted) status() int {
	if s.known {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// envelope returns the envelope of a complete body.
func (a API) envelope(b payload.Body) event.Envelope {
	return event.Envelope{Workspace: a.Workspace, Platform: event.Web, Transport: "api", ReceivedAt: a.Now(), Body: b.Bytes()}
}

// send passes a complete body to the durable accept, and waits until its message is recorded.
func (a API) send(r *http.Request, b payload.Body) (s accepted, err error) {
	receipt, err := a.Inbox.Accept(r.Context(), a.envelope(b))
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTimeout)
	defer cancel()
	settled, err := a.Recorded.Wait(ctx, receipt.ID)
	s = accepted{id: receipt.MessageUUID, known: receipt.Duplicate}
	switch {
	case err != nil || settled == nil:
	case settled.Disposition == event.Dead:
		return s, fail(http.StatusInternalServerError, "dead", "the message could not be recorded; it is now a dead letter")
	case settled.Disposition == event.Ignored && settled.Reason == event.ReasonLimit:
		return s, errLimit
	case settled.Message == nil || settled.Disposition == event.Ignored:
		return s, fail(http.StatusForbidden, "refused", "the workspace's policy does not admit this message: "+settled.Reason)
	default:
		s.known, s.message = s.known || settled.Disposition == event.Duplicate, settled.Message
	}
	return s, nil
}

// message is a message in a response.
type message struct {
	ID              string             `json:"id"`
	ClientMessageID string             `json:"client_message_id,omitempty"`
	ThreadSeq       int64              `json:"thread_seq"`
	Role            string             `json:"role"`
	Kind            string             `json:"kind,omitempty"` // notice
	SenderID        string             `json:"sender_id"`
	Content         string             `json:"content"`
	Metadata        json.RawMessage    `json:"metadata"`
	Attachments     []event.Attachment `json:"attachments"`
	Trigger         journal.Trigger    `json:"trigger"`
	Reason          string             `json:"reason,omitempty"`
	Run             *run               `json:"run,omitempty"` // that the message asked for
	CreatedAt       time.Time          `json:"created_at"`
	EditedAt        *time.Time         `json:"edited_at,omitempty"`
	DeletedAt       *time.Time         `json:"deleted_at,omitempty"`
	// The fields of replies. A notice has the id of its run too.
	RunID         string `json:"run_id,omitempty"`
	BaseSeq       *int64 `json:"base_seq,omitempty"`
	LatestSeenSeq *int64 `json:"latest_seen_seq,omitempty"`
	ServerSeq     *int64 `json:"server_seq_at_submit,omitempty"`
	Stale         *bool  `json:"stale,omitempty"` // when it was submitted; nil if unknown
	StaleLag      *int64 `json:"stale_lag,omitempty"`
}

// run is the run of a message: queued, running, done, failed or cancelled.
type run struct {
	ID    *string `json:"id"` // nil before the run begins
	State string  `json:"state"`
	Error *string `json:"error"` // for people; nil for none
	Cause string  `json:"cause,omitempty"`
}

// view returns a message as the caller may see it. Only an integration sees why a run failed.
func view(m *journal.Listed, c caller) message {
	v := m.View()
	out := message{
		ID: m.UUID, ClientMessageID: m.ClientMessageID, ThreadSeq: v.ThreadSeq, Role: v.Role, SenderID: m.SenderID,
		Content: display(&m.Message), Metadata: v.Metadata, Attachments: v.Attachments, Trigger: m.Trigger, Reason: m.Reason,
		CreatedAt: m.CreatedAt, EditedAt: given(m.EditedAt), DeletedAt: given(m.DeletedAt),
	}
	switch m.Author {
	case journal.BySystem:
		out.Kind, out.RunID = "notice", m.Run
	case journal.ByAgent:
		out.RunID = m.Run
	}
	if asked := m.Asked; asked != nil {
		out.Run = &run{ID: given(asked.ID), State: asked.State, Error: given(asked.Error)}
		if c.isIntegration() {
			out.Run.Cause = asked.Cause
		}
	}
	if f := m.Freshness; f != nil {
		out.BaseSeq, out.LatestSeenSeq, out.ServerSeq = f.BaseSeq, f.LatestSeenSeq, &f.ServerSeq
		out.Stale, out.StaleLag = event.IsStale(f.BaseSeq, f.ServerSeq), event.ComputeStaleLag(f.BaseSeq, f.ServerSeq)
	}
	return out
}

// given returns a pointer to a value; nil for the zero value.
func given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// display returns the text of a message for people: a row from before the ingest contract
// has a prefix in its content.
func display(m *journal.Message) string {
	if m.Version != 0 {
		return m.Content
	}
	metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names no source
	return legacy.Strip(m.Content, metadata.Source, int(m.Version))
}

// ListMessages responds with a page of a thread's messages: GET
// /api/v1/workspaces/{workspace}/threads/{thread_id}/messages?after=&before=&limit=
func (a API) ListMessages(w http.ResponseWriter, r *http.Request) error {
	c, err := a.admit(w, r, caller.reads)
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
	if err := a.admitThread(r, c, id); err != nil {
		return err
	}
	end, err := a.Streams.pages.begin(r.Context(), streamOwner{c.workspace, c.token.ID})
	if err != nil {
		return err
	}
	defer end()
	messages, err := a.Store.ThreadMessages(r.Context(), a.Workspace, id, page)
	if err != nil {
		return err
	}
	return respondList(w, "messages", pointers(messages), func(m *journal.Listed) any { return view(m, c) }, member{"next", nextSeq(messages, page)})
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
func nextSeq(list []journal.Listed, page journal.Page) *int64 {
	switch {
	case !journal.IsFull(list, page.Limit):
		return nil
	case page.Before > 0 && page.After == 0:
		return &list[0].Seq
	}
	return &list[len(list)-1].Seq
}

// pageOf reads the bounds of a page of messages from the query.
func pageOf(r *http.Request, faults *event.FieldErrors) journal.Page {
	return journal.Page{After: seqOf(r, "after", faults), Before: seqOf(r, "before", faults), Limit: limitOf(r, faults)}
}

// seqOf reads a thread_seq from the query; 0 if it is absent.
func seqOf(r *http.Request, name string, faults *event.FieldErrors) int64 {
	s := r.URL.Query().Get(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	faults.Check(err == nil && n >= 0, name, "must be a thread_seq: 0 or more")
	return n
}
