package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// maxBody bounds the body of a POST, in bytes.
	maxBody = 256 << 10
	// bodyTimeout bounds the arrival of a body.
	bodyTimeout = 10 * time.Second
	// recordTimeout bounds a POST's wait for the recording of its message.
	recordTimeout = 2 * time.Second
	// pageLimit is the largest page of a list of messages; defaultPage is the default.
	pageLimit, defaultPage = 500, 100
)

// Messages reads messages from the journal. The API needs no more of it.
type Messages interface {
	Messages(ctx context.Context, thread event.ThreadKey, after int64, limit int) ([]journal.Listed, error)
}

// Recorded waits for the result of an envelope's processing. Wait returns nil if ctx ends
// first.
type Recorded interface {
	Wait(ctx context.Context, envelope int64) (*journal.Settled, error)
}

// Adapter is the adapter of a workspace on Parley's own HTTP API.
type Adapter struct {
	Normalizer
	workspace string
	config    Config
}

var _ adapters.Adapter = (*Adapter)(nil)

// Platform describes Parley's own HTTP API.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Web, Title: "the HTTP API", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: Normalizer{}, Recorded: Stamp, API: true,
	}
}

// New returns the adapter of a workspace.
func New(workspace string, config Config) *Adapter {
	return &Adapter{workspace: workspace, config: config}
}

// Limits implements adapters.Adapter. The adapter sends nothing, because clients read the
// replies.
func (*Adapter) Limits() adapters.Limits { return adapters.Limits{} }

// API provides the handlers of the workspace's routes.
type API struct {
	*Adapter
	Inbox    adapters.Inbox
	Recorded Recorded
	Messages Messages
	// Rejected receives the reason of every refused request.
	Rejected func(reason string)
	Now      func() time.Time
}

// Post accepts a message: POST /api/v1/workspaces/{workspace}/messages.
func (a API) Post(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > maxBody {
		a.fail(w, http.StatusRequestEntityTooLarge, "too-large", "the body must not be longer than 256 KiB", nil)
		return
	}
	caller, ok := a.admit(w, r)
	if !ok {
		return
	}
	raw, ok := a.body(w, r)
	if !ok {
		return
	}
	b, err := caller.complete(raw)
	if err != nil {
		var faults event.FieldErrors
		errors.As(err, &faults)
		a.fail(w, http.StatusBadRequest, "invalid", "the body has faults", faults)
		return
	}
	a.accept(w, r, b)
}

func (a API) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	// If the connection does not support a deadline, the server's own applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		a.fail(w, http.StatusRequestEntityTooLarge, "too-large", "the body must not be longer than 256 KiB", nil)
	case err != nil:
		a.fail(w, http.StatusRequestTimeout, "slow", "the body did not arrive in time", nil)
	}
	return raw, err == nil
}

// accept passes a complete body to the durable accept, and responds with the result.
func (a API) accept(w http.ResponseWriter, r *http.Request, b Body) {
	receipt, err := a.Inbox.Accept(r.Context(), event.Envelope{
		Workspace: a.workspace, Platform: event.Web, Transport: "api", ReceivedAt: a.Now(), Body: b.Bytes(),
	})
	if err != nil {
		w.Header().Set("Retry-After", "1")
		a.fail(w, http.StatusServiceUnavailable, "busy", "the store cannot store the message now; send it again", nil)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTimeout)
	defer cancel()
	settled, err := a.Recorded.Wait(ctx, receipt.ID)
	status := http.StatusAccepted
	if receipt.Duplicate || err == nil && settled != nil && settled.Disposition == event.Duplicate {
		status = http.StatusOK
	}
	switch {
	case err != nil || settled == nil:
		respond(w, status, map[string]any{"thread_id": b.ThreadID, "message": map[string]string{"id": cmp.Or(b.ClientMessageID, b.MessageID)}})
	case settled.Disposition == event.Dead:
		a.fail(w, http.StatusInternalServerError, "dead", "the message could not be recorded; it is now a dead letter", nil)
	case settled.Message == nil || settled.Disposition == event.Ignored:
		a.fail(w, http.StatusForbidden, "refused", "the workspace's policy does not admit this message: "+settled.Reason, nil)
	default:
		respond(w, status, map[string]any{"thread_id": b.ThreadID, "message": settled.Message.View()})
	}
}

