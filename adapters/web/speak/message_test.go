package speak_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/web/internal/testapi"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// TestPostReturnsRecordedMessage checks that the response shows the message with its ids and
// its run.
func TestPostReturnsRecordedMessage(t *testing.T) {
	api := testapi.New(t)
	got := api.Do("POST", "/messages", `{"content":" <b>hi ","thread_id":"`+strings.ToUpper(testapi.Thread)+`","client_message_id":"m1"}`)
	message, _ := got.Body["message"].(map[string]any)
	if id, _ := message["id"].(string); uuid.Validate(id) != nil {
		t.Errorf("the id of the message is %q", id)
	}
	delete(message, "id")
	want := map[string]any{"thread_id": testapi.Thread, "message": map[string]any{
		"client_message_id": "m1", "sender_id": "web:olivia", "thread_seq": 1.0, "role": "user", "content": " <b>hi ", "attachments": []any{},
		"trigger": "run", "reason": "direct", "run": map[string]any{"id": nil, "state": "queued", "error": nil}, "created_at": testapi.Noon.Format(time.RFC3339),
		"metadata": map[string]any{"source": "web", "sender_id": "web:olivia", "sender_display_name": "Olivia", "sender_type": "human"},
	}}
	if diff := cmp.Diff(testapi.Answer{Status: 202, Body: want}, got); diff != "" {
		t.Error(diff)
	}
	e := api.Accepted()[0]
	if e.Workspace != "ours" || e.Platform != event.Web || e.Transport != "api" || !e.ReceivedAt.Equal(testapi.Noon) {
		t.Errorf("the accepted envelope is %+v", e)
	}
}

// held lets no message be normalised before the function is called.
func held(api *testapi.API) (release func()) {
	wait := make(chan struct{})
	api.Normalize = func(ctx context.Context) error {
		if ctx.Err() == nil {
			<-wait
		}
		return ctx.Err()
	}
	release = sync.OnceFunc(func() { close(wait) })
	api.Cleanup(release)
	return release
}

// TestPostFillsInIDs checks that Post adds a thread id and a message id before the durable
// accept, and returns the id of the message's row if it is not recorded in time.
func TestPostFillsInIDs(t *testing.T) {
	t.Parallel()
	api := testapi.New(t)
	release := held(api)
	got := api.Do("POST", "/messages", `{"content":""}`)
	thread, _ := got.Body["thread_id"].(string)
	body, err := payload.ReadBody(api.Accepted()[0].Body)
	if err != nil || got.Status != 202 || uuid.Validate(body.MessageID) != nil || uuid.Validate(thread) != nil || body.ThreadID != thread {
		t.Errorf("the response is %+v, the accepted body %s", got, api.Accepted()[0].Body)
	}
	release()
	again := api.Do("POST", "/messages", `{"content":"next","thread_id":"`+thread+`"}`) // it is recorded after the first one
	if again.Status != 202 {
		t.Fatal(again)
	}
	list, err := api.Journal.Messages.ThreadMessages(t.Context(), "ours", thread, messages.Page{Limit: 1})
	if err != nil || len(list) != 1 || got.Body["message"].(map[string]any)["id"] != list[0].UUID {
		t.Errorf("the response is %+v, the first message %+v, %v", got, list, err)
	}
}

