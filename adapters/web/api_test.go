package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/web"
	"parley/adapters/web/payload"
	"parley/assembly/stream"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	thread  = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	rowID   = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	crmJSON = `{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot","x":1e2}`
)

var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// backend is a fake of the parts that the API calls: the durable accept, intake and the
// journal.
type backend struct {
	web.ThreadStore               // makes no threads
	madeBy                 string // of every thread; empty if there is none
	web.ThreadLists               // lists none
	web.ThreadFollower            // follows none
	web.ThreadParticipants        // has none
	web.ActorNews                 // has none
	accepted               []event.Envelope
	receipt                adapters.Receipt
	busy                   error
	faults                 []error
	result                 func(b payload.Body) *journal.EnvelopeResult // nil: the wait times out
	listed                 []journal.Listed
	list                   error
	asked                  string // workspace and thread
	page                   journal.Page
	threads                []journal.ThreadSummary
	files                  []stream.File
	unkept                 error
	rejected               []string
	local                  bool
}

func (b *backend) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	if b.busy != nil {
		return adapters.Receipt{}, b.busy
	}
	b.accepted = append(b.accepted, e)
	return b.receipt, nil
}

func (b *backend) Wait(context.Context, int64) (*journal.EnvelopeResult, error) {
	body, err := payload.ReadBody(b.accepted[len(b.accepted)-1].Body)
	if err != nil || b.result == nil {
		return nil, err
	}
	return b.result(body), nil
}

func (b *backend) ThreadMessages(_ context.Context, workspace, threadID string, page journal.Page) ([]journal.Listed, error) {
	b.asked, b.page = workspace+"/"+threadID, page
	return b.listed[:min(page.Limit, len(b.listed))], b.list
}

func (b *backend) Thread(_ context.Context, workspace, id string) (journal.Thread, error) {
	if b.madeBy == "" {
		return journal.Thread{}, journal.ErrNotFound
	}
	return journal.Thread{ID: id, MadeBy: b.madeBy}, nil
}

func (b *backend) Threads(_ context.Context, workspace, before string, limit int) ([]journal.ThreadSummary, error) {
	b.asked = workspace + "/" + before
	return b.threads[:min(limit, len(b.threads))], b.list
}

func (b *backend) PutFor(_ context.Context, _ string, file stream.File) (journal.File, error) {
	b.files = append(b.files, file)
	return journal.File{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data)), Bucket: "b", Path: "ab/abcd"}, b.unkept
}

// stored returns the result of an envelope whose message was stored.
func stored(b payload.Body) *journal.EnvelopeResult {
	return &journal.EnvelopeResult{
		Result: event.Result{Disposition: event.Stored},
		Message: &journal.Listed{
			Message: journal.Message{
				Seq: 1, UUID: rowID, ClientMessageID: b.ClientMessageID, SenderID: "web:olivia", Author: journal.ByHuman, Version: 1,
				Trigger: journal.TriggerRun, Reason: event.ReasonDirect, Content: b.Content, Metadata: b.Metadata, CreatedAt: noon,
			},
			Asked: &journal.Asked{State: "queued"},
		},
	}
}

func withResult(f event.Result) func(payload.Body) *journal.EnvelopeResult {
	return func(b payload.Body) *journal.EnvelopeResult {
		s := stored(b)
		s.Result = f
		if f.Disposition == event.Dead {
			s.Message = nil
		}
		return s
	}
}

// The tokens of the test's workspaces, ours and theirs.
const (
	ownToken    = "own-token"
	anyToken    = "any-token"
	readerToken = "reader-token" // of theirs; it reads ours and acme
)

// serve starts a server with the routes of the workspaces ours and theirs, and of acme, which
// is on another platform.
func (b *backend) serve(t *testing.T) *httptest.Server {
	t.Helper()
	adapters := map[string]*web.Adapter{
		"ours": web.New("ours", web.Config{Local: b.local, Tokens: []web.Token{
			{ID: "olivia", Name: "Olivia", Token: secret.New(ownToken), Senders: web.SendersOwn},
			{ID: "crm", Name: "CRM", Token: secret.New(anyToken), Senders: web.SendersAny},
		}}),
		"theirs": web.New("theirs", web.Config{Tokens: []web.Token{
			{ID: "console", Name: "Console", Token: secret.New(readerToken), Read: []string{"ours", "acme"}},
		}}),
		"acme": web.New("", web.DefaultConfig()),
	}
	mux, guards := http.NewServeMux(), guard.New(func(reason string) { b.rejected = append(b.rejected, reason) })
	guards.Fault = func(err error) { b.faults = append(b.faults, err) }
	streams := web.NewStreams()
	handle := func(pattern string, serve func(web.API, http.ResponseWriter, *http.Request) error) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /{workspace}"+path, func(w http.ResponseWriter, r *http.Request) {
			id := r.PathValue("workspace")
			web.API{
				Streams: streams,
				Adapter: adapters[id], Workspace: id, Others: func() []*web.Adapter { return []*web.Adapter{adapters["ours"], adapters["theirs"]} },
				Agents: []string{"helper", "other"}, Inbox: b, Recorded: b, Store: b, Files: b,
				Storage: web.Storage{Links: &web.Links{Base: func() string { return "https://parley.example" }}}, Guard: guards, Now: func() time.Time { return noon },
			}.Serve(w, r, serve)
		})
	}
	handle("POST /messages", web.API.PostMessage)
	handle("GET /threads", web.API.ListThreads)
	handle("GET /threads/{thread_id}/messages", web.API.ListMessages)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// answer is a decoded response.
