// Package testapi serves the HTTP API to tests, on the journal of a new SQLite file and with the real intake of messages. The
// agents of its workspaces are the tests themselves.
package testapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/files"
	"parley/adapters/web/payload"
	"parley/adapters/web/runs"
	"parley/adapters/web/speak"
	"parley/adapters/web/threads"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	journalruns "parley/ingest/journal/runs"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// The UUIDs of two threads, and the metadata of an integration.
const (
	Thread  = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	Other   = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	CRMJSON = `{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot","x":1e2}`
)

// The tokens of the workspaces ours and theirs.
const (
	OwnToken   = "own-token"
	AnyToken   = "any-token"
	AgentToken = "agent-token" // of AgentActor

	TheirToken  = "their-token"
	TheirAgent  = "their-agent"  // of AgentActor; it reads ours
	ReaderToken = "reader-token" // it reads ours and acme
)

// AgentActor is the actor of the agent outside Parley.
const AgentActor = payload.Actor("agent:6ba7b811-9dad-41d1-80b4-00c04fd430c8")

// The secrets of the agents, which may answer later. All messages are for the agent helper.
const (
	HookSecret  = "the-secret-of-the-agent-helper"
	OtherSecret = "a-secret-of-another-agent"
)

// Noon is the time at which a test begins.
var Noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// API is the HTTP API with its journal.
type API struct {
	testing.TB
	Journal *journal.Journal
	Ingest  *ingest.Ingest
	Server  *httptest.Server
	// Settings are those of all workspaces. A test changes them before its first request.
	Settings ingest.Settings
	// Local makes ours the built-in workspace, from the next request on.
	Local bool
	// Accept sees each envelope before Ingest accepts it, and may refuse it; nil for none.
	Accept func(event.Envelope) error
	// Normalize is called before an envelope is normalised, and may fail; nil for nothing. If ctx has ended, the envelope is
	// only tried, and is normalised again when its turn comes.
	Normalize func(context.Context) error
	// Write is called before the next write of the store; nil for nothing.
	Write atomic.Pointer[func()]
	// Broken makes each read of the store fail.
	Broken atomic.Bool
	// FilesDir is where files are stored.
	FilesDir string

	mu       sync.Mutex
	now      time.Time
	accepted []event.Envelope
	rejected []string
	faults   []error
	begun    chan *work.Claim // the threads with a due run
	handed   sync.Map         // the runs that began with their message, by thread
}

// New starts an API.
func New(t testing.TB) *API {
	t.Helper()
	a := &API{TB: t, now: Noon, FilesDir: t.TempDir(), begun: make(chan *work.Claim, 100)}
	a.Settings = ingest.Settings{Agent: "helper", Policy: ingest.DefaultPolicy(), KeepMetadata: true, API: true, Coalesce: time.Millisecond, CoalesceMax: time.Millisecond}
	a.Settings.Policy.BotMessages = ingest.BotsRun
	a.Settings.HasAgent = func(agent string) bool { return slices.Contains(agents, agent) }
	a.Settings.Asks = a.Settings.HasAgent
	store, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "journal.db"), sqlite.Options{})
	a.must(err)
	wrapped := engine{store, a}
	a.Journal = journal.New(wrapped, journal.Options{Node: "test", Now: a.Now})
	log := slog.New(slog.DiscardHandler)
	scheduler := work.New(wrapped, work.Options{Node: "test", Log: log})
	a.Ingest = ingest.New(ingest.Parts{Journal: a.Journal, Work: scheduler, Turns: wakes{a, scheduler}, Observer: nobody{}, Notices: nobody{}, Log: log, Now: a.Now})
	var list []ingest.Workspace
	for _, id := range []string{"ours", "theirs"} {
		list = append(list, ingest.Workspace{ID: id, Platform: event.Web, Senders: string(event.Web), Normalizer: normalizer{api: a}, Settings: func(string, string) ingest.Settings { return a.Settings }})
	}
	a.must(a.Ingest.Configure(t.Context(), list))
	streams := exchange.NewStreams()
	a.Server = httptest.NewServer(a.routes(scheduler, streams))

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var workers sync.WaitGroup
	a.must(scheduler.AdjustClock(ctx))
	workers.Go(func() { _ = scheduler.Run(ctx) })
	workers.Go(func() { _ = a.Ingest.Run(ctx) })
	workers.Go(func() {
		_ = scheduler.Serve(ctx, work.Queue{Kind: work.Turns, Agent: "helper", Slots: 10, Do: func(_ context.Context, c *work.Claim) error {
			a.begun <- c
			<-ctx.Done() // the thread is the test's
			return nil
		}})
	})
	t.Cleanup(func() {
		streams.Close()
		a.Server.Close()
		stop()
		workers.Wait()
		_ = a.Journal.Close()
	})
	return a
}

// agents are those of ours.
var agents = []string{"helper", "other"}

