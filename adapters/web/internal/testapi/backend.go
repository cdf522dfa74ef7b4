// Package testapi is a fake of the parts of the daemon that the HTTP API calls, with a server of its routes.
package testapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/files"
	"parley/adapters/web/payload"
	"parley/adapters/web/speak"
	webthreads "parley/adapters/web/threads"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// The UUID of a thread, the UUID of a recorded message, and the metadata of an integration.
const (
	Thread  = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	RowID   = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	CRMJSON = `{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot","x":1e2}`
)

// Noon is the time of every request.
var Noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// Backend is a fake of the parts that the API calls: the durable accept, intake and the
// journal.
type Backend struct {
	madeBy              string // of every thread; empty if there is none
	webthreads.Places          // makes no threads, and lists and follows none
	webthreads.Messages        // has none
	Accepted            []event.Envelope
	Receipt             adapters.Receipt
	Busy                error
	Faults              []error
	Result              func(b payload.Body) *envelopes.Result // nil: the wait times out
	Listed              []messages.Listed
	List                error
	Asked               string // workspace and thread
	Page                messages.Page
	Summaries           []messages.ThreadSummary
	Files               []stream.File
	Unkept              error
	Rejected            []string
	Local               bool
}

// Accept implements adapters.Inbox.
func (b *Backend) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	if b.Busy != nil {
		return adapters.Receipt{}, b.Busy
	}
	b.Accepted = append(b.Accepted, e)
	return b.Receipt, nil
}

// Wait implements threads.Recorded.
func (b *Backend) Wait(context.Context, int64) (*envelopes.Result, error) {
	body, err := payload.ReadBody(b.Accepted[len(b.Accepted)-1].Body)
	if err != nil || b.Result == nil {
		return nil, err
	}
	return b.Result(body), nil
}

// ThreadMessages returns the listed messages.
func (b *Backend) ThreadMessages(_ context.Context, workspace, threadID string, page messages.Page) ([]messages.Listed, error) {
	b.Asked, b.Page = workspace+"/"+threadID, page
	return b.Listed[:min(page.Limit, len(b.Listed))], b.List
}

// Thread returns a thread that madeBy made.
func (b *Backend) Thread(_ context.Context, workspace, id string) (threads.Thread, error) {
	if b.madeBy == "" {
		return threads.Thread{}, storage.ErrNotFound
	}
	return threads.Thread{ID: id, MadeBy: b.madeBy}, nil
}

// Threads returns the summaries.
func (b *Backend) Threads(_ context.Context, workspace, before string, limit int) ([]messages.ThreadSummary, error) {
	b.Asked = workspace + "/" + before
	return b.Summaries[:min(limit, len(b.Summaries))], b.List
}

// PutFor implements files.Store.
func (b *Backend) PutFor(_ context.Context, _ string, file stream.File) (outbox.File, error) {
	b.Files = append(b.Files, file)
	return outbox.File{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data)), Bucket: "b", Path: "ab/abcd"}, b.Unkept
}

// Stored returns the result of an envelope whose message was stored.
func Stored(b payload.Body) *envelopes.Result {
	return &envelopes.Result{
		Result: event.Result{Disposition: event.Stored},
		Message: &messages.Listed{
			Message: messages.Message{
				Seq: 1, UUID: RowID, ClientMessageID: b.ClientMessageID, SenderID: "web:olivia", Author: messages.ByHuman, Version: 1,
				Trigger: messages.TriggerRun, Reason: event.ReasonDirect, Content: b.Content, Metadata: b.Metadata, CreatedAt: Noon,
			},
			Asked: &messages.Asked{State: "queued"},
		},
	}
}

// WithResult is Stored with another result.
func WithResult(f event.Result) func(payload.Body) *envelopes.Result {
	return func(b payload.Body) *envelopes.Result {
		s := Stored(b)
		s.Result = f
		if f.Disposition == event.Dead {
			s.Message = nil
		}
		return s
	}
}

// The tokens of the test's workspaces, ours and theirs.
const (
	OwnToken    = "own-token"
	AnyToken    = "any-token"
	ReaderToken = "reader-token" // of theirs; it reads ours and acme
)

// Serve starts a server with the routes of the workspaces ours and theirs, and of acme, which
// is on another platform.
func (b *Backend) Serve(t *testing.T) *httptest.Server {
	t.Helper()
	workspaces := []access.Workspace{
		{ID: "ours", Agents: []string{"helper", "other"}, Config: access.Config{Local: b.Local, Tokens: []access.Token{
			{ID: "olivia", Name: "Olivia", Token: secret.New(OwnToken), Senders: access.SendersOwn},
			{ID: "crm", Name: "CRM", Token: secret.New(AnyToken), Senders: access.SendersAny},
		}}},
		{ID: "theirs", Config: access.Config{Tokens: []access.Token{
			{ID: "console", Name: "Console", Token: secret.New(ReaderToken), Read: []string{"ours", "acme"}},
		}}},
	}
	guards := guard.New(func(reason string) { b.Rejected = append(b.Rejected, reason) })
	guards.Fault = func(err error) { b.Faults = append(b.Faults, err) }
	api := webthreads.API{
		Gate:    access.Gate{Workspaces: func() []access.Workspace { return workspaces }, Guard: guards},
		Storage: files.Storage{Links: &files.Links{Base: func() string { return "https://parley.example" }}, Store: b},
		Inbox:   b, Recorded: b, Places: b, Messages: b, Streams: exchange.NewStreams(), Now: func() time.Time { return Noon },
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{workspace}/messages", speak.API{Threads: api}.PostMessage)
	mux.HandleFunc("GET /{workspace}/threads", api.ListThreads)
	mux.HandleFunc("GET /{workspace}/threads/{thread_id}/messages", api.ListMessages)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// Answer is a decoded response.
type Answer struct {
	Status int
	Body   map[string]any
}

// Do sends a request to a workspace, which is ours unless the path names another one.
func Do(t *testing.T, server *httptest.Server, method, path, body string, header ...string) Answer {
	t.Helper()
	if !strings.HasPrefix(path, "/acme/") && !strings.HasPrefix(path, "/theirs/") {
		path = "/ours" + path
	}
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer own-token")
	request.Header.Set("Content-Type", "application/json")
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
	defer response.Body.Close()
	a := Answer{Status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(&a.Body); err != nil {
		t.Fatal(err)
	}
	return a
}

// Faults returns the faulty fields that a response names.
func (a Answer) Faults() (fields []string) {
	problem, _ := a.Body["error"].(map[string]any)
	list, _ := problem["fields"].([]any)
	for _, f := range list {
		fields = append(fields, f.(map[string]any)["field"].(string))
	}
	return fields
}

// AgentActor is the actor of the agent outside Parley.
const AgentActor = payload.Actor("agent:6ba7b811-9dad-41d1-80b4-00c04fd430c8")

// Ask sends a request and returns its status and body.
func Ask(t *testing.T, server *httptest.Server, route, body string, header ...string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	request := httptest.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	request.RemoteAddr = "127.0.0.1:1"
	request.Host = "localhost"
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response := httptest.NewRecorder()
	server.Config.Handler.ServeHTTP(response, request)
	return response.Code, response.Body.String()
}

// Post returns the status and the body of a POST of JSON with a token.
func Post(t *testing.T, server *httptest.Server, token, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}
