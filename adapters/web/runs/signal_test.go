package runs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/web/internal/testapi"
	"parley/adapters/web/payload"
)

// TestSignals checks that input and files become messages of the run's thread, and that a stop
// stops.
func TestSignals(t *testing.T) {
	const path = "/api/v1/runs/" + testapi.Run + "/signals"
	for name, c := range map[string]struct {
		token, body string
		status      int
		message     string // the content of the accepted message
		files       int
		stopped     []string
	}{
		"input":             {testapi.OwnToken, `{"signal":"UserInput","data":{"message":"and?","client_message_id":"c2","metadata":{"mood":1}}}`, 202, "and?", 0, nil},
		"input with a file": {testapi.OwnToken, `{"signal":"UserInput","data":{"message":"see","attachments":[{"name":"a.txt","data":"aGk="}]}}`, 202, "see", 1, nil},
		"a file":            {testapi.OwnToken, `{"signal":"FileUploaded","data":{"filename":"a.txt","content_type":"text/plain","data":"aGk="}}`, 202, "", 1, nil},
		"a stop":            {testapi.OwnToken, `{"signal":"Stop","data":{"message":"enough"}}`, 202, "", 0, []string{testapi.Run + " Stopped."}},
		"no message":        {testapi.OwnToken, `{"signal":"UserInput","data":{"message":7}}`, 400, "", 0, nil},
		"no file":           {testapi.OwnToken, `{"signal":"FileUploaded","data":{"name":"a.txt"}}`, 400, "", 0, nil},
		"another name":      {testapi.OwnToken, `{"signal":"UserInput","data":{"message":"hi","metadata":{"sender_id":"web:ada"}}}`, 400, "", 0, nil},
		"another signal":    {testapi.OwnToken, `{"signal":"Resume"}`, 400, "", 0, nil},
		"no object":         {testapi.OwnToken, `[]`, 400, "", 0, nil},
		"given twice":       {testapi.OwnToken, `{"signal":"UserInput","signal":"Stop"}`, 400, "", 0, nil},
		"an agent's":        {testapi.AnyToken, `{"signal":"Stop"}`, 403, "", 0, nil},
		"only a reader's":   {testapi.ReaderToken, `{"signal":"Stop"}`, 404, "", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.Working()
			s.Backend.Result = testapi.Stored
			status, body := testapi.Post(t, s.Serve(t), c.token, path, c.body)
			if diff := cmp.Diff(c.stopped, s.Stopped); status != c.status || diff != "" || len(s.Backend.Files) != c.files {
				t.Fatalf("%d %s, %d files %s", status, body, len(s.Backend.Files), diff)
			}
			if len(s.Backend.Accepted) == 0 {
				if c.status == http.StatusAccepted && c.stopped == nil {
					t.Error("no message was accepted")
				}
				return
			}
			got, err := payload.ReadBody(s.Backend.Accepted[0].Body)
			if err != nil || got.Content != c.message || got.ThreadID != testapi.Thread || len(got.Attachments) != c.files {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	s := testapi.Working()
	s.End("done", nil)
	if status, body := testapi.Post(t, s.Serve(t), testapi.OwnToken, path, `{"signal":"Stop"}`); status != http.StatusGone {
		t.Errorf("a stop after the end: %d %s", status, body)
	}
}

// TestSignalsBeforeTheBegin checks that a caller signals a run of its own that waits for others, and
// one that begins during the request.
func TestSignalsBeforeTheBegin(t *testing.T) {
	s := testapi.Working()
	s.Named = map[string]string{"soon": "", "late": "", "unrecorded": ""}
	s.Backend.Result = testapi.Stored
	server := s.Serve(t)
	for _, signal := range []struct {
		run, body, answer string
	}{
		{"soon", `{"signal":"UserInput","data":{"message":"and?"}}`, ""},
		{"soon", `{"signal":"Stop"}`, `{"run_id":"soon"}`},
		{"late", `{"signal":"Stop"}`, `{"run_id":"` + testapi.Run + `"}`},
	} {
		status, body := testapi.Post(t, server, testapi.OwnToken, "/runs/"+signal.run+"/signals", signal.body)
		if status != http.StatusAccepted || signal.answer != "" && strings.TrimSpace(body) != signal.answer {
			t.Errorf("%s %s: %d %s", signal.run, signal.body, status, body)
		}
	}
	if diff := cmp.Diff([]string{"soon Stopped.", testapi.Run + " Stopped."}, s.Stopped); diff != "" {
		t.Error(diff)
	}
	got, err := payload.ReadBody(s.Backend.Accepted[0].Body)
	if err != nil || got.ThreadID != testapi.Thread || got.Content != "and?" {
		t.Errorf("%+v, %v", got, err)
	}
	if status, body := testapi.Post(t, server, testapi.OwnToken, "/runs/unrecorded/signals", `{"signal":"Stop"}`); status != http.StatusServiceUnavailable {
		t.Errorf("a run whose message is not recorded yet: %d %s", status, body)
	}
	if status, body := testapi.Post(t, server, "their-token", "/runs/soon/signals", `{"signal":"Stop"}`); status != http.StatusNotFound {
		t.Errorf("a run of others: %d %s", status, body)
	}
}
