package threads_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/web/internal/testapi"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// TestPostReturnsRecordedMessage checks that the response shows the message with its ids and
// its run.
func TestPostReturnsRecordedMessage(t *testing.T) {
	b := &testapi.Backend{Result: testapi.Stored}
	got := testapi.Do(t, b.Serve(t), "POST", "/messages", `{"content":" <b>hi ","thread_id":"`+strings.ToUpper(testapi.Thread)+`","client_message_id":"m1"}`)
	want := map[string]any{"thread_id": testapi.Thread, "message": map[string]any{
		"id": testapi.RowID, "client_message_id": "m1", "sender_id": "web:olivia", "thread_seq": 1.0, "role": "user", "content": " <b>hi ", "attachments": []any{},
		"trigger": "run", "reason": "direct", "run": map[string]any{"id": nil, "state": "queued", "error": nil}, "created_at": testapi.Noon.Format(time.RFC3339),
		"metadata": map[string]any{"source": "web", "sender_id": "web:olivia", "sender_display_name": "Olivia", "sender_type": "human"},
	}}
	if diff := cmp.Diff(testapi.Answer{Status: 202, Body: want}, got); diff != "" {
		t.Error(diff)
	}
	e := b.Accepted[0]
	if e.Workspace != "ours" || e.Platform != event.Web || e.Transport != "api" || !e.ReceivedAt.Equal(testapi.Noon) {
		t.Errorf("the accepted envelope is %+v", e)
	}
}

// TestPostFillsInIDs checks that Post adds a thread id and a message id before the durable
// accept, and returns the id of the message's row if it is not recorded in time.
func TestPostFillsInIDs(t *testing.T) {
	b := &testapi.Backend{Receipt: adapters.Receipt{MessageUUID: testapi.RowID}}
	got := testapi.Do(t, b.Serve(t), "POST", "/messages", `{"content":""}`)
	if id := got.Body["message"].(map[string]any)["id"]; id != testapi.RowID || uuid.Validate(got.Body["thread_id"].(string)) != nil || got.Status != 202 {
		t.Errorf("the response is %+v", got)
	}
	body, err := payload.ReadBody(b.Accepted[0].Body)
	if err != nil || uuid.Validate(body.MessageID) != nil || body.ThreadID != got.Body["thread_id"] {
		t.Errorf("the accepted body is %s", b.Accepted[0].Body)
	}
}

