package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/assembly/stream"
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
	// pageLimit is the largest page of a list; defaultPage is the default.
	pageLimit, defaultPage = 500, 100
)

// Store reads from the journal. The API needs no more of it.
type Store interface {
	ThreadMessages(ctx context.Context, workspace, threadID string, page journal.Page) ([]journal.Listed, error)
	Threads(ctx context.Context, workspace, before string, limit int) ([]journal.ThreadSummary, error)
	ThreadStore
	ThreadFollower
}

// ThreadStore has the threads of the documents.
type ThreadStore interface {
	MakeThread(ctx context.Context, platform event.Platform, channel string, n journal.Thread) (t journal.Thread, made bool, err error)
	Thread(ctx context.Context, workspace, id string) (journal.Thread, error)
	ThreadsMadeBy(ctx context.Context, workspace, madeBy, before string, limit int) ([]journal.Thread, error)
	Senders(ctx context.Context, t *journal.Thread) ([]journal.Sender, error)
}

// ThreadFollower reads the changes of a thread, and tells of new ones.
type ThreadFollower interface {
	ThreadChanges(ctx context.Context, t *journal.Thread, upTo int64, since time.Time, limit int) ([]journal.Listed, error)
	FollowThread(t *journal.Thread) (changed <-chan struct{}, stop func())
}

// Files stores the attachments of messages.
type Files interface {
	Put(ctx context.Context, file stream.File) (journal.File, error)
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

// API provides the handlers of a workspace's routes. Each resource has a file of its own.
type API struct {
	// Adapter is the workspace's own adapter. It has no tokens if the workspace is none of
	// our API, or is not configured.
	*Adapter
	Workspace string
	// Others returns the adapters of all workspaces of our API: the tokens of each may read
	// further workspaces.
	Others func() []*Adapter
	// Asks reports whether the workspace has an agent with this id.
	Asks func(agent string) bool
	// Agents are the ids of the workspace's agents, its own one first.
	Agents []string

	Inbox    adapters.Inbox
	Recorded Recorded
	Limits   Limits
	Store    Store
	Files    Files
	Runs     Runs
	Updates  Updates
	Tickets  Tickets
	// Stop ends an unfinished run because its reader wants no answer. The notice informs the
	// thread.
	Stop    func(ctx context.Context, run string, notice journal.Notice) error
	Streams *Streams
	Days    Days
	Storage Storage
	Guard   *guard.Guard
	Now     func() time.Time
}

func (a API) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	return a.bodyUpTo(w, r, "the body must have at most 256 KiB and arrive within 10 seconds")
}

// bodyUpTo reads a body. tooLarge is the message of the error for one that is too long.
func (a API) bodyUpTo(w http.ResponseWriter, r *http.Request, tooLarge string) ([]byte, bool) {
	raw, refusal := a.Guard.Body(w, r, guard.Limit{Bytes: maxBody, Time: bodyTimeout})
	switch {
	case refusal == nil:
	case refusal.Status == http.StatusRequestEntityTooLarge:
		a.fail(w, refusal.Status, refusal.Reason, tooLarge, nil)
	default:
		a.fail(w, refusal.Status, refusal.Reason, "the body must arrive within 10 seconds", nil)
	}
	return raw, refusal == nil
}

// fail responds with an error and reports its code to the guard.
func (a API) fail(w http.ResponseWriter, status int, code, message string, fields event.FieldErrors) {
	a.Guard.Rejected(code)
	body := map[string]any{"code": code, "message": message}
	if len(fields) > 0 {
		body["fields"] = fields.Capped()
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

// limitOf reads the length of a page from the query.
func limitOf(r *http.Request, faults *event.FieldErrors) int {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return defaultPage
	}
	n, err := strconv.Atoi(s)
	faults.Check(err == nil && n >= 1 && n <= pageLimit, "limit", "must be 1 to "+strconv.Itoa(pageLimit))
	return n
}

// failWith responds to faults of the request, or to an error of the store.
func (a API) failWith(w http.ResponseWriter, err error) {
	if faults, ok := errors.AsType[event.FieldErrors](err); ok {
		a.fail(w, http.StatusBadRequest, "invalid", "the request has faults", faults)
	} else if errors.Is(err, journal.ErrNotFound) {
		a.fail(w, http.StatusNotFound, "not-found", "the workspace has no such thread", nil)
	} else {
		w.Header().Set("Retry-After", "1")
		a.fail(w, http.StatusServiceUnavailable, "busy", "the store does not answer now; send the request again", nil)
	}
}

// isFaulty reports whether a request has faults, and responds with them.
func (a API) isFaulty(w http.ResponseWriter, faults event.FieldErrors) bool {
	if len(faults) > 0 {
		a.failWith(w, faults)
	}
	return len(faults) > 0
}