// TestStatuses checks the status for every result of a message.
func TestStatuses(t *testing.T) {
	const body = `{"content":"hi","thread_id":"` + testapi.Thread + `","client_message_id":"m1"}`
	for name, c := range map[string]struct {
		change func(api *testapi.API)
		want   int
		reason string
	}{
		"recorded":              {func(*testapi.API) {}, 202, ""},
		"a duplicate":           {func(api *testapi.API) { api.Do("POST", "/messages", body) }, 200, ""},
		"refused by the policy": {func(api *testapi.API) { api.Settings.Policy.AllowUsers = []string{} }, 403, "refused"},
		"a dead letter": {func(api *testapi.API) {
			api.Normalize = func(context.Context) error { return errors.New("secret words") }
		}, 500, "dead"},
		"a busy store": {func(api *testapi.API) { api.Accept = func(event.Envelope) error { return adapters.ErrBusy } }, 503, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			api := testapi.New(t)
			c.change(api)
			got := api.Do("POST", "/messages", body)
			if got.Status != c.want || strings.Join(api.Rejected(), " ") != c.reason || api.Faults() != nil {
				t.Errorf("status %d, rejections %q, faults %v; want %d, %q and none", got.Status, api.Rejected(), api.Faults(), c.want, c.reason)
			}
			if problem, ok := got.Body["error"].(map[string]any); ok && (problem["code"] != c.reason || strings.Contains(problem["message"].(string), "secret")) {
				t.Errorf("error %v", problem)
			}
		})
	}
}

// TestCallers checks the senders that each kind of token may claim.
func TestCallers(t *testing.T) {
	api := testapi.New(t)
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
			before := len(api.Accepted())
			body := `{"content":"hi"}`
			if c.metadata != "" {
				body = `{"content":"hi","metadata":` + c.metadata + `}`
			}
			got := api.Do("POST", "/messages", body, "Authorization", c.token)
			if diff := cmp.Diff(c.faults, got.FaultyFields()); got.Status != c.status || diff != "" {
				t.Errorf("status %d, want %d; faults %s", got.Status, c.status, diff)
			}
			if accepted := api.Accepted()[before:]; c.status != 202 && len(accepted) > 0 || c.status == 202 && !strings.Contains(string(accepted[0].Body), c.stored) {
				t.Errorf("the accepted envelopes are %v", accepted)
			}
		})
	}
}

// TestLocalWorkspace checks that the token of the local workspace may omit the metadata and set any,
// and that no address admits a caller.
func TestLocalWorkspace(t *testing.T) {
	const whole = `{"content":"hi","metadata":{"source":"crm","sender_id":"crm:7","sender_display_name":"CRM","sender_type":"bot"}}`
	for body, token := range map[string]string{`{"content":"hi"}`: testapi.OwnToken, whole: testapi.OwnToken} {
		api := testapi.New(t)
		api.Local = true
		if got := api.Do("POST", "/messages", body, "Authorization", "Bearer "+token, "X-Forwarded-For", "203.0.113.7"); got.Status != 202 {
			t.Errorf("%s: status %d: %v", body, got.Status, got.Body)
		}
	}
	for _, header := range [][]string{nil, {"Host", "localhost:8484"}, {"Origin", "http://localhost:8484"}} {
		api := testapi.New(t)
		api.Local = true
		if got := api.Do("POST", "/messages", `{"content":"hi"}`, append([]string{"Authorization", ""}, header...)...); got.Status != 401 {
			t.Errorf("without a token, %v: status %d: %v", header, got.Status, got.Body)
		}
	}
}

// TestBodyLimit checks that a body over the limit is refused before authentication.
func TestBodyLimit(t *testing.T) {
	api := testapi.New(t)
	long := `{"content":"` + strings.Repeat("x", 256<<10) + `"}`
	if got := api.Do("POST", "/messages", long, "Authorization", ""); got.Status != 413 {
		t.Errorf("with a Content-Length: status %d", got.Status)
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", api.Server.URL+"/api/v1/workspaces/ours/messages", struct{ *strings.Reader }{strings.NewReader(long)})
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer own-token")
	response, err := api.Server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 413 || len(api.Accepted()) > 0 {
		t.Errorf("with chunks: status %d", response.StatusCode)
	}
}

// TestMalformedChunks checks that the sender of a body in malformed chunks is told so.
func TestMalformedChunks(t *testing.T) {
	server := testapi.New(t).Server
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const request = "POST /api/v1/workspaces/ours/messages HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer own-token\r\nContent-Type: application/json\r\n" +
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
