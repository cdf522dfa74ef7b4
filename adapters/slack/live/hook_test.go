package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/config/secret"
	"parley/ingest/event"
)

// memoryInbox is an inbox that stores envelopes in memory, or fails.
type memoryInbox struct {
	mu       sync.Mutex
	accepted []event.Envelope
	fail     error
}

func (c *memoryInbox) Accept(_ context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return adapters.Receipt{}, c.fail
	}
	c.accepted = append(c.accepted, envelope)
	return adapters.Receipt{ID: int64(len(c.accepted))}, nil
}

// rejections records the reasons of rejected calls.
type rejections struct {
	mu      sync.Mutex
	reasons []string
}

func (c *rejections) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reasons = append(c.reasons, reason)
}

// serve starts a hook whose clock is at noon.
func serve(t *testing.T, inbox adapters.Inbox) (address string, rejected *rejections) {
	t.Helper()
	handler, rejected := newHook(inbox)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, rejected
}

// newHook returns a hook whose clock is at noon.
func newHook(inbox adapters.Inbox) (http.Handler, *rejections) {
	adapter, rejected := testapp.New("http://127.0.0.1:1/"), new(rejections)
	adapter.Client.Now = func() time.Time { return testapp.Noon }
	return adapter.Handler(inbox, guard.New(rejected.add)), rejected
}

