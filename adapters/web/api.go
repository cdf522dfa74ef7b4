package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/web/payload"
	"parley/assembly/runinput"
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
	ThreadLists
	ThreadFollower
	ThreadParticipants
	ActorNews
}

// ThreadStore has the threads of the documents.
type ThreadStore interface {
	MakeThread(ctx context.Context, platform event.Platform, channel string, n journal.Thread, participants ...string) (t journal.Thread, made bool, err error)
	Thread(ctx context.Context, workspace, id string) (journal.Thread, error)
	SetThreadMode(ctx context.Context, t *journal.Thread, mode journal.ThreadMode) error
}

// ThreadLists finds the threads of a caller, and the senders of a thread.
type ThreadLists interface {
	ThreadsOf(ctx context.Context, workspace, actor string, open bool, before string, limit int) ([]journal.Thread, error)
	NewestMadeBy(ctx context.Context, workspace, madeBy string) (journal.Thread, error)
	Senders(ctx context.Context, t *journal.Thread) ([]journal.Sender, error)
}

// ThreadParticipants has the callers that take part in threads.
type ThreadParticipants interface {
	Participants(ctx context.Context, t *journal.Thread) ([]string, error)
	TakesPart(ctx context.Context, t *journal.Thread, actor string) (bool, error)
	AddParticipant(ctx context.Context, t *journal.Thread, actor string) (added bool, err error)
	RemoveParticipant(ctx context.Context, t *journal.Thread, actor string) error
}

// ActorNews reads what callers learn, and tells of more.
type ActorNews interface {
	NewsOf(ctx context.Context, workspace, actor string, open bool, after int64, limit int) ([]journal.News, error)
	FollowNews(workspace, actor string) (changed <-chan struct{}, stop func())
}

// ThreadFollower reads the changes of a thread, and tells of new ones.
type ThreadFollower interface {
	ThreadChanges(ctx context.Context, t *journal.Thread, upTo int64, since time.Time, limit int) ([]journal.Listed, error)
	FollowThread(t *journal.Thread) (changed <-chan struct{}, stop func())
}

// Files stores the attachments of messages.
type Files interface {
	PutFor(ctx context.Context, sender string, file stream.File) (journal.File, error)
}

// Recorded waits for the result of an envelope's processing. Wait returns nil if ctx ends
// first.
type Recorded interface {
	Wait(ctx context.Context, envelope int64) (*journal.EnvelopeResult, error)
}

// Adapter is the adapter of a workspace on Parley's own HTTP API.
type Adapter struct {
	payload.Normalizer
	workspace string
	config    Config
}

var _ adapters.Adapter = (*Adapter)(nil)

// Platform describes Parley's own HTTP API.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Web, Title: "the HTTP API", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: payload.Normalizer{}, Recorded: payload.Stamp, API: true,
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
	Keys    *KeySets
	Guard   *guard.Guard
	Now     func() time.Time

	notFound string // the message of the error for journal.ErrNotFound; empty for the usual one
}

// failure is the error of a request. The response has its status, code, message and fields.
type failure struct {
	status        int
	code, message string
	fields        event.FieldErrors
}

// Error returns the message.
func (f *failure) Error() string { return f.message }

func fail(status int, code, message string) error { return &failure{status, code, message, nil} }

// Serve responds to a request with serve, or to its error.
func (a API) Serve(w http.ResponseWriter, r *http.Request, serve func(API, http.ResponseWriter, *http.Request) error) {
	if err := serve(a, w, r); err != nil {
		a.fail(w, err)
	}
}

// fail responds to the error of a handler, and reports its code to the guard. The error is a
// failure, faults of the request, or the store's.
func (a API) fail(w http.ResponseWriter, err error) {
	f, _ := errors.AsType[*failure](err)
	faults, _ := errors.AsType[event.FieldErrors](err)
	rule, broken := errors.AsType[runinput.Fault](err)
	switch {
	case f != nil:
	case broken:
		f = &failure{http.StatusBadRequest, "invalid", rule.Error(), nil}
	case faults != nil:
		f = &failure{http.StatusBadRequest, "invalid", "the request has faults", faults}
	case errors.Is(err, journal.ErrNotFound):
		f = &failure{http.StatusNotFound, "not-found", cmp.Or(a.notFound, "the workspace has no such thread"), nil}
	case errors.Is(err, journal.ErrEnded):
		f = &failure{http.StatusGone, "ended", err.Error(), nil}
	default:
		if !journal.Unavailable(err) && !errors.Is(err, adapters.ErrBusy) { // these are logged elsewhere
			a.Guard.Fault(err)
		}
		w.Header().Set("Retry-After", "1")
		f = &failure{http.StatusServiceUnavailable, "busy", "the store does not answer now; send the request again", nil}
	}
	a.Guard.Rejected(f.code)
	body := map[string]any{"code": f.code, "message": f.message}
	if len(f.fields) > 0 {
		body["fields"] = f.fields.Capped()
	}
	_ = respond(w, f.status, map[string]any{"error": body})
}

// body reads a body, with U+FFFD for invalid UTF-8. tooLarge is the message of the error for one that is too long.
func (a API) body(w http.ResponseWriter, r *http.Request, tooLarge string) ([]byte, error) {
	raw, refusal := a.Guard.Body(w, r, guard.Limit{Bytes: maxBody, Time: bodyTimeout})
	switch {
	case refusal == nil:
		return payload.ValidUTF8(raw), nil
	case refusal.Status == http.StatusRequestEntityTooLarge:
		return nil, fail(refusal.Status, refusal.Reason, tooLarge)
	}
	return nil, fail(refusal.Status, refusal.Reason, "the body must arrive within 10 seconds")
}

// respond responds with JSON. It returns nil, so that a handler can return it.
func respond(w http.ResponseWriter, status int, body any) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // an error means that the client has disconnected
	return nil
}

// member is a member of a JSON object.
type member struct {
	key   string
	value any
}

// respondList responds with a list and further members. It encodes one row at a time, so that the
// answer is never in memory as a whole.
func respondList[T any](w http.ResponseWriter, key string, list []T, view func(T) any, more ...member) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	var row bytes.Buffer
	encoder := json.NewEncoder(&row)
	encoder.SetEscapeHTML(false)
	write := func(before string, value any) {
		row.Reset()
		row.WriteString(before)
		_ = encoder.Encode(value)                                   // each value of a response encodes
		_, _ = w.Write(bytes.TrimSuffix(row.Bytes(), []byte("\n"))) // an error means that the client has disconnected
	}
	before := `{"` + key + `":[`
	for _, one := range list {
		write(before, view(one))
		before = ","
	}
	if len(list) == 0 {
		_, _ = io.WriteString(w, before)
	}
	_, _ = io.WriteString(w, "]")
	for _, m := range more {
		write(`,"`+m.key+`":`, m.value)
	}
	_, _ = io.WriteString(w, "}\n")
	return nil
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
