package threads_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/internal/testapi"
	webthreads "parley/adapters/web/threads"
	"parley/config/secret"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
)

// days is one thread with one day.
type days struct {
	webthreads.Places
	webthreads.Messages
	day messages.HistoryDay
}

func (d days) NewestMadeBy(context.Context, string, string) (threads.Thread, error) {
	return threads.Thread{ID: testapi.Thread}, nil
}

func (d days) HistoryDay(context.Context, *threads.Thread, time.Time, int64) (messages.HistoryDay, error) {
	return d.day, nil
}

// TestHistoryForms checks the form of each role: a user interface is passed on as it came.
func TestHistoryForms(t *testing.T) {
	const schema = `{"version":"2.0","locale":"zh-CN","status":"success","theme":"default","later":1.50,"root":{"type":"stack","children":[{"type":"badge","label":"SUCCESS"}]}}`
	at := time.Date(2026, 3, 15, 10, 0, 0, 0, time.UTC)
	message := func(seq int64, by messages.Author, metadata string) messages.Message {
		return messages.Message{Seq: seq, UUID: "m1", Author: by, Version: 1, Content: "<b>", CreatedAt: at, Metadata: []byte(metadata)}
	}
	d := days{day: messages.HistoryDay{Begin: at.Truncate(24 * time.Hour), Messages: []messages.Message{
		message(1, messages.ByHuman, `{"message_id":"msg-001","uiSchema":{}}`),
		message(2, messages.ByAgent, `{"message_id":7,"uiSchema":`+schema+`}`),
		message(4, messages.ByAgent, `{"stage":"tool_execution","message_id":"tool_run_abc123","uiSchema":"none"}`),
		message(5, messages.ByAgent, `{}`),
	}}}
	workspaces := []access.Workspace{{ID: "ours", Config: access.Config{Tokens: []access.Token{{ID: "olivia", Token: secret.New(testapi.OwnToken)}}}}}
	gate := access.Gate{Workspaces: func() []access.Workspace { return workspaces }, Guard: guard.New(func(string) {})}
	api := webthreads.API{Gate: gate, Streams: exchange.NewStreams(), Places: d, Messages: d}
	mux := http.NewServeMux()
	for _, route := range api.Routes() {
		mux.HandleFunc(route.Pattern, gate.Handler(route))
	}
	request := httptest.NewRequest(http.MethodGet, "/api/v1/agent/history", nil)
	request.Header.Set("Authorization", "Bearer "+testapi.OwnToken)
	response := httptest.NewRecorder()
	mux.ServeHTTP(response, request)
	const end = `"timestamp":"2026-03-15T10:00:00Z"}`
	want := `{"scope":"history_day","threadId":"` + testapi.Thread + `","day":"2026-03-15","hasMore":false,"messages":[` + strings.Join([]string{
		`{"id":"msg-001","seq":1,"role":"user","content":"<b>","url":null,` + end,
		`{"id":"m1","seq":2,"role":"assistant","content":"<b>","uiSchema":` + schema + `,` + end,
		`{"id":"tool_run_abc123","seq":4,"role":"tool","content":"<b>","uiSchema":null,` + end,
		`{"id":"m1","seq":5,"role":"assistant","content":"<b>","uiSchema":null,` + end,
	}, ",") + "]}\n"
	if got := response.Body.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