type answer struct {
	Status int
	Body   map[string]any
}

func do(t *testing.T, server *httptest.Server, method, path, body string, header ...string) answer {
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
	a := answer{Status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(&a.Body); err != nil {
		t.Fatal(err)
	}
	return a
}

// faults returns the faulty fields that a response names.
func (a answer) faults() (fields []string) {
	problem, _ := a.Body["error"].(map[string]any)
	list, _ := problem["fields"].([]any)
	for _, f := range list {
		fields = append(fields, f.(map[string]any)["field"].(string))
	}
	return fields
}

// TestPostReturnsRecordedMessage checks that the response shows the message with its ids and
// its run.
func TestPostReturnsRecordedMessage(t *testing.T) {
	b := &backend{result: stored}
	got := do(t, b.serve(t), "POST", "/messages", `{"content":" <b>hi ","thread_id":"`+strings.ToUpper(thread)+`","client_message_id":"m1"}`)
	want := map[string]any{"thread_id": thread, "message": map[string]any{
		"id": rowID, "client_message_id": "m1", "sender_id": "web:olivia", "thread_seq": 1.0, "role": "user", "content": " <b>hi ", "attachments": []any{},
		"trigger": "run", "reason": "direct", "run": map[string]any{"id": nil, "state": "queued", "error": nil}, "created_at": noon.Format(time.RFC3339),
		"metadata": map[string]any{"source": "web", "sender_id": "web:olivia", "sender_display_name": "Olivia", "sender_type": "human"},
	}}
	if diff := cmp.Diff(answer{202, want}, got); diff != "" {
		t.Error(diff)
	}
	e := b.accepted[0]
	if e.Workspace != "ours" || e.Platform != event.Web || e.Transport != "api" || !e.ReceivedAt.Equal(noon) {
		t.Errorf("the accepted envelope is %+v", e)
	}
}

// TestPostFillsInIDs checks that Post adds a thread id and a message id before the durable
// accept, and returns the id of the message's row if it is not recorded in time.
func TestPostFillsInIDs(t *testing.T) {
	b := &backend{receipt: adapters.Receipt{MessageUUID: rowID}}
	got := do(t, b.serve(t), "POST", "/messages", `{"content":""}`)
	if id := got.Body["message"].(map[string]any)["id"]; id != rowID || uuid.Validate(got.Body["thread_id"].(string)) != nil || got.Status != 202 {
		t.Errorf("the response is %+v", got)
	}
	body, err := payload.ReadBody(b.accepted[0].Body)
	if err != nil || uuid.Validate(body.MessageID) != nil || body.ThreadID != got.Body["thread_id"] {
		t.Errorf("the accepted body is %s", b.accepted[0].Body)
	}
}

// TestStatuses checks the status for every result of a message.
func TestStatuses(t *testing.T) {
	for name, c := range map[string]struct {
		backend backend
		want    int
		reason  string
	}{
		"recorded":              {backend{result: stored}, 202, ""},
		"not in time":           {backend{}, 202, ""},
		"a duplicate body":      {backend{result: stored, receipt: adapters.Receipt{Duplicate: true}}, 200, ""},
		"a duplicate message":   {backend{result: withResult(event.Result{Disposition: event.Duplicate})}, 200, ""},
		"refused by the policy": {backend{result: withResult(*event.Ignore(event.ReasonUserRefused))}, 403, "refused"},
		"a dead letter":         {backend{result: withResult(event.Result{Disposition: event.Dead, Error: "panic: secret words"})}, 500, "dead"},
		"a busy store":          {backend{busy: adapters.ErrBusy}, 503, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, c.backend.serve(t), "POST", "/messages", `{"content":"hi","client_message_id":"m1"}`)
			if got.Status != c.want || strings.Join(c.backend.rejected, " ") != c.reason || c.backend.faults != nil {
				t.Errorf("status %d, rejections %q, faults %v; want %d, %q and none", got.Status, c.backend.rejected, c.backend.faults, c.want, c.reason)
			}
			if problem, ok := got.Body["error"].(map[string]any); ok && (problem["code"] != c.reason || strings.Contains(problem["message"].(string), "secret")) {
				t.Errorf("error %v", problem)
			}
		})
	}
}

