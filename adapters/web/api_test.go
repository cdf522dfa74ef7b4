package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/web"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	thread  = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	crmJSON = `{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot","x":1e2}`
)

var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// backend is a fake of the parts that the API calls: the durable accept, intake and the
// journal.
type backend struct {
	accepted []event.Envelope
	receipt  adapters.Receipt
	busy     error
	result   func(b web.Body) *journal.Settled // nil: the wait times out
	listed   []journal.Listed
	list     error
	asked    event.ThreadKey
	after    int64
	limit    int
	rejected []string
	local    bool
}

func (b *backend) Accept(_ context.Context, e event.Envelope) (adapters.Receipt, error) {
	if b.busy != nil {
		return adapters.Receipt{}, b.busy
	}
	b.accepted = append(b.accepted, e)
	return b.receipt, nil
}

func (b *backend) Wait(context.Context, int64) (*journal.Settled, error) {
	body, err := web.ReadBody(b.accepted[len(b.accepted)-1].Body)
	if err != nil || b.result == nil {
		return nil, err
	}
	return b.result(body), nil
}

func (b *backend) Messages(_ context.Context, key event.ThreadKey, after int64, limit int) ([]journal.Listed, error) {
	b.asked, b.after, b.limit = key, after, limit
	return b.listed[:min(limit, len(b.listed))], b.list
}

// stored returns the result of an envelope whose message was stored.
func stored(b web.Body) *journal.Settled {
	id := b.ClientMessageID
	if id == "" {
		id = b.MessageID
	}
	return &journal.Settled{
		Fate:    event.Fate{Disposition: event.Stored},
		Message: &journal.Listed{Message: journal.Message{Seq: 1, ExternalID: id, Author: journal.ByHuman, Content: b.Content, Metadata: b.Metadata}},
	}
}

func withResult(f event.Fate) func(web.Body) *journal.Settled {
	return func(b web.Body) *journal.Settled {
		s := stored(b)
		s.Fate = f
		if f.Disposition == event.Dead {
			s.Message = nil
		}
		return s
	}
}

// serve starts a server with the API's routes.
func (b *backend) serve(t *testing.T) *httptest.Server {
	t.Helper()
	config := web.Config{Local: b.local, Tokens: []web.Token{
		{ID: "olivia", Name: "Olivia", Token: secret.New("own-token"), Senders: web.SendersOwn},
		{ID: "crm", Name: "CRM", Token: secret.New("any-token"), Senders: web.SendersAny},
	}}
	api := web.API{
		Adapter: web.New("ours", config), Inbox: b, Recorded: b, Messages: b,
		Rejected: func(reason string) { b.rejected = append(b.rejected, reason) }, Now: func() time.Time { return noon },
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /messages", api.Post)
	mux.HandleFunc("GET /threads/{thread_id}/messages", api.List)
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

// TestPostReturnsRecordedMessage checks that the response shows the message in the form that
// replay prints.
func TestPostReturnsRecordedMessage(t *testing.T) {
	b := &backend{result: stored}
	got := do(t, b.serve(t), "POST", "/messages", `{"content":" <b>hi ","thread_id":"`+strings.ToUpper(thread)+`","client_message_id":"m1"}`)
	want := map[string]any{"thread_id": thread, "message": map[string]any{
		"id": "m1", "thread_seq": 1.0, "role": "user", "content": " <b>hi ", "attachments": []any{},
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
// accept.
func TestPostFillsInIDs(t *testing.T) {
	b := &backend{}
	got := do(t, b.serve(t), "POST", "/messages", `{"content":""}`)
	id, _ := got.Body["message"].(map[string]any)["id"].(string)
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.Version() != 7 || uuid.Validate(got.Body["thread_id"].(string)) != nil || got.Status != 202 {
		t.Errorf("the response is %+v", got)
	}
	body, err := web.ReadBody(b.accepted[0].Body)
	if err != nil || body.MessageID != id || body.ThreadID != got.Body["thread_id"] {
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
		"a duplicate message":   {backend{result: withResult(event.Fate{Disposition: event.Duplicate})}, 200, ""},
		"refused by the policy": {backend{result: withResult(*event.Ignore(event.ReasonUserRefused))}, 403, "refused"},
		"a dead letter":         {backend{result: withResult(event.Fate{Disposition: event.Dead, Error: "panic: secret words"})}, 500, "dead"},
		"a busy store":          {backend{busy: adapters.ErrBusy}, 503, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, c.backend.serve(t), "POST", "/messages", `{"content":"hi","client_message_id":"m1"}`)
			if got.Status != c.want || strings.Join(c.backend.rejected, " ") != c.reason {
				t.Errorf("status %d and rejections %q; want %d, %q", got.Status, c.backend.rejected, c.want, c.reason)
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
		"own, null is unset":     {own, `{"thread_context":null,"is_from_me":null}`, 202, nil, `"sender_id":"web:olivia"`},
		"any, complete metadata": {anybody, crmJSON, 202, nil, crmJSON},
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

// TestLocalWorkspace checks that the local workspace accepts only requests that a program on
// this machine can have sent.
func TestLocalWorkspace(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		want   int
	}{
		"a local program":         {nil, 202},
		"localhost":               {[]string{"Host", "localhost:8484"}, 202},
		"IPv6":                    {[]string{"Host", "[::1]:8484"}, 202},
		"a page of ours":          {[]string{"Host", "localhost:8484", "Origin", "http://localhost:8484"}, 202},
		"a rebound DNS name":      {[]string{"Host", "evil.example:8484"}, 403},
		"another site's page":     {[]string{"Origin", "https://evil.example"}, 403},
		"a page without origin":   {[]string{"Origin", "null"}, 403},
		"another port's page":     {[]string{"Host", "localhost:8484", "Origin", "http://localhost:3000"}, 403},
		"behind a proxy":          {[]string{"X-Forwarded-For", "203.0.113.7"}, 403},
		"behind a standard proxy": {[]string{"Forwarded", "for=203.0.113.7"}, 403},
		"a form":                  {[]string{"Content-Type", "text/plain"}, 403},
		"JSON with a charset":     {[]string{"Content-Type", "application/json; charset=utf-8"}, 202},
	} {
		b := &backend{local: true, result: stored}
		got := do(t, b.serve(t), "POST", "/messages", `{"content":"hi"}`, append([]string{"Authorization", ""}, c.header...)...)
		if got.Status != c.want {
			t.Errorf("%s: status %d, want %d: %v", name, got.Status, c.want, got.Body)
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
	request, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/messages", struct{ *strings.Reader }{strings.NewReader(long)})
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

// TestList checks a page of messages, its cursor, and the sequence numbers of a reply.
func TestList(t *testing.T) {
	b := &backend{listed: []journal.Listed{
		{Message: journal.Message{Seq: 4, ExternalID: "m1", Author: journal.ByHuman, CreatedAt: noon, DeletedAt: noon, Metadata: []byte("{}")}},
		{Message: journal.Message{Seq: 5, ExternalID: "r1", Author: journal.ByAgent, Content: "hi", CreatedAt: noon, Metadata: []byte("{}"), Run: "run"},
			Freshness: &journal.Freshness{BaseSeq: 3, LatestSeenSeq: 3, ServerSeq: 4}},
	}}
	server := b.serve(t)
	got := do(t, server, "GET", "/threads/"+strings.ToUpper(thread)+"/messages?after=3&limit=2", "")
	at := noon.Format(time.RFC3339)
	want := map[string]any{"next": 5.0, "messages": []any{
		map[string]any{"id": "m1", "thread_seq": 4.0, "role": "user", "content": "", "metadata": map[string]any{}, "attachments": []any{}, "created_at": at, "deleted_at": at},
		map[string]any{"id": "r1", "thread_seq": 5.0, "role": "assistant", "content": "hi", "metadata": map[string]any{}, "attachments": []any{}, "created_at": at,
			"run_id": "run", "base_seq": 3.0, "latest_seen_seq": 3.0, "server_seq_at_submit": 4.0},
	}}
	if diff := cmp.Diff(answer{200, want}, got); diff != "" {
		t.Error(diff)
	}
	if b.asked != event.ThreadKey("web:ours:"+thread) || b.after != 3 || b.limit != 2 {
		t.Errorf("the API asked for %d messages of %s after %d", b.limit, b.asked, b.after)
	}
	if last := do(t, server, "GET", "/threads/"+thread+"/messages", ""); last.Body["next"] != nil || b.limit != 100 {
		t.Errorf("the last page has the cursor %v and the limit %d", last.Body["next"], b.limit)
	}
	for query, fields := range map[string][]string{"?after=-1&limit=0": {"after", "limit"}, "?limit=501": {"limit"}, "?after=x": {"after"}} {
		if got := do(t, server, "GET", "/threads/"+thread+"/messages"+query, ""); got.Status != 400 || cmp.Diff(fields, got.faults()) != "" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := do(t, server, "GET", "/threads/mine/messages", ""); got.Status != 400 {
		t.Errorf("without a UUID: %+v", got)
	}
	if got := do(t, server, "GET", "/threads/"+thread+"/messages", "", "Authorization", ""); got.Status != 401 {
		t.Errorf("without a token: %+v", got)
	}
	for _, c := range []struct {
		err  error
		want int
	}{{journal.ErrNotFound, 404}, {errors.New("the disk is gone"), 503}} {
		if b.list = c.err; do(t, server, "GET", "/threads/"+thread+"/messages", "").Status != c.want {
			t.Errorf("%v: want %d", c.err, c.want)
		}
	}
}