// TestStatuses checks the status for every result of a message.
func TestStatuses(t *testing.T) {
	for name, c := range map[string]struct {
		backend testapi.Backend
		want    int
		reason  string
	}{
		"recorded":              {testapi.Backend{Result: testapi.Stored}, 202, ""},
		"not in time":           {testapi.Backend{}, 202, ""},
		"a duplicate body":      {testapi.Backend{Result: testapi.Stored, Receipt: adapters.Receipt{Duplicate: true}}, 200, ""},
		"a duplicate message":   {testapi.Backend{Result: testapi.WithResult(event.Result{Disposition: event.Duplicate})}, 200, ""},
		"refused by the policy": {testapi.Backend{Result: testapi.WithResult(*event.Ignore(event.ReasonUserRefused))}, 403, "refused"},
		"a dead letter":         {testapi.Backend{Result: testapi.WithResult(event.Result{Disposition: event.Dead, Error: "panic: secret words"})}, 500, "dead"},
		"a busy store":          {testapi.Backend{Busy: adapters.ErrBusy}, 503, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			got := testapi.Do(t, c.backend.Serve(t), "POST", "/messages", `{"content":"hi","client_message_id":"m1"}`)
			if got.Status != c.want || strings.Join(c.backend.Rejected, " ") != c.reason || c.backend.Faults != nil {
				t.Errorf("status %d, rejections %q, faults %v; want %d, %q and none", got.Status, c.backend.Rejected, c.backend.Faults, c.want, c.reason)
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
		"own, another identity":  {own, testapi.CRMJSON, 400, []string{"metadata.source", "metadata.sender_id", "metadata.sender_display_name", "metadata.sender_type"}, ""},
		"own, reserved keys":     {own, `{"thread_context":"x","is_from_me":false,"recipient_id":"bot:a"}`, 400, []string{"metadata.thread_context", "metadata.is_from_me", "metadata.recipient_id"}, ""},
		"own, a mention token":   {own, `{"mention_token":"<@U1>"}`, 400, []string{"metadata.mention_token"}, ""},
		"own, a place":           {own, `{"channel_external_id":"C1","message_guid":"G1"}`, 400, []string{"metadata.channel_external_id", "metadata.message_guid"}, ""},
		"own, null is unset":     {own, `{"thread_context":null,"is_from_me":null,"mention_token":null,"channel_external_id":null,"message_guid":null}`, 202, nil, `"sender_id":"web:olivia"`},
		"any, complete metadata": {anybody, testapi.CRMJSON, 202, nil, testapi.CRMJSON},
		"any, another agent":     {anybody, strings.Replace(testapi.CRMJSON, "{", `{"recipient_id":"bot:other",`, 1), 202, nil, `"recipient_id":"bot:other"`},
		"any, an unknown agent":  {anybody, strings.Replace(testapi.CRMJSON, "{", `{"recipient_id":"bot:nobody",`, 1), 202, nil, `"recipient_id":"bot:nobody"`},
		"any, no agent":          {anybody, strings.Replace(testapi.CRMJSON, "{", `{"recipient_id":"helper",`, 1), 400, []string{"metadata.recipient_id"}, ""},
		"any, no metadata":       {anybody, ``, 400, []string{"metadata.source", "metadata.sender_id", "metadata.sender_display_name", "metadata.sender_type"}, ""},
		"any, a key misspelt":    {anybody, strings.Replace(testapi.CRMJSON, "sender_display_name", "sender_displayname", 1), 400, []string{"metadata.sender_display_name"}, ""},
		"a lower-case scheme":    {"bearer own-token", ``, 202, nil, `"sender_id":"web:olivia"`},
		"a wrong token":          {"Bearer own-tokem", ``, 401, nil, ""},
		"no token":               {"", ``, 401, nil, ""},
		"another scheme":         {"Basic own-token", ``, 401, nil, ""},
		"a token without scheme": {"own-token", ``, 401, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &testapi.Backend{Result: testapi.Stored}
			body := `{"content":"hi"}`
			if c.metadata != "" {
				body = `{"content":"hi","metadata":` + c.metadata + `}`
			}
			got := testapi.Do(t, b.Serve(t), "POST", "/messages", body, "Authorization", c.token)
			if diff := cmp.Diff(c.faults, got.Faults()); got.Status != c.status || diff != "" {
				t.Errorf("status %d, want %d; faults %s", got.Status, c.status, diff)
			}
			if c.status != 202 && len(b.Accepted) > 0 || c.status == 202 && !strings.Contains(string(b.Accepted[0].Body), c.stored) {
				t.Errorf("the accepted envelopes are %v", b.Accepted)
			}
		})
	}
}

// TestLocalWorkspace checks that the token of the local workspace may omit the metadata and set any,
// and that no address admits a caller.
func TestLocalWorkspace(t *testing.T) {
	const whole = `{"content":"hi","metadata":{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot"}}`
	for body, token := range map[string]string{`{"content":"hi"}`: testapi.OwnToken, whole: testapi.OwnToken} {
		b := &testapi.Backend{Local: true, Result: testapi.Stored}
		if got := testapi.Do(t, b.Serve(t), "POST", "/messages", body, "Authorization", "Bearer "+token, "X-Forwarded-For", "203.0.113.7"); got.Status != 202 {
			t.Errorf("%s: status %d: %v", body, got.Status, got.Body)
		}
	}
	for _, header := range [][]string{nil, {"Host", "localhost:8484"}, {"Origin", "http://localhost:8484"}} {
		b := &testapi.Backend{Local: true, Result: testapi.Stored}
		if got := testapi.Do(t, b.Serve(t), "POST", "/messages", `{"content":"hi"}`, append([]string{"Authorization", ""}, header...)...); got.Status != 401 {
			t.Errorf("without a token, %v: status %d: %v", header, got.Status, got.Body)
		}
	}
}

// TestBodyLimit checks that a body over the limit is refused before authentication.
func TestBodyLimit(t *testing.T) {
	b := &testapi.Backend{Result: testapi.Stored}
	server := b.Serve(t)
	long := `{"content":"` + strings.Repeat("x", 256<<10) + `"}`
	if got := testapi.Do(t, server, "POST", "/messages", long, "Authorization", ""); got.Status != 413 {
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
	if response.StatusCode != 413 || len(b.Accepted) > 0 {
		t.Errorf("with chunks: status %d", response.StatusCode)
	}
}

// TestMalformedChunks checks that the sender of a body in malformed chunks is told so.
func TestMalformedChunks(t *testing.T) {
	server := (&testapi.Backend{}).Serve(t)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const request = "POST /ours/messages HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer own-token\r\nContent-Type: application/json\r\n" +
		"Transfer-Encoding: chunked\r\n\r\nZZ\r\nhello\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "the body is malformed, or ends too early") {
		t.Errorf("%d: %s, %v", response.StatusCode, body, err)
	}
}