// listed is a message in the response of List.
type listed struct {
	journal.View
	CreatedAt time.Time  `json:"created_at"`
	EditedAt  *time.Time `json:"edited_at,omitempty"`
	DeletedAt *time.Time `json:"deleted_at,omitempty"`
	// The fields of replies.
	RunID         string `json:"run_id,omitempty"`
	BaseSeq       *int64 `json:"base_seq,omitempty"`
	LatestSeenSeq *int64 `json:"latest_seen_seq,omitempty"`
	ServerSeq     *int64 `json:"server_seq_at_submit,omitempty"`
}

// List responds with a page of a thread's messages: GET
// /api/v1/workspaces/{workspace}/threads/{thread_id}/messages?after=&limit=
func (a API) List(w http.ResponseWriter, r *http.Request) {
	if _, ok := a.admit(w, r); !ok {
		return
	}
	id := strings.ToLower(r.PathValue("thread_id"))
	after, limit, faults := page(r)
	if len(id) != 36 || uuid.Validate(id) != nil {
		faults = append(faults, event.FieldError{Field: "thread_id", Message: "must be a UUID"})
	}
	if len(faults) > 0 {
		a.fail(w, http.StatusBadRequest, "invalid", "the request has faults", faults)
		return
	}
	messages, err := a.Messages.Messages(r.Context(), ThreadKey(a.workspace, id), after, limit)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		a.fail(w, http.StatusNotFound, "not-found", "the workspace has no such thread", nil)
		return
	case err != nil:
		a.fail(w, http.StatusServiceUnavailable, "busy", "the store cannot read messages now", nil)
		return
	}
	list := make([]listed, len(messages))
	var next *int64
	for i := range messages {
		list[i] = view(&messages[i])
	}
	if len(list) == limit {
		next = &list[limit-1].ThreadSeq
	}
	respond(w, http.StatusOK, map[string]any{"messages": list, "next": next})
}

func view(m *journal.Listed) listed {
	l := listed{View: m.View(), CreatedAt: m.CreatedAt}
	if !m.EditedAt.IsZero() {
		l.EditedAt = &m.EditedAt
	}
	if !m.DeletedAt.IsZero() {
		l.DeletedAt = &m.DeletedAt
	}
	if f := m.Freshness; f != nil {
		l.RunID = m.Run
		l.BaseSeq, l.LatestSeenSeq, l.ServerSeq = &f.BaseSeq, &f.LatestSeenSeq, &f.ServerSeq
	}
	return l
}

// page reads the page's cursor and length from the query.
func page(r *http.Request) (after int64, limit int, faults event.FieldErrors) {
	limit = defaultPage
	if s := r.URL.Query().Get("after"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if after = n; err != nil || n < 0 {
			faults = append(faults, event.FieldError{Field: "after", Message: "must be a thread_seq: 0 or more"})
		}
	}
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if limit = n; err != nil || n < 1 || n > pageLimit {
			faults = append(faults, event.FieldError{Field: "limit", Message: "must be 1 to " + strconv.Itoa(pageLimit)})
		}
	}
	return after, limit, faults
}

// fail responds with an error and reports its code to Rejected.
func (a API) fail(w http.ResponseWriter, status int, code, message string, fields event.FieldErrors) {
	a.Rejected(code)
	body := map[string]any{"code": code, "message": message}
	if len(fields) > 0 {
		body["fields"] = fields
	}
	respond(w, status, map[string]any{"error": body})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // an error means that the client has disconnected
}