// workspaces are ours and theirs. There is an acme on another platform, too.
func (a *API) workspaces() []access.Workspace {
	token := func(id, name, value string) access.Token {
		return access.Token{ID: id, Name: name, Token: secret.New(value), Senders: access.SendersOwn}
	}
	crm, helper := token("crm", "CRM", AnyToken), token("helper", "Helper", AgentToken)
	crm.Senders, helper.Actor = access.SendersAny, AgentActor
	theirHelper, console := token("helper", "Helper", TheirAgent), token("console", "Console", ReaderToken)
	theirHelper.Actor, theirHelper.Read, console.Read = AgentActor, []string{"ours"}, []string{"ours", "acme"}
	return []access.Workspace{
		{ID: "ours", Agents: agents, Config: access.Config{Local: a.Local, Tokens: []access.Token{token("olivia", "Olivia", OwnToken), crm, helper}}},
		{ID: "theirs", Config: access.Config{Tokens: []access.Token{token("olivia", "Olivia", TheirToken), theirHelper, console}}},
	}
}

// routes returns the handler of the API's routes, as the daemon has them.
func (a *API) routes(scheduler *work.Scheduler, streams *exchange.Streams) http.Handler {
	guards := guard.New(func(reason string) { a.note(func() { a.rejected = append(a.rejected, reason) }) })
	guards.Fault = func(err error) { a.note(func() { a.faults = append(a.faults, err) }) }
	j := a.Journal
	gate := access.Gate{
		Workspaces: a.workspaces, Guard: guards, Tickets: j.Threads,
		Secrets: func() map[string]secret.Value {
			return map[string]secret.Value{"helper": secret.New(HookSecret), "other": secret.New(OtherSecret)}
		},
	}
	store, err := attach.New(attach.Config{Dir: a.FilesDir, MaxBytes: 1000, TTL: time.Hour}, attach.Books{Hold: j.Files.HoldCopy}, nil)
	a.must(err)
	links := &files.Links{Base: func() string { return "https://parley.example" }, TTL: time.Hour, Now: a.Now, Key: func(ctx context.Context) ([]byte, error) { return j.Threads.Key(ctx, "links") }}
	t := threads.API{
		Gate: gate, Storage: files.Storage{Links: links, Copies: store, MaxBytes: 1000, Guard: guards},
		Inbox: inbox{a}, Ingest: a.Ingest, Places: j.Threads, Messages: j.Messages, Children: j.Workstreams, Streams: streams, Now: a.Now,
	}
	r := runs.API{
		Threads: t, Runs: j.Runs, Turns: turn.New(turn.Parts{Runs: j.Runs, Work: scheduler}), Children: j.Workstreams,
		Replies: runs.Replies{Gate: gate, Runs: j.Runs, Work: scheduler},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+ofWorkspaces+"{workspace}/messages", speak.API{Threads: t}.PostMessage)
	mux.HandleFunc("GET "+ofWorkspaces+"{workspace}/threads", t.ListThreads)
	mux.HandleFunc("GET "+ofWorkspaces+"{workspace}/threads/{thread_id}/messages", t.ListMessages)
	for _, route := range slices.Concat(gate.Routes(), t.Routes(), r.Routes()) {
		mux.HandleFunc(route.Pattern, gate.Handler(route))
	}
	return mux
}

const ofWorkspaces = "/api/v1/workspaces/"

// Now is the clock of the API and its journal. It stands still.
func (a *API) Now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// At sets the clock to a time after noon.
func (a *API) At(after time.Duration) { a.note(func() { a.now = Noon.Add(after) }) }

func (a *API) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// Accepted returns the envelopes that were accepted.
func (a *API) Accepted() (list []event.Envelope) {
	a.note(func() { list = slices.Clone(a.accepted) })
	return list
}

// Rejected returns the reasons of the refused requests.
func (a *API) Rejected() (list []string) {
	a.note(func() { list = slices.Clone(a.rejected) })
	return list
}

// Faults returns the errors that were no caller's fault.
func (a *API) Faults() (list []error) {
	a.note(func() { list = slices.Clone(a.faults) })
	return list
}

func (a *API) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// inbox accepts messages.
type inbox struct{ *API }

// Accept implements adapters.Inbox.
func (i inbox) Accept(ctx context.Context, e event.Envelope) (adapters.Receipt, error) {
	if i.API.Accept != nil {
		if err := i.API.Accept(e); err != nil {
			return adapters.Receipt{}, err
		}
	}
	receipt, err := i.Ingest.Accept(ctx, e)
	if err == nil {
		i.note(func() { i.accepted = append(i.accepted, e) })
	}
	return receipt, err
}

// normalizer is that of the API, with the faults of a test.
type normalizer struct {
	payload.Normalizer
	api *API
}