// TestCallers checks the senders that each kind of token may claim.
func TestCallers(t *testing.T) {
	own, anybody := "Bearer own-token", "Bearer any-token"
	for name, c := range map[string]struct {
		token, metadata string
		status          int
		faults          []string
		stored          string // a part of the stored metadata
	}{
		"own, no metadata":       {own, ``, 202, nil, `"sender_id":"web:olivia"`},
		"own, its own identity":  {own, `{"sender_id":"web:olivia","k":1}`, 202, nil, `"k":1`},
		"own, another identity":  {own, crmJSON, 400, []string{"metadata.source", "metadata.sender_id", "metadata.sender_display_name", "metadata.sender_type"}, ""},
		"own, reserved keys":     {own, `{"thread_context":"x","is_from_me":false,"recipient_id":"bot:a"}`, 400, []string{"metadata.thread_context", "metadata.is_from_me", "metadata.recipient_id"}, ""},
		"own, a mention token":   {own, `{"mention_token":"<@U1>"}`, 400, []string{"metadata.mention_token"}, ""},
		"own, a place":           {own, `{"channel_external_id":"C1","message_guid":"G1"}`, 400, []string{"metadata.channel_external_id", "metadata.message_guid"}, ""},
		"own, null is unset":     {own, `{"thread_context":null,"is_from_me":null,"mention_token":null,"channel_external_id":null,"message_guid":null}`, 202, nil, `"sender_id":"web:olivia"`},
		"any, complete metadata": {anybody, crmJSON, 202, nil, crmJSON},
		"any, another agent":     {anybody, strings.Replace(crmJSON, "{", `{"recipient_id":"bot:other",`, 1), 202, nil, `"recipient_id":"bot:other"`},
		"any, an unknown agent":  {anybody, strings.Replace(crmJSON, "{", `{"recipient_id":"bot:nobody",`, 1), 202, nil, `"recipient_id":"bot:nobody"`},
		"any, no agent":          {anybody, strings.Replace(crmJSON, "{", `{"recipient_id":"helper",`, 1), 400, []string{"metadata.recipient_id"}, ""},
		"any, no metadata":       {anybody, ``, 400, []string{"metadata.source", "metadata.sender_id", "metadata.sender_display_name", "metadata.sender_type"}, ""},
		"any, a key misspelt":    {anybody, strings.Replace(crmJSON, "sender_display_name", "sender_displayname", 1), 400, []string{"metadata.sender_display_name"}, ""},
		"a lower-case scheme":    {"bearer own-token", ``, 202, nil, `"sender_id":"web:olivia"`},
		"a wrong token":          {"Bearer own-tokem", ``, 401, nil, ""},
		"no token":               {"", ``, 401, nil, ""},
		"another scheme":         {"Basic own-token", ``, 401, nil, ""},
		"a token without scheme": {"own-token", ``, 401, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &backend{result: stored}
			body := `{"content":"hi"}`
			if c.metadata != "" {
				body = `{"content":"hi","metadata":` + c.metadata + `}`
			}
			got := do(t, b.serve(t), "POST", "/messages", body, "Authorization", c.token)
			if diff := cmp.Diff(c.faults, got.faults()); got.Status != c.status || diff != "" {
				t.Errorf("status %d, want %d; faults %s", got.Status, c.status, diff)
			}
			if c.status != 202 && len(b.accepted) > 0 || c.status == 202 && !strings.Contains(string(b.accepted[0].Body), c.stored) {
				t.Errorf("the accepted envelopes are %v", b.accepted)
			}
		})
	}
}

// TestLocalWorkspace checks that the token of the local workspace may omit the metadata and set any,
// and that no address admits a caller.
func TestLocalWorkspace(t *testing.T) {
	const whole = `{"content":"hi","metadata":{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot"}}`
	for body, token := range map[string]string{`{"content":"hi"}`: ownToken, whole: ownToken} {
		b := &backend{local: true, result: stored}
		if got := do(t, b.serve(t), "POST", "/messages", body, "Authorization", "Bearer "+token, "X-Forwarded-For", "203.0.113.7"); got.Status != 202 {
			t.Errorf("%s: status %d: %v", body, got.Status, got.Body)
		}
	}
	for _, header := range [][]string{nil, {"Host", "localhost:8484"}, {"Origin", "http://localhost:8484"}} {
		b := &backend{local: true, result: stored}
		if got := do(t, b.serve(t), "POST", "/messages", `{"content":"hi"}`, append([]string{"Authorization", ""}, header...)...); got.Status != 401 {
			t.Errorf("without a token, %v: status %d: %v", header, got.Status, got.Body)
		}
	}
}

// TestBodyLimit checks that a body over the limit is refused before authentication.
func TestBodyLimit(t *testing.T) {
	b := &backend{result: stored}
	server := b.serve(t)
	long := `{"content":"` + strings.Repeat("x", 256<<10) + `"}`
	if got := do(t, server, "POST", "/messages", long, "Authorization", ""); got.Status != 413 {
		t.Errorf("with a Content-Length: status %d", got.Status)
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/ours/messages", struct{ *strings.Reader }{strings.NewReader(long)})
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer own-token")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 413 || len(b.accepted) > 0 {
		t.Errorf("with chunks: status %d", response.StatusCode)
	}
}
