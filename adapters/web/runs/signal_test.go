package runs_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/web/internal/testapi"
	"parley/ingest/journal/messages"
)

// TestSignals checks that input and files become messages of the run's thread, and that a stop
// stops.
func TestSignals(t *testing.T) {
	s := testapi.Working(t)
	for name, c := range map[string]struct {
		token, body string
		status      int
		message     string // the content of the accepted message
		files       int
		stopped     bool
	}{
		"input":             {testapi.OwnToken, `{"signal":"UserInput","data":{"message":"and?","client_message_id":"c2","metadata":{"mood":1}}}`, 202, "and?", 0, false},
		"input with a file": {testapi.OwnToken, `{"signal":"UserInput","data":{"message":"see","attachments":[{"name":"a.txt","data":"aGk="}]}}`, 202, "see", 1, false},
		"a file":            {testapi.OwnToken, `{"signal":"FileUploaded","data":{"filename":"a.txt","content_type":"text/plain","data":"aGk="}}`, 202, "", 1, false},
		"a stop":            {testapi.OwnToken, `{"signal":"Stop","data":{"message":"enough"}}`, 202, "", 0, true},
		"no message":        {testapi.OwnToken, `{"signal":"UserInput","data":{"message":7}}`, 400, "", 0, false},
		"no file":           {testapi.OwnToken, `{"signal":"FileUploaded","data":{"name":"a.txt"}}`, 400, "", 0, false},
		"another name":      {testapi.OwnToken, `{"signal":"UserInput","data":{"message":"hi","metadata":{"sender_id":"web:ada"}}}`, 400, "", 0, false},
		"another signal":    {testapi.OwnToken, `{"signal":"Resume"}`, 400, "", 0, false},
		"no object":         {testapi.OwnToken, `[]`, 400, "", 0, false},
		"given twice":       {testapi.OwnToken, `{"signal":"UserInput","signal":"Stop"}`, 400, "", 0, false},
		"an agent's":        {testapi.AgentToken, `{"signal":"Stop"}`, 403, "", 0, false},
		"only a reader's":   {testapi.ReaderToken, `{"signal":"Stop"}`, 404, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			if c.stopped {
				s = testapi.Working(t)
			}
			before := len(said(s.API))
			status, body := s.Post(c.token, "/api/v1/runs/"+s.ID+"/signals", c.body)
			if state := s.Page().State; status != c.status || (state == "cancelled") != c.stopped {
				t.Fatalf("%d %s; the run is %s", status, body, state)
			}
			more := said(s.API)[before:]
			switch {
			case c.stopped:
				if len(more) != 1 || more[0].Content != "Stopped." || !more[0].IsNotice() {
					t.Errorf("the notice is %+v", more)
				}
			case c.status == http.StatusAccepted:
				if len(more) != 1 || more[0].Content != c.message || len(more[0].Attachments) != c.files || more[0].SenderID != "user:cab9ee32-ba26-59ea-b824-a6ce8b75dc93" {
					t.Errorf("the message is %+v", more)
				}
			case len(more) > 0:
				t.Errorf("there are more messages: %+v", more)
			}
		})
	}
	s.Reply("Yes.")
	if status, body := s.Post(testapi.OwnToken, "/api/v1/runs/"+s.ID+"/signals", `{"signal":"Stop"}`); status != http.StatusGone {
		t.Errorf("a stop after the end: %d %s", status, body)
	}
}

// said returns the messages of Thread.
func said(api *testapi.API) []messages.Listed {
	api.Helper()
	list, err := api.Journal.Messages.ThreadMessages(api.Context(), "ours", testapi.Thread, messages.Page{Limit: 100})
	if err != nil {
		api.Fatal(err)
	}
	return list
}

// last returns the text of the last message of Thread.
func last(api *testapi.API) string {
	list := said(api)
	return list[len(list)-1].Content
}

// TestSignalsBeforeTheBegin checks that a caller signals a run of its own that waits for others, and
// one that begins during the request.
func TestSignalsBeforeTheBegin(t *testing.T) {
	api := waiting(t, "soon").API
	if status, body := api.Post(testapi.TheirToken, "/runs/soon/signals", `{"signal":"Stop"}`); status != http.StatusNotFound {
		t.Errorf("a run of others: %d %s", status, body)
	}
	if status, body := api.Post(testapi.OwnToken, "/runs/soon/signals", `{"signal":"UserInput","data":{"message":"and?"}}`); status != http.StatusAccepted || last(api) != "and?" {
		t.Errorf("input: %d %s, %+v", status, body, said(api))
	}
	if status, body := api.Post(testapi.OwnToken, "/runs/soon/signals", `{"signal":"Stop"}`); status != http.StatusAccepted || strings.TrimSpace(body) != `{"run_id":"soon"}` || last(api) != "Stopped." {
		t.Errorf("a stop: %d %s, %+v", status, body, said(api))
	}

	first := waiting(t, "late")
	api = first.API
	var run *testapi.Run
	api.Write.Store(new(func() { // as a worker may at any time
		first.Reply("Yes.")
		run = first.Next()
	}))
	if status, body := api.Post(testapi.OwnToken, "/runs/late/signals", `{"signal":"Stop"}`); status != http.StatusAccepted || strings.TrimSpace(body) != `{"run_id":"`+run.ID+`"}` || run.Page().State != "cancelled" {
		t.Errorf("a run that begins: %d %s", status, body)
	}
}

// TestStopBeforeTheRecord checks that a caller tries again to stop a run whose message is not recorded yet.
func TestStopBeforeTheRecord(t *testing.T) {
	api := testapi.New(t)
	wait, reading := make(chan struct{}), make(chan struct{}, 10)
	api.Normalize = func(ctx context.Context) error {
		if ctx.Err() == nil {
			reading <- struct{}{}
			<-wait
		}
		return ctx.Err()
	}
	asked := make(chan int)
	go func() {
		status, _ := api.Post(testapi.OwnToken, "/api/v1/agent/runs", input("unrecorded"))
		asked <- status
	}()
	<-reading
	if status, body := api.Post(testapi.OwnToken, "/runs/unrecorded/signals", `{"signal":"Stop"}`); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
	close(wait)
	if status := <-asked; status != http.StatusAccepted {
		t.Errorf("the run: %d", status)
	}
	if status, body := api.Post(testapi.OwnToken, "/runs/unrecorded/signals", `{"signal":"Stop"}`); status != http.StatusAccepted {
		t.Errorf("again: %d %s", status, body)
	}
}