// Normalize implements adapters.Normalizer.
func (n normalizer) Normalize(ctx context.Context, e event.Envelope, d adapters.Directory) (event.Event, error) {
	if n.api.Normalize != nil {
		if err := n.api.Normalize(ctx); err != nil {
			return event.Event{}, err
		}
	}
	return n.Normalizer.Normalize(ctx, e, d)
}

// engine is the store with the faults of a test.
type engine struct {
	storage.Engine
	api *API
}

// Write implements storage.Engine.
func (e engine) Write(ctx context.Context, o storage.WriteOptions, fn func(storage.Tx) error) error {
	if before := e.api.Write.Swap(nil); before != nil {
		(*before)()
	}
	return e.Engine.Write(ctx, o, fn)
}

// Read implements storage.Engine.
func (e engine) Read(ctx context.Context, fn func(storage.Tx) error) error {
	if e.api.Broken.Load() {
		return fmt.Errorf("%w: the disk is gone", storage.ErrUnavailable)
	}
	return e.Engine.Read(ctx, fn)
}

// ReadOne implements storage.Engine.
func (e engine) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	if e.api.Broken.Load() {
		return fmt.Errorf("%w: the disk is gone", storage.ErrUnavailable)
	}
	return e.Engine.ReadOne(ctx, fn)
}

// wakes lets the turns of recorded messages begin.
type wakes struct {
	*API
	*work.Scheduler
}

// Unasked implements ingest.Turns.
func (wakes) Unasked(string, int64, string) {}

// Recorded implements ingest.Turns.
func (w wakes) Recorded(c *work.Claim, agent string, result record.Result) {
	if result.Begun != nil {
		w.handed.Store(c.Thread, result.Begun)
	}
	if !result.TurnDue.IsZero() {
		w.Wake(work.Turns, agent, c.Thread)
	}
}

// nobody sees what is recorded, and tells people nothing.
type nobody struct{}

func (nobody) Accepted(*event.Envelope, event.ThreadKey)                              {}
func (nobody) Processed(*envelopes.Pending, record.Result)                            {}
func (nobody) Notice(*journalruns.Run, string) []outbox.Post                          { return nil }
func (nobody) Announce(*journalruns.Run, *event.Message) []outbox.Post                { return nil }
func (nobody) Clear(*journalruns.Run) []outbox.Post                                   { return nil }
func (nobody) Above(context.Context, string, string) (key event.ThreadKey, err error) { return "", nil }

// Answer is a decoded response.
type Answer struct {
	Status int
	Body   map[string]any
}

// Do sends a request about a workspace, which is ours unless the path names another one, with OwnToken.
func (a *API) Do(method, path, body string, header ...string) Answer {
	a.Helper()
	if !strings.HasPrefix(path, "/acme/") && !strings.HasPrefix(path, "/theirs/") {
		path = "/ours" + path
	}
	header = append([]string{"Authorization", "Bearer " + OwnToken, "Content-Type", "application/json"}, header...)
	status, raw := a.Ask(method+" "+ofWorkspaces+path[1:], body, header...)
	answer := Answer{Status: status}
	a.must(json.Unmarshal([]byte(raw), &answer.Body))
	return answer
}

// FaultyFields returns the faulty fields that a response names.
func (a Answer) FaultyFields() (fields []string) {
	problem, _ := a.Body["error"].(map[string]any)
	list, _ := problem["fields"].([]any)
	for _, f := range list {
		fields = append(fields, f.(map[string]any)["field"].(string))
	}
	return fields
}

// Ask sends a request with some headers, and returns the status and the body of the response. The last value of a header counts.
func (a *API) Ask(route, body string, header ...string) (int, string) {
	a.Helper()
	return Ask(a, a.Server, route, body, header...)
}

// Ask sends a request to a server, as API.Ask does.
func Ask(t testing.TB, server *httptest.Server, route, body string, header ...string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	response := open(t, server, method, path, body, header...)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// Get returns the status and the body of a GET with a token.
func (a *API) Get(token, path string, header ...string) (int, string) {
	a.Helper()
	return a.Ask("GET "+path, "", append([]string{"Authorization", "Bearer " + token, "Accept-Encoding", "identity"}, header...)...)
}

// Post returns the status and the body of a POST of JSON with a token.
func (a *API) Post(token, path, body string) (int, string) {
	a.Helper()
	return a.Ask("POST "+path, body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
}

// Listen opens a stream with OwnToken. The test's end closes it.
func (a *API) Listen(path string, header ...string) io.Reader {
	a.Helper()
	response := open(a, a.Server, http.MethodGet, path, "", append([]string{"Authorization", "Bearer " + OwnToken}, header...)...)
	a.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		a.Fatal(path, response.Status)
	}
	return response.Body
}

func open(t testing.TB, server *httptest.Server, method, path, body string, header ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
		request.Header.Set(header[i], header[i+1])
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}