// deliver makes the call and returns its answer.
func deliver(t *testing.T, request *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func signedRequest(t *testing.T, address, body string) *http.Request {
	t.Helper()
	request, err := slacktest.NewRequest(t.Context(), address, testapp.Secret, testapp.Noon, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return request
}

var helloEvent = string(slacktest.Message{Channel: testapp.Room, User: "U1", Text: "hi", TS: "1700000000.000100"}.Event())

func TestHookAcknowledgesAfterDurableAccept(t *testing.T) {
	var inbox memoryInbox
	address, rejected := serve(t, &inbox)
	response, _ := deliver(t, signedRequest(t, address, helloEvent))
	if response.StatusCode != http.StatusOK {
		t.Errorf("status %s", response.Status)
	}
	want := []event.Envelope{{Workspace: "acme", Platform: event.Slack, Transport: "http", ReceivedAt: testapp.Noon, Body: []byte(helloEvent)}}
	if diff := cmp.Diff(want, inbox.accepted); diff != "" || len(rejected.reasons) != 0 {
		t.Error(diff, rejected.reasons)
	}
}

func TestHookRefusesWithoutDurableAccept(t *testing.T) {
	for _, fault := range []error{adapters.ErrBusy, fmt.Errorf("commit: %w", adapters.ErrBusy), errors.New("disk full")} {
		address, rejected := serve(t, &memoryInbox{fail: fault})
		response, body := deliver(t, signedRequest(t, address, helloEvent))
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
			t.Errorf("%v: %s, Retry-After %q", fault, response.Status, response.Header.Get("Retry-After"))
		}
		if response.Header.Get("X-Slack-No-Retry") != "" || strings.Contains(body, "disk") {
			t.Errorf("%v: %v %q", fault, response.Header, body)
		}
		if diff := cmp.Diff([]string{"not-accepted"}, rejected.reasons); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHookAcceptsRetries(t *testing.T) {
	var inbox memoryInbox
	address, _ := serve(t, &inbox)
	for _, number := range []string{"", "1", "3"} {
		request := signedRequest(t, address, helloEvent)
		if number != "" {
			request.Header.Set("X-Slack-Retry-Num", number)
			request.Header.Set("X-Slack-Retry-Reason", "http_timeout")
		}
		if response, _ := deliver(t, request); response.StatusCode != http.StatusOK {
			t.Errorf("retry %q: %s", number, response.Status)
		}
	}
	if len(inbox.accepted) != 3 {
		t.Errorf("the inbox accepted %d of 3", len(inbox.accepted))
	}
}

func TestHookRefusesUnverifiedCalls(t *testing.T) {
	sign := func(secret string, at time.Time, body string) http.Header {
		return slacktest.Sign(secret, at, []byte(body))
	}
	with := func(key, value string) http.Header {
		header := sign(testapp.Secret, testapp.Noon, helloEvent)
		if header.Set(key, value); value == "" {
			header.Del(key)
		}
		return header
	}
	good := sign(testapp.Secret, testapp.Noon, helloEvent).Get("X-Slack-Signature")
	for name, c := range map[string]struct {
		header http.Header
		reason string
	}{
		"another secret":               {sign("other", testapp.Noon, helloEvent), "bad-signature"},
		"an empty secret":              {sign("", testapp.Noon, helloEvent), "bad-signature"},
		"another body":                 {sign(testapp.Secret, testapp.Noon, helloEvent+" "), "bad-signature"},
		"a time that was not signed":   {with("X-Slack-Request-Timestamp", "1700000001"), "bad-signature"},
		"another version":              {with("X-Slack-Signature", "v1"+strings.TrimPrefix(good, "v0")), "bad-signature"},
		"half a signature":             {with("X-Slack-Signature", good[:40]), "bad-signature"},
		"no signature":                 {with("X-Slack-Signature", ""), "no-signature"},
		"no time":                      {with("X-Slack-Request-Timestamp", ""), "no-signature"},
		"a malformed time":             {with("X-Slack-Request-Timestamp", "now"), "bad-timestamp"},
		"more than five minutes old":   {sign(testapp.Secret, testapp.Noon.Add(-5*time.Minute-time.Second), helloEvent), "stale-timestamp"},
		"more than five minutes early": {sign(testapp.Secret, testapp.Noon.Add(5*time.Minute+time.Second), helloEvent), "stale-timestamp"},
		"the year 292277026596":        {with("X-Slack-Request-Timestamp", "9223372036854775807"), "stale-timestamp"},
	} {
		t.Run(name, func(t *testing.T) {
			var inbox memoryInbox
			address, rejected := serve(t, &inbox)
			request := signedRequest(t, address, helloEvent)
			request.Header = c.header
			response, _ := deliver(t, request)
			if response.StatusCode != http.StatusUnauthorized || len(inbox.accepted) != 0 {
				t.Errorf("%s, %d stored", response.Status, len(inbox.accepted))
			}
			if diff := cmp.Diff([]string{c.reason}, rejected.reasons); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHookAllowsFiveMinutesOfSkew(t *testing.T) {
	var inbox memoryInbox
	address, _ := serve(t, &inbox)
	for _, skew := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		request := signedRequest(t, address, helloEvent)
		request.Header = slacktest.Sign(testapp.Secret, testapp.Noon.Add(skew), []byte(helloEvent))
		if response, _ := deliver(t, request); response.StatusCode != http.StatusOK {
			t.Errorf("%v: %s", skew, response.Status)
		}
	}
}

// TestHookRefusesAllCallsWithoutASecret: everybody can sign with an empty key.
func TestHookRefusesAllCallsWithoutASecret(t *testing.T) {
	var inbox memoryInbox
	server := httptest.NewServer(withoutSecret().Handler(&inbox, guard.New(func(string) {})))
	defer server.Close()
	request := signedRequest(t, server.URL, helloEvent)
	request.Header = slacktest.Sign("", testapp.Noon, []byte(helloEvent))
	if response, _ := deliver(t, request); response.StatusCode != http.StatusUnauthorized || len(inbox.accepted) != 0 {
		t.Errorf("%s, %d stored", response.Status, len(inbox.accepted))
	}
}

func TestURLVerification(t *testing.T) {
	var inbox memoryInbox
	address, _ := serve(t, &inbox)
	const question = `{"token":"x","challenge":"3eZbrw1a<","type":"url_verification"}`
	response, body := deliver(t, signedRequest(t, address, question))
	if response.StatusCode != http.StatusOK || body != "3eZbrw1a<" || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s %q %v", response.Status, body, response.Header)
	}
	forged := signedRequest(t, address, question)
	forged.Header = slacktest.Sign("other", testapp.Noon, []byte(question))
	if response, body := deliver(t, forged); response.StatusCode != http.StatusUnauthorized || strings.Contains(body, "3eZ") {
		t.Errorf("%s %q", response.Status, body)
	}
	if len(inbox.accepted) != 0 {
		t.Errorf("stored %+v", inbox.accepted)
	}
	mentioned := string(slacktest.Message{Channel: testapp.Room, User: "U1", Text: "what is url_verification?", TS: "1.1"}.Event())
	if deliver(t, signedRequest(t, address, mentioned)); len(inbox.accepted) != 1 {
		t.Error("a message that contains the words was taken for a verification")
	}
}

func TestHookAcceptsUndecodableBodies(t *testing.T) {
	var inbox memoryInbox
	address, _ := serve(t, &inbox)
	for _, body := range []string{"no JSON", "{", ""} {
		if response, _ := deliver(t, signedRequest(t, address, body)); response.StatusCode != http.StatusOK {
			t.Errorf("%q: %s", body, response.Status)
		}
	}
	if len(inbox.accepted) != 3 || string(inbox.accepted[0].Body) != "no JSON" {
		t.Errorf("%+v", inbox.accepted)
	}
}

// TestHookReadsJSONSentAsForm sends an event with the content type of a form: the signature
// does not cover the type.
func TestHookReadsJSONSentAsForm(t *testing.T) {
	for _, space := range []string{"", " \r\n\t"} {
		body := space + `{"type":"other","x":"&payload=%7B%22type%22%3A%22block_actions%22%7D&"}`
		var inbox memoryInbox
		address, _ := serve(t, &inbox)
		request := signedRequest(t, address, body)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		deliver(t, request)
		if len(inbox.accepted) != 1 || string(inbox.accepted[0].Body) != body {
			t.Errorf("%+v", inbox.accepted)
		}
	}
}

func TestHookConvertsFormsToJSON(t *testing.T) {
	for name, c := range map[string]struct {
		form string
		want any
	}{
		"interaction": {url.Values{"payload": {`{"type":"block_actions","n":1}`}}.Encode(),
			map[string]any{"type": "block_actions", "n": 1.0}},
		"command": {"command=%2Fask&text=a+%26+b&user_id=U1&twice=1&twice=2",
			map[string]any{"type": "slash_commands", "payload": map[string]any{
				"command": "/ask", "text": "a & b", "user_id": "U1", "twice": []any{"1", "2"}}}},
	} {
		var inbox memoryInbox
		address, _ := serve(t, &inbox)
		request := signedRequest(t, address, c.form)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		if response, body := deliver(t, request); response.StatusCode != http.StatusOK || body != "" {
			t.Errorf("%s: %s %q", name, response.Status, body)
		}
		var got any
		if err := json.Unmarshal(inbox.accepted[0].Body, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestHookBoundsTheBodyBeforeVerification sends a body that is too large, with and
// without a declared length, and with a wrong signature.
func TestHookBoundsTheBodyBeforeVerification(t *testing.T) {
	for name, body := range map[string]io.Reader{
		"declared":   bytes.NewReader(make([]byte, 1<<20+1)),
		"undeclared": io.MultiReader(bytes.NewReader(make([]byte, 1<<20+1))),
	} {
		var inbox memoryInbox
		address, rejected := serve(t, &inbox)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = slacktest.Sign("other", testapp.Noon, nil)
		response, _ := deliver(t, request)
		if response.StatusCode != http.StatusRequestEntityTooLarge || len(inbox.accepted) != 0 {
			t.Errorf("%s: %s", name, response.Status)
		}
		if diff := cmp.Diff([]string{"too-large"}, rejected.reasons); diff != "" {
			t.Error(diff)
		}
	}
}

// TestHookRefusesHeadersBeforeTheBody declares a body and sends none of it.
func TestHookRefusesHeadersBeforeTheBody(t *testing.T) {
	for header, want := range map[string]string{
		"":                             "no-signature",
		"X-Slack-Signature: v0=00\r\n": "no-signature",
		"X-Slack-Signature: v0=00\r\nX-Slack-Request-Timestamp: 1\r\n": "stale-timestamp",
	} {
		var inbox memoryInbox
		address, rejected := serve(t, &inbox)
		answer := half(t, address, header+"Content-Length: 1048576\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 401 ") {
			t.Errorf("%q: %.40q", header, answer)
		}
		if diff := cmp.Diff([]string{want}, rejected.reasons); diff != "" {
			t.Error(diff)
		}
	}
}

// half sends the beginning of a call, and returns all that the hook answers. It ends when the
// hook closes the connection.
func half(t *testing.T, address, rest string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "POST / HTTP/1.1\r\nHost: x\r\n"+rest); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestHookAcceptsABodyOfTheMaximumSize(t *testing.T) {
	var inbox memoryInbox
	address, _ := serve(t, &inbox)
	response, _ := deliver(t, signedRequest(t, address, strings.Repeat("x", 1<<20)))
	if response.StatusCode != http.StatusOK || len(inbox.accepted) != 1 || len(inbox.accepted[0].Body) != 1<<20 {
		t.Errorf("%s, %d stored", response.Status, len(inbox.accepted))
	}
}

// TestHookTimesOutASlowBody declares a body and does not send all of it.
func TestHookTimesOutASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inbox memoryInbox
		never, end := io.Pipe()
		defer end.Close()
		response, rejected := deliverInMemory(t, &inbox, func(r *http.Request) { r.Body = never })
		if response.StatusCode != http.StatusRequestTimeout || len(inbox.accepted) != 0 {
			t.Errorf("%s, %d stored", response.Status, len(inbox.accepted))
		}
		if diff := cmp.Diff([]string{"slow-body"}, rejected.reasons); diff != "" {
			t.Error(diff)
		}
	})
}

// deliverInMemory makes a changed call over a connection in memory.
func deliverInMemory(t *testing.T, inbox adapters.Inbox, change func(*http.Request)) (*http.Response, *rejections) {
	t.Helper()
	handler, rejected := newHook(inbox)
	listener := testapp.NewListener()
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	client := &http.Client{Transport: &http.Transport{DialContext: listener.Dial}}
	request := signedRequest(t, "http://"+listener.Addr().String(), helloEvent)
	change(request)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response, rejected
}

// slowInbox takes a minute, which is longer than the time limit of a body.
type slowInbox struct{ memoryInbox }

func (c *slowInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	select {
	case <-time.After(time.Minute):
		return c.memoryInbox.Accept(ctx, envelope)
	case <-ctx.Done():
		return adapters.Receipt{}, context.Cause(ctx)
	}
}

func TestBodyTimeoutDoesNotEndTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		response, rejected := deliverInMemory(t, new(slowInbox), func(*http.Request) {})
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %v", response.Status, rejected.reasons)
		}
	})
}

func BenchmarkHook(b *testing.B) {
	handler, _ := newHook(new(memoryInbox))
	server := httptest.NewServer(handler)
	defer server.Close()
	b.ReportAllocs()
	for b.Loop() {
		request, _ := slacktest.NewRequest(b.Context(), server.URL, testapp.Secret, testapp.Noon, []byte(helloEvent))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

func TestOnlyModeHTTPDependsOnTheHook(t *testing.T) {
	if !testapp.New("http://127.0.0.1:1/").HookOnly() || withoutSecret().HookOnly() {
		t.Error("HookOnly is wrong")
	}
}

// TestHookMarksRetries: a retry may be the only sign that other events are missing.
func TestHookMarksRetries(t *testing.T) {
	for number, want := range map[string]bool{"": false, "0": false, "1": true, "3": true, "x": false} {
		var inbox memoryInbox
		address, _ := serve(t, &inbox)
		request := signedRequest(t, address, helloEvent)
		if number != "" {
			request.Header.Set("X-Slack-Retry-Num", number)
		}
		deliver(t, request)
		if len(inbox.accepted) != 1 || inbox.accepted[0].Retried != want {
			t.Errorf("%q: %+v", number, inbox.accepted)
		}
	}
}

func withoutSecret() *slack.Adapter {
	c := testapp.Config("http://127.0.0.1:1/")
	c.Mode, c.SigningSecret = slack.ModeSocket, secret.New("")
	adapter := slack.New("acme", c)
	adapter.Client.Now = func() time.Time { return testapp.Noon }
	return adapter
}
