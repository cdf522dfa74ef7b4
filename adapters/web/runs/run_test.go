package runs_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/web/internal/testapi"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// TestEventsOfARun checks the route of the stored messages.
func TestEventsOfARun(t *testing.T) {
	s := testapi.Working()
	s.Have(runs.Event{Seq: 5, Message: stream.Message{Type: stream.Update, Details: json.RawMessage(`{"tool":"search"}`)}})
	server := s.Serve(t)
	for path, want := range map[string]string{
		"":                 `{"events":[{"seq":1,"stage":"intent",` + testapi.At("1", `"t":1,"m":"hm"`)[1:] + `,{"seq":5,"stage":"tool_execution","t":3,"d":{"tool":"search"}}],"next":null}`,
		"?after=1&limit=1": `{"events":[],"next":4}`,
		"?after=4&limit=1": `{"events":[{"seq":5,"stage":"tool_execution","t":3,"d":{"tool":"search"}}],"next":5}`,
	} {
		if status, body := testapi.Get(t, server, testapi.OwnToken, "/api/v1/runs/"+testapi.Run+"/events"+path); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s; want %s", path, status, body, want)
		}
	}
	if status, body := testapi.Get(t, server, testapi.OwnToken, "/api/v1/runs/"+testapi.Run+"/events?after=x"); status != http.StatusBadRequest {
		t.Errorf("a faulty query: %d %s", status, body)
	}
}

// TestRunsOfOthers checks that a caller cannot tell runs of others from unknown runs. The same
// holds for a run under another thread's id.
func TestRunsOfOthers(t *testing.T) {
	server := testapi.Working().Serve(t)
	_, unknown := testapi.Get(t, server, testapi.OwnToken, "/api/v1/runs/nothing/events")
	for name, c := range map[string]struct {
		token, path string
		status      int
	}{
		"own":                 {testapi.OwnToken, testapi.Updates, 200},
		"an agent's":          {testapi.AnyToken, testapi.Updates, 200},
		"read":                {testapi.ReaderToken, testapi.Updates, 200},
		"under /api/v1":       {testapi.OwnToken, "/api/v1" + testapi.Updates, 200},
		"of others":           {"their-token", testapi.Updates, 404},
		"events of others":    {"their-token", "/api/v1/runs/" + testapi.Run + "/events", 404},
		"stream of others":    {"their-token", testapi.Follow, 404},
		"unknown":             {testapi.OwnToken, "/runs/" + testapi.Thread + "/nothing/updates", 404},
		"in another thread":   {testapi.OwnToken, "/runs/" + testapi.RowID + "/" + testapi.Run + "/updates", 404},
		"without a token":     {"", testapi.Updates, 401},
		"a faulty since":      {testapi.OwnToken, testapi.Updates + "?since=x", 400},
		"a faulty skip":       {testapi.OwnToken, testapi.Follow + "?skipHistory=1", 400},
		"a thread's upper id": {testapi.OwnToken, "/runs/" + strings.ToUpper(testapi.Thread) + "/" + testapi.Run + "/updates", 200},
	} {
		status, body := testapi.Get(t, server, c.token, c.path)
		if status != c.status || status == http.StatusNotFound && body != unknown {
			t.Errorf("%s: %d %s; want %d", name, status, body, c.status)
		}
	}
}

