package threads

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/adapters/web/exchange"
	"parley/ingest/journal/messages"
)

// TestHistoryForms checks the form of each role: a user interface is passed on as it came.
func TestHistoryForms(t *testing.T) {
	const schema = `{"version":"2.0","locale":"zh-CN","status":"success","theme":"default","later":1.50,"root":{"type":"stack","children":[{"type":"badge","label":"SUCCESS"}]}}`
	at := time.Date(2026, 3, 15, 10, 0, 0, 0, time.UTC)
	message := func(seq int64, by messages.Author, metadata string) messages.Message {
		return messages.Message{Seq: seq, UUID: "m1", Author: by, Version: 1, Content: "<b>", CreatedAt: at, Metadata: []byte(metadata)}
	}
	const end = `"timestamp":"2026-03-15T10:00:00Z"}`
	for want, m := range map[string]messages.Message{
		`{"id":"msg-001","seq":1,"role":"user","content":"<b>","url":null,` + end:                message(1, messages.ByHuman, `{"message_id":"msg-001","uiSchema":{}}`),
		`{"id":"m1","seq":2,"role":"assistant","content":"<b>","uiSchema":` + schema + `,` + end: message(2, messages.ByAgent, `{"message_id":7,"uiSchema":`+schema+`}`),
		`{"id":"tool_run_abc123","seq":4,"role":"tool","content":"<b>","uiSchema":null,` + end:   message(4, messages.ByAgent, `{"stage":"tool_execution","message_id":"tool_run_abc123","uiSchema":"none"}`),
		`{"id":"m1","seq":5,"role":"assistant","content":"<b>","uiSchema":null,` + end:           message(5, messages.ByAgent, `{}`),
	} {
		view, err := call{}.historyMessage(t.Context(), &m)
		if err != nil {
			t.Fatal(err)
		}
		response := httptest.NewRecorder()
		if err := exchange.Respond(response, http.StatusOK, view); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(response.Body.String()); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