// TestUpdates checks the history of a run in each of its states.
func TestUpdates(t *testing.T) {
	hm, y := testapi.At("1", `"t":1,"m":"hm"`), testapi.At("4", `"t":12,"m":"Y"`)
	reply := &messages.Message{Author: messages.ByAgent, Version: 1, Content: "Yes."}
	answer := `{"t":7,"m":"Yes.","ts":` + testapi.Stamp("9") + `,"i":"run-1/answer"}`
	notice := &messages.Message{Author: messages.BySystem, Content: "Sorry."}
	first := `{"t":8,"m":"so?","d":{"ack":"c1","by":{"id":"web:u-1"}},"ts":` + testapi.NoonMillis + `}`
	for name, c := range map[string]struct {
		change func(s *testapi.Store)
		query  string
		want   []string
	}{
		"working":                          {func(*testapi.Store) {}, "", []string{first, hm, y}},
		"since":                            {func(*testapi.Store) {}, "?since=" + testapi.Stamp("4"), []string{y}},
		"since the question, and its time": {func(*testapi.Store) {}, "?since=" + testapi.NoonMillis, []string{first, hm, y}},
		"done":                             {func(s *testapi.Store) { s.End("done", reply) }, "", []string{first, hm, y, answer, testapi.At("10", `"t":4`)}},
		"done, since":                      {func(s *testapi.Store) { s.End("done", reply) }, "?since=" + testapi.Stamp("99"), []string{answer, testapi.At("10", `"t":4`)}},
		"its end is stored": {func(s *testapi.Store) {
			s.Page.Answered, s.Page.Closed = true, true
			s.Have(testapi.Said(5, stream.Answer, "Yes."), testapi.Said(6, stream.Complete, "bye"))
			s.End("done", reply)
		}, "?since=" + testapi.Stamp("5"), []string{testapi.At("5", `"t":7,"m":"Yes."`), testapi.At("6", `"t":4,"m":"bye"`)}},
		"failed":    {func(s *testapi.Store) { s.End("failed", notice) }, "", []string{first, hm, y, testapi.At("9", `"t":6,"m":"Sorry."`), testapi.At("10", `"t":11`)}},
		"cancelled": {func(s *testapi.Store) { s.End("cancelled", notice) }, "", []string{first, hm, y, testapi.At("10", `"t":11,"m":"Sorry."`)}},
		"of another workstream": {func(s *testapi.Store) {
			s.Have(runs.Event{Seq: 5, Message: stream.Message{Type: stream.Complete, Workstream: "w2", Time: testapi.Noon.Add(5 * time.Millisecond)}}, testapi.Said(6, stream.Update, "on"))
		}, "?since=" + testapi.Stamp("5"), []string{testapi.At("5", `"t":4,"w":"w2"`), testapi.At("6", `"t":3,"m":"on"`)}},
		"many": {func(s *testapi.Store) {
			for seq := range int64(250) {
				s.Have(testapi.Said(seq+5, stream.Update, "on"))
			}
		}, "?since=" + testapi.Stamp("254"), []string{testapi.At("254", `"t":3,"m":"on"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.Working()
			c.change(s)
			status, body := testapi.Get(t, s.Serve(t), testapi.OwnToken, testapi.Updates+c.query)
			want := `{"messages":[` + strings.Join(c.want, ",") + `],"dropped":0,"run_id":"` + testapi.Run + `"}`
			if diff := cmp.Diff(want, strings.TrimSpace(body)); status != http.StatusOK || diff != "" {
				t.Errorf("%d %s", status, diff)
			}
		})
	}
}

// TestUpdatesAreBounded checks that the newest messages are kept, and the number of the others told, of
// which some are not stored any more.
func TestUpdatesAreBounded(t *testing.T) {
	s := testapi.Working()
	s.Page.Dropped = 5
	for seq := range int64(1200) {
		s.Have(testapi.Said(seq+5, stream.Update, "on"))
	}
	status, body := testapi.Get(t, s.Serve(t), testapi.OwnToken, testapi.Updates)
	var got struct {
		Messages []stream.Message
		Dropped  int
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	all := 1 + len(s.Page.Events) // with the question
	if len(got.Messages) != stream.MaxKept || got.Dropped != 5+all-stream.MaxKept || got.Messages[0].Type != stream.Question {
		t.Errorf("%d messages, %d dropped", len(got.Messages), got.Dropped)
	}
}

// TestAgentForm checks the readable form on each route, and that an unknown key of a query is refused.
func TestAgentForm(t *testing.T) {
	s := testapi.Working()
	server := s.Serve(t)
	const chunk = `"workflow_run_id":"` + testapi.Run + `","type":12,"message":"Y","details":{"is_final":false,"streaming_id":"main"},"workstream_id":"main"}`
	for path, want := range map[string]string{
		testapi.Updates + "?format=agent":                        chunk,
		testapi.Updates + "?format=agent&html=true":              `"type":1,"message":"hm","workstream_id":"main","html":"<p>hm</p>"}`,
		testapi.Updates + "?html=true":                           `{"t":12,"m":"Y"`,
		testapi.Updates + "?html=false":                          `"t":1,"m":"hm"`,
		"/api/v1/agent/runs/" + testapi.Run + "/updates":         `"t":1,"m":"hm"`,
		"/api/v1/runs/" + testapi.Run + "/events?format=agent":   `{"seq":1,"stage":"intent","timestamp":` + testapi.Stamp("1") + `,"workflow_run_id":"` + testapi.Run + `","type":1,"message":"hm"`,
		"/api/v1/runs/" + testapi.Run + "/events?format=compact": `"stage":"intent","t":1,"m":"hm"`,
	} {
		if status, body := testapi.Get(t, server, testapi.OwnToken, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{testapi.Updates, strings.TrimSuffix(testapi.Updates, "updates") + "stream", "/api/v1/agent/runs/" + testapi.Run + "/stream", "/api/v1/runs/" + testapi.Run + "/events"} {
		for query, key := range map[string]string{"?formt=agent": "formt", "?format=other": "format", "?Since=1": "Since"} {
			if status, body := testapi.Get(t, server, testapi.OwnToken, path+query); status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+key) {
				t.Errorf("%s%s: %d %s", path, query, status, body)
			}
		}
	}
}

// TestUpdatesOfAnAgent checks which messages a token of an agent may add, and that they name it.
func TestUpdatesOfAnAgent(t *testing.T) {
	const path = "/runs/" + testapi.Run + "/updates"
	for kind := range stream.Type(14) {
		s := testapi.Working()
		body := `{"t":` + kindNumber(kind) + `,"m":"x","d":{"n":1}}`
		for _, token := range []string{testapi.AnyToken, testapi.OwnToken} {
			status, answer := testapi.Post(t, s.Serve(t), token, path, body)
			switch kind {
			case stream.Thought, stream.Plan, stream.Update, stream.Warning, stream.System, stream.BatchProgress:
				if token == testapi.AnyToken && (status != http.StatusAccepted || string(s.Added[0].Details) != `{"author":"`+string(testapi.AgentActor)+`","n":1}`) {
					t.Errorf("%v: %d %s, %+v", kind, status, answer, s.Added)
				}
			default:
				if status != http.StatusForbidden || !strings.Contains(answer, kind.String()) || len(s.Added) > 0 {
					t.Errorf("%v: %d %s", kind, status, answer)
				}
			}
		}
	}
}

func kindNumber(kind stream.Type) string { raw, _ := json.Marshal(kind); return string(raw) }

// TestUpdatesOfTheRunsOwnAgent checks that its answer, its question and the end of its run take effect.
func TestUpdatesOfTheRunsOwnAgent(t *testing.T) {
	const path = "/runs/" + testapi.Run + "/updates"
	answer := func(kind stream.Type, text string) *stream.Message { return &stream.Message{Type: kind, Text: text} }
	for name, c := range map[string]struct {
		secret, body string
		status       int
		want         *stream.Message // that takes effect
		added        int
	}{
		"an answer":                 {testapi.HookSecret, `[{"t":3,"m":"half"},{"t":7,"m":"Yes."},{"t":4}]`, 202, answer(stream.Answer, "Yes."), 1},
		"a question":                {testapi.HookSecret, `{"t":9,"m":"Which?"}`, 202, answer(stream.RequestInput, "Which?"), 0},
		"an answer and a question":  {testapi.HookSecret, `[{"t":7,"m":"Two."},{"t":9,"m":"Which?"}]`, 202, answer(stream.RequestInput, "Two.\n\nWhich?"), 0},
		"a failure":                 {testapi.HookSecret, `{"t":6,"m":"broken"}`, 202, answer(stream.Error, "broken"), 0},
		"streamed text":             {testapi.HookSecret, `[{"t":12,"m":"Hm","i":"th"},{"t":1,"m":"Hm","i":"th"},{"t":12,"m":"Ye","i":"a"},{"t":12,"m":"s.","i":"a"},{"t":10}]`, 202, &stream.Message{Type: stream.Answer, Text: "YYes.", ActivityID: "a"}, 4},
		"waiting and an answer":     {testapi.HookSecret, `[{"t":10},{"t":7,"m":"Yes."}]`, 202, answer(stream.Answer, "Yes."), 0},
		"an error on the way":       {testapi.HookSecret, `[{"t":6,"m":"a tool failed"},{"t":7,"m":"Yes."}]`, 202, answer(stream.Answer, "Yes."), 1},
		"an answer behind the end":  {testapi.HookSecret, `[{"t":4},{"t":7,"m":"Yes."}]`, 400, nil, 0},
		"words behind the end":      {testapi.HookSecret, `[{"t":3,"m":"half"},{"t":11},{"t":1,"m":"hm"}]`, 400, nil, 0},
		"two answers":               {testapi.HookSecret, `[{"t":7,"m":"one"},{"t":7,"m":"two"}]`, 400, nil, 0},
		"an error behind an answer": {testapi.HookSecret, `[{"t":7,"m":"one"},{"t":6,"m":"broken"}]`, 400, nil, 0},
		"an end and another stream": {testapi.HookSecret, `[{"t":4,"m":"Yes."},{"t":1,"m":"hm","w":"w2"}]`, 202, answer(stream.Answer, "Yes."), 1},
		"a text at the end":         {testapi.HookSecret, `{"t":4,"m":"Yes."}`, 202, answer(stream.Answer, "Yes."), 0},
		"progress alone":            {testapi.HookSecret, `{"t":1,"m":"hm"}`, 202, nil, 1},
		"the end of another stream": {testapi.HookSecret, `{"t":4,"w":"w2"}`, 202, nil, 1},
		"a question of people":      {testapi.HookSecret, `{"t":8,"m":"so?"}`, 400, nil, 0},
		"of another agent":          {"a-secret-of-another-hook", `{"t":7,"m":"Yes."}`, 404, nil, 0},
		"a wrong secret":            {"no-secret-of-any-hook", `{"t":7,"m":"Yes."}`, 401, nil, 0},
	} {
		s := testapi.Working()
		if name == "streamed text" {
			s.Page.Events[1].ActivityID = "a"
		}
		server := s.Serve(t)
		status, body := testapi.Post(t, server, c.secret, path, c.body)
		if diff := cmp.Diff(c.want, s.Answer); status != c.status || len(s.Added) != c.added || diff != "" || (s.Woken > 0) != (c.want != nil) {
			t.Errorf("%s: %d %s, %d added\n%s", name, status, body, len(s.Added), diff)
		}
		if c.want == nil {
			continue
		}
		if status, _ := testapi.Post(t, server, c.secret, path, c.body); status != http.StatusAccepted {
			t.Errorf("%s: the same again: %d", name, status)
		}
		if status, _ := testapi.Post(t, server, c.secret, path, `{"t":7,"m":"again"}`); status != http.StatusConflict {
			t.Errorf("%s: a second answer: %d", name, status)
		}
		if status, _ := testapi.Post(t, server, c.secret, path, `{"t":4}`); status != http.StatusAccepted {
			t.Errorf("%s: the end after the answer: %d", name, status)
		}
	}
}

// TestUpdatesAreZipped for clients that take it.
func TestUpdatesAreZipped(t *testing.T) {
	server := testapi.Working().Serve(t)
	_, plain := testapi.Get(t, server, testapi.OwnToken, testapi.Updates, "Accept-Encoding", "br, gzip;q=0")
	_, packed := testapi.Get(t, server, testapi.OwnToken, testapi.Updates, "Accept-Encoding", "br, GZIP;q=0.5")
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(z); err != nil || string(raw) != plain || !strings.HasPrefix(plain, "{") {
		t.Errorf("%q, %v; want %q", raw, err, plain)
	}
}

// ear reads a stream's events as "id data".
type ear struct {
	*testing.T
	lines *bufio.Scanner
}

// listens opens a stream.
func listens(t *testing.T, server *httptest.Server, path string, header ...string) ear {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testapi.OwnToken)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := server.Client().Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return ear{t, bufio.NewScanner(response.Body)}
}

// hears fails the test if the next events are others.
func (e ear) hears(want ...string) {
	e.Helper()
	var got []string
	id := ""
	for len(got) < len(want) && e.lines.Scan() {
		name, value, _ := strings.Cut(e.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			got = append(got, id+" "+value)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Fatal(diff)
	}
}

// ends fails the test if the stream has more events.
func (e ear) ends() {
	e.Helper()
	for e.lines.Scan() {
		if strings.HasPrefix(e.lines.Text(), "data") {
			e.Fatal(e.lines.Text())
		}
	}
}

// TestStreamOfARun checks that a stream has the history and then what comes, and ends with the
// run; and that a client which comes back continues behind its last message.
func TestStreamOfARun(t *testing.T) {
	s := testapi.Working()
	server := s.Serve(t)
	first := `0 {"t":8,"m":"so?","d":{"ack":"c1","by":{"id":"web:u-1"}},"ts":` + testapi.NoonMillis + `}`
	hm, y := "1 "+testapi.At("1", `"t":1,"m":"hm"`), "4 "+testapi.At("4", `"t":12,"m":"Y"`)
	all := listens(t, server, testapi.Follow)
	all.hears(first, hm, y)
	alias := listens(t, server, "/api/v1/agent/runs/"+testapi.Run+"/stream?since="+testapi.Stamp("4"))
	alias.hears(y)
	later := listens(t, server, testapi.Follow+"?skipHistory=true")
	since := listens(t, server, "/api/v1"+testapi.Follow+"?skipHistory=true&since="+testapi.Stamp("2"))
	since.hears(y)
	back := listens(t, server, testapi.Follow+"?skipHistory=true&since="+testapi.Stamp("1"), "Last-Event-ID", "1")
	back.hears(y)
	asked := listens(t, server, testapi.Follow, "Last-Event-ID", "0")
	asked.hears(hm, y)

	s.Have(testapi.Said(5, stream.Update, "on"))
	s.End("done", &messages.Message{Author: messages.ByAgent, Version: 1, Content: "Yes."})
	close(s.Changed)
	end := []string{
		"5 " + testapi.At("5", `"t":3,"m":"on"`),
		`1099511627777 {"t":7,"m":"Yes.","ts":` + testapi.Stamp("9") + `,"i":"run-1/answer"}`, "1099511627778 " + testapi.At("10", `"t":4`),
	}
	for _, e := range []ear{all, alias, later, since, back, asked} {
		e.hears(end...)
		e.ends()
	}
	behind := listens(t, server, testapi.Follow, "Last-Event-ID", "1099511627777")
	behind.hears(end[2:]...)
	behind.ends()
	ended := listens(t, server, testapi.Follow+"?skipHistory=true")
	ended.hears(end[2:]...)
	ended.ends()
	if status, body := testapi.Get(t, server, testapi.OwnToken, testapi.Follow, "Last-Event-ID", "1099511627778"); status != http.StatusNoContent {
		t.Errorf("a client that has heard everything: %d %s", status, body)
	}
}

// TestSkippedHistoryHasTheEnd checks a reader that skips the history of a long run, whose stored
// end is not on the first page.
func TestSkippedHistoryHasTheEnd(t *testing.T) {
	s := testapi.Working()
	for seq := range int64(200) {
		s.Have(testapi.Said(5+seq, stream.Update, "on"))
	}
	s.Have(testapi.Said(205, stream.Complete, ""))
	s.End("done", nil)
	s.Page.Closed, s.Page.Answered = true, true
	ended := listens(t, s.Serve(t), testapi.Follow+"?skipHistory=true")
	ended.hears("205 " + testapi.At("205", `"t":4`))
	ended.ends()
}

// TestAddedUpdates checks the messages of an external agent.
func TestAddedUpdates(t *testing.T) {
	const path = "/runs/" + testapi.Run + "/updates"
	for name, c := range map[string]struct {
		token, body string
		status      int
		added       int
	}{
		"a compact message":     {testapi.AnyToken, `{"t":1,"m":"hm"}`, 202, 1},
		"readable messages":     {testapi.AnyToken, `[{"type":"update","message":"a"},{"type":3,"message":"b","workstream_id":"w2"}]`, 202, 2},
		"the end of another":    {testapi.AnyToken, `{"t":4,"w":"w2"}`, 403, 0},
		"the end of the run":    {testapi.AnyToken, `[{"t":1},{"t":4}]`, 403, 0},
		"no message":            {testapi.AnyToken, `{"m":"hm"}`, 400, 0},
		"no object":             {testapi.AnyToken, `[[]]`, 400, 0},
		"another type":          {testapi.AnyToken, `{"t":1,"m":7}`, 400, 0},
		"no messages":           {testapi.AnyToken, `[]`, 400, 0},
		"too many":              {testapi.AnyToken, `[` + strings.Repeat(`{"t":1},`, 100) + `{"t":1}]`, 400, 0},
		"of a user":             {testapi.OwnToken, `{"t":1}`, 403, 0},
		"of an agent elsewhere": {"their-agent", `{"t":1}`, 404, 0},
	} {
		s := testapi.Working()
		status, body := testapi.Post(t, s.Serve(t), c.token, path, c.body)
		if status != c.status || len(s.Added) != c.added || strings.Contains(body, " Go ") {
			t.Errorf("%s: %d %s, %d added; want %d, %d", name, status, body, len(s.Added), c.status, c.added)
		}
	}
	s := testapi.Working()
	s.End("done", nil)
	if status, body := testapi.Post(t, s.Serve(t), testapi.AnyToken, path, `{"t":1}`); status != http.StatusGone {
		t.Errorf("after the end: %d %s", status, body)
	}
}

// TestStreamOfMany checks that a stream leaves out more messages than it reads at once.
func TestStreamOfMany(t *testing.T) {
	s := testapi.Working()
	for seq := range int64(250) {
		s.Have(testapi.Said(seq+5, stream.Update, "on"))
	}
	many := listens(t, s.Serve(t), testapi.Follow+"?since="+testapi.Stamp("254"))
	many.hears("254 " + testapi.At("254", `"t":3,"m":"on"`))
}

// TestNamedRuns checks that a client finds its run under the name that it gave, also before the
// run's begin.
func TestNamedRuns(t *testing.T) {
	s := testapi.Working()
	s.Named = map[string]string{"mine": testapi.Run, "soon": ""}
	server := s.Serve(t)
	if status, body := testapi.Get(t, server, testapi.OwnToken, "/runs/"+strings.ToUpper(testapi.Thread)+"/mine/updates"); status != http.StatusOK || !strings.Contains(body, "hm") {
		t.Errorf("by its name: %d %s", status, body)
	}
	for path, want := range map[string]string{"/runs/" + testapi.Thread + "/soon/updates": `{"messages":[],"dropped":0}`, "/api/v1/runs/soon/events": `{"events":[],"next":null}`} {
		if status, body := testapi.Get(t, server, testapi.OwnToken, path); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("before its begin: %d %s", status, body)
		}
	}
	if status, body := testapi.Get(t, server, "their-token", "/api/v1/runs/mine/events"); status != http.StatusNotFound {
		t.Errorf("a name of others: %d %s", status, body)
	}
	soon := listens(t, server, "/api/v1/agent/runs/soon/stream?since="+testapi.Stamp("4"))
	s.Mu.Lock()
	s.Named["soon"] = testapi.Run
	s.Mu.Unlock()
	soon.hears("4 " + testapi.At("4", `"t":12,"m":"Y"`))
}

// TestRunsAboveALimit checks that a run above a limit is a 429, also if other runs have reached the
// limit since the check, and that the check comes before the thread.
func TestRunsAboveALimit(t *testing.T) {
	const input = `{"threadId":"` + testapi.Thread + `","runId":"r","state":{},"messages":[{"id":"m","role":"user","content":"hi"}],"tools":[],"context":[],"forwardedProps":{}}`
	s := testapi.Working()
	server := s.Serve(t)
	s.Until = testapi.Noon.Add(time.Hour)
	if status, body := testapi.Post(t, server, testapi.OwnToken, "/api/v1/agent/runs", input); status != http.StatusTooManyRequests || len(s.Made)+len(s.Backend.Accepted) > 0 {
		t.Errorf("%d %s, and the threads %q", status, body, s.Made)
	}
	s.Until = time.Time{}
	s.Backend.Result = func(b payload.Body) *envelopes.Result {
		return &envelopes.Result{Result: *event.Ignore(event.ReasonLimit)}
	}
	if status, body := testapi.Post(t, server, testapi.OwnToken, "/api/v1/agent/runs", input); status != http.StatusTooManyRequests || !strings.Contains(body, "ask again later") {
		t.Errorf("%d %s", status, body)
	}
	s.Backend.Result = nil
	if status, body := testapi.Post(t, server, testapi.OwnToken, "/api/v1/agent/runs", input); status != http.StatusAccepted {
		t.Errorf("the same run within the limit: %d %s", status, body)
	}
}
