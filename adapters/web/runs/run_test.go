package runs_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/web/internal/testapi"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// TestEventsOfARun checks the route of the stored messages.
func TestEventsOfARun(t *testing.T) {
	s := testapi.Working(t)
	s.Say(5, stream.Message{Type: stream.Update, Details: json.RawMessage(`{"tool":"search"}`)})
	update := `{"seq":3,"stage":"tool_execution",` + testapi.Message("5", `"t":3,"d":{"tool":"search"}`)[1:]
	for path, want := range map[string]string{
		"":                 `{"events":[{"seq":1,"stage":"intent",` + testapi.Message("1", `"t":1,"m":"hm"`)[1:] + `,` + update + `],"next":null}`,
		"?after=1&limit=1": `{"events":[],"next":2}`,
		"?after=2&limit=1": `{"events":[` + update + `],"next":3}`,
	} {
		if status, body := s.Get(testapi.OwnToken, "/api/v1/runs/"+s.ID+"/events"+path); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s; want %s", path, status, body, want)
		}
	}
	if status, body := s.Get(testapi.OwnToken, "/api/v1/runs/"+s.ID+"/events?after=x"); status != http.StatusBadRequest {
		t.Errorf("a faulty query: %d %s", status, body)
	}
}

// TestRunsOfOthers checks that a caller cannot tell runs of others from unknown runs. The same
// holds for a run under another thread's id.
func TestRunsOfOthers(t *testing.T) {
	s := testapi.Working(t)
	_, unknown := s.Get(testapi.OwnToken, "/api/v1/runs/nothing/events")
	for name, c := range map[string]struct {
		token, path string
		status      int
	}{
		"own":                 {testapi.OwnToken, s.Updates, 200},
		"an agent's":          {testapi.AgentToken, s.Updates, 200},
		"read":                {testapi.ReaderToken, s.Updates, 200},
		"under /api/v1":       {testapi.OwnToken, "/api/v1" + s.Updates, 200},
		"of others":           {testapi.TheirToken, s.Updates, 404},
		"events of others":    {testapi.TheirToken, "/api/v1/runs/" + s.ID + "/events", 404},
		"stream of others":    {testapi.TheirToken, s.Follow, 404},
		"unknown":             {testapi.OwnToken, "/runs/" + testapi.Thread + "/nothing/updates", 404},
		"in another thread":   {testapi.OwnToken, "/runs/" + testapi.Other + "/" + s.ID + "/updates", 404},
		"without a token":     {"", s.Updates, 401},
		"a faulty since":      {testapi.OwnToken, s.Updates + "?since=x", 400},
		"a faulty skip":       {testapi.OwnToken, s.Follow + "?skipHistory=1", 400},
		"a thread's upper id": {testapi.OwnToken, "/runs/" + strings.ToUpper(testapi.Thread) + "/" + s.ID + "/updates", 200},
	} {
		status, body := s.Get(c.token, c.path)
		if status != c.status || status == http.StatusNotFound && body != unknown {
			t.Errorf("%s: %d %s; want %d", name, status, body, c.status)
		}
	}
}

// first is the message of a working run's question.
var first = testapi.Message("0", `"t":8,"m":"so?","d":{"ack":"c1","by":{"id":"web:olivia","name":"Olivia"}}`)

// on returns many messages of an agent.
func on(n int) []stream.Message {
	return slices.Repeat([]stream.Message{testapi.Said(stream.Update, "on")}, n)
}

// TestUpdates checks the history of a run in each of its states.
func TestUpdates(t *testing.T) {
	hm, y := testapi.Message("1", `"t":1,"m":"hm"`), testapi.Message("4", `"t":12,"m":"Y"`)
	const answer = `{"t":7,"m":"Yes.","ts":ANSWERED,"i":"RUN/answer"}`
	for name, c := range map[string]struct {
		change func(s *testapi.Run)
		query  string
		want   []string
	}{
		"working":                          {func(*testapi.Run) {}, "", []string{first, hm, y}},
		"since":                            {func(*testapi.Run) {}, "?since=" + testapi.Stamp("4"), []string{y}},
		"since the question, and its time": {func(*testapi.Run) {}, "?since=" + testapi.Stamp("0"), []string{first, hm, y}},
		"done":                             {func(s *testapi.Run) { s.Reply("Yes.") }, "", []string{first, hm, answer, testapi.Message("10", `"t":4`)}},
		"done, since":                      {func(s *testapi.Run) { s.Reply("Yes.") }, "?since=" + testapi.Stamp("99"), []string{answer, testapi.Message("10", `"t":4`)}},
		"its end is stored": {func(s *testapi.Run) {
			s.Reply("Yes.", testapi.Said(stream.Answer, "Yes."), testapi.Said(stream.Complete, "bye"))
		}, "?since=" + testapi.Stamp("5"), []string{testapi.Message("9", `"t":7,"m":"Yes."`), testapi.Message("10", `"t":4,"m":"bye"`)}},
		"failed":    {func(s *testapi.Run) { s.GiveUp("Sorry.") }, "", []string{first, hm, testapi.Message("9", `"t":6,"m":"Sorry."`), testapi.Message("10", `"t":11`)}},
		"cancelled": {func(s *testapi.Run) { s.Stop("Sorry.") }, "", []string{first, hm, testapi.Message("10", `"t":11,"m":"Sorry."`)}},
		"of another workstream": {func(s *testapi.Run) {
			s.Say(5, stream.Message{Type: stream.Complete, Workstream: "w2"}, testapi.Said(stream.Update, "on"))
		}, "?since=" + testapi.Stamp("5"), []string{testapi.Message("5", `"t":4,"w":"w2"`), testapi.Message("6", `"t":3,"m":"on"`)}},
		"many": {func(s *testapi.Run) { s.Say(5, on(250)...) }, "?since=" + testapi.Stamp("254"), []string{testapi.Message("254", `"t":3,"m":"on"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testapi.Working(t)
			c.change(s)
			status, body := s.Get(testapi.OwnToken, s.Updates+c.query)
			want := `{"messages":[` + strings.Join(c.want, ",") + `],"dropped":0,"run_id":"RUN"}`
			want = strings.NewReplacer("RUN", s.ID, "ANSWERED", testapi.Stamp("9")).Replace(want)
			if diff := cmp.Diff(want, strings.TrimSpace(body)); status != http.StatusOK || diff != "" {
				t.Errorf("%d %s", status, diff)
			}
		})
	}
}

// TestUpdatesAreBounded checks that the newest messages are kept, and the number of the others told, of
// which some are not stored any more.
func TestUpdatesAreBounded(t *testing.T) {
	s := testapi.Working(t)
	s.Say(5, on(1600)...)
	s.Say(600_000, on(1)...)
	if s.Page().Dropped == 0 {
		t.Fatal("every message is still stored")
	}
	status, body := s.Get(testapi.OwnToken, s.Updates)
	var got struct {
		Messages []stream.Message
		Dropped  int
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	const all = 1 + 2 + 1601 // with the question
	if len(got.Messages) != stream.MaxKept || got.Dropped != all-stream.MaxKept || got.Messages[0].Type != stream.Question {
		t.Errorf("%d messages, %d dropped", len(got.Messages), got.Dropped)
	}
}

// TestAgentForm checks the readable form on each route, and that an unknown key of a query is refused.
func TestAgentForm(t *testing.T) {
	s := testapi.Working(t)
	chunk := `"workflow_run_id":"` + s.ID + `","type":12,"message":"Y","details":{"is_final":false,"streaming_id":"main"},"workstream_id":"main"}`
	for path, want := range map[string]string{
		s.Updates + "?format=agent":                       chunk,
		s.Updates + "?format=agent&html=true":             `"type":1,"message":"hm","workstream_id":"main","html":"<p>hm</p>"}`,
		s.Updates + "?html=true":                          `{"t":12,"m":"Y"`,
		s.Updates + "?html=false":                         `"t":1,"m":"hm"`,
		"/api/v1/agent/runs/" + s.ID + "/updates":         `"t":1,"m":"hm"`,
		"/api/v1/runs/" + s.ID + "/events?format=agent":   `{"seq":1,"stage":"intent","timestamp":` + testapi.Stamp("1") + `,"workflow_run_id":"` + s.ID + `","type":1,"message":"hm"`,
		"/api/v1/runs/" + s.ID + "/events?format=compact": `"stage":"intent","t":1,"m":"hm"`,
	} {
		if status, body := s.Get(testapi.OwnToken, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{s.Updates, strings.TrimSuffix(s.Updates, "updates") + "stream", "/api/v1/agent/runs/" + s.ID + "/stream", "/api/v1/runs/" + s.ID + "/events"} {
		for query, key := range map[string]string{"?formt=agent": "formt", "?format=other": "format", "?Since=1": "Since"} {
			if status, body := s.Get(testapi.OwnToken, path+query); status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+key) {
				t.Errorf("%s%s: %d %s", path, query, status, body)
			}
		}
	}
}

// TestUpdatesOfAnAgent checks which messages a token of an agent may add, and that they name it.
func TestUpdatesOfAnAgent(t *testing.T) {
	s := testapi.Working(t)
	for kind := range stream.Type(14) {
		body := `{"t":` + kindNumber(kind) + `,"m":"x","d":{"n":1}}`
		for _, token := range []string{testapi.AgentToken, testapi.OwnToken} {
			before := len(s.Page().Events)
			status, answer := s.Post(token, "/runs/"+s.ID+"/updates", body)
			added := s.Page().Events[before:]
			switch kind {
			case stream.Thought, stream.Plan, stream.Update, stream.Warning, stream.System, stream.BatchProgress:
				if token == testapi.AgentToken && (status != http.StatusAccepted || len(added) != 1 || string(added[0].Details) != `{"author":"`+string(testapi.AgentActor)+`","n":1}`) {
					t.Errorf("%v: %d %s, %+v", kind, status, answer, added)
				}
			default:
				if status != http.StatusForbidden || !strings.Contains(answer, kind.String()) || len(added) > 0 {
					t.Errorf("%v: %d %s", kind, status, answer)
				}
			}
		}
	}
}

func kindNumber(kind stream.Type) string { raw, _ := json.Marshal(kind); return string(raw) }

// TestUpdatesOfTheRunsOwnAgent checks that its answer, its question and the end of its run take effect.
func TestUpdatesOfTheRunsOwnAgent(t *testing.T) {
	answer := func(kind stream.Type, text string) *stream.Message { return &stream.Message{Type: kind, Text: text} }
	for name, c := range map[string]struct {
		secret, body string
		status       int
		want         *stream.Message // that takes effect
		added        int64
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
		"progress alone":            {testapi.HookSecret, `{"t":1,"m":"hmm"}`, 202, nil, 1},
		"the end of another stream": {testapi.HookSecret, `{"t":4,"w":"w2"}`, 202, nil, 1},
		"a question of people":      {testapi.HookSecret, `{"t":8,"m":"so?"}`, 400, nil, 0},
		"of another agent":          {testapi.OtherSecret, `{"t":7,"m":"Yes."}`, 404, nil, 0},
		"a wrong secret":            {"no-secret-of-any-hook", `{"t":7,"m":"Yes."}`, 401, nil, 0},
	} {
		s := testapi.Working(t)
		if name == "streamed text" {
			s = testapi.Asked(t)
			s.Say(4, stream.Message{Type: stream.StreamingChunk, Text: "Y", ActivityID: "a"})
		}
		path, before := "/runs/"+s.ID+"/updates", s.Last()
		status, body := s.Post(c.secret, path, c.body)
		added := s.Last() - before
		if diff := cmp.Diff(c.want, s.Later(), cmpopts.IgnoreFields(stream.Message{}, "Time")); status != c.status || added != c.added || diff != "" {
			t.Errorf("%s: %d %s, %d added\n%s", name, status, body, added, diff)
		}
		if c.want == nil {
			continue
		}
		if status, _ := s.Post(c.secret, path, c.body); status != http.StatusAccepted {
			t.Errorf("%s: the same again: %d", name, status)
		}
		if status, _ := s.Post(c.secret, path, `{"t":7,"m":"again"}`); status != http.StatusConflict {
			t.Errorf("%s: a second answer: %d", name, status)
		}
		if status, _ := s.Post(c.secret, path, `{"t":4}`); status != http.StatusAccepted {
			t.Errorf("%s: the end after the answer: %d", name, status)
		}
	}
}

// TestUpdatesAreZipped for clients that take it.
func TestUpdatesAreZipped(t *testing.T) {
	s := testapi.Working(t)
	_, plain := s.Get(testapi.OwnToken, s.Updates, "Accept-Encoding", "br, gzip;q=0")
	_, packed := s.Get(testapi.OwnToken, s.Updates, "Accept-Encoding", "br, GZIP;q=0.5")
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
	testing.TB
	lines *bufio.Scanner
}

// listens opens a stream.
func listens(s *testapi.Run, path string, header ...string) ear {
	s.Helper()
	return ear{s, bufio.NewScanner(s.Listen(path, header...))}
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
	s := testapi.Working(t)
	hm, y := "1 "+testapi.Message("1", `"t":1,"m":"hm"`), "2 "+testapi.Message("4", `"t":12,"m":"Y"`)
	all := listens(s, s.Follow)
	all.hears("0 "+first, hm, y)
	alias := listens(s, "/api/v1/agent/runs/"+s.ID+"/stream?since="+testapi.Stamp("4"))
	alias.hears(y)
	later := listens(s, s.Follow+"?skipHistory=true")
	since := listens(s, "/api/v1"+s.Follow+"?skipHistory=true&since="+testapi.Stamp("2"))
	since.hears(y)
	back := listens(s, s.Follow+"?skipHistory=true&since="+testapi.Stamp("1"), "Last-Event-ID", "1")
	back.hears(y)
	asked := listens(s, s.Follow, "Last-Event-ID", "0")
	asked.hears(hm, y)

	s.Say(5, on(1)...)
	s.Reply("Yes.")
	end := []string{
		"3 " + testapi.Message("5", `"t":3,"m":"on"`),
		`1099511627777 {"t":7,"m":"Yes.","ts":` + testapi.Stamp("9") + `,"i":"` + s.ID + `/answer"}`, "1099511627778 " + testapi.Message("10", `"t":4`),
	}
	for _, e := range []ear{all, alias, later, since, back, asked} {
		e.hears(end...)
		e.ends()
	}
	behind := listens(s, s.Follow, "Last-Event-ID", "1099511627777")
	behind.hears(end[2:]...)
	behind.ends()
	ended := listens(s, s.Follow+"?skipHistory=true")
	ended.hears(end[2:]...)
	ended.ends()
	if status, body := s.Get(testapi.OwnToken, s.Follow, "Last-Event-ID", "1099511627778"); status != http.StatusNoContent {
		t.Errorf("a client that has heard everything: %d %s", status, body)
	}
}

// TestSkippedHistoryHasTheEnd checks a reader that skips the history of a long run, whose stored
// end is not on the first page.
func TestSkippedHistoryHasTheEnd(t *testing.T) {
	s := testapi.Working(t)
	s.Say(5, on(200)...)
	s.Reply("Yes.", testapi.Said(stream.Answer, "Yes."), testapi.Said(stream.Complete, "bye"))
	page := s.Page()
	last := page.Events[len(page.Events)-1]
	if !page.Closed || last.Type != stream.Complete {
		t.Fatalf("the end is not stored: %+v", last)
	}
	ended := listens(s, s.Follow+"?skipHistory=true")
	ended.hears(fmt.Sprint(last.Seq, " ", testapi.Message(fmt.Sprint(last.Time.Sub(testapi.Noon).Milliseconds()), `"t":4,"m":"bye"`)))
	ended.ends()
}

// TestAddedUpdates checks the messages of an external agent.
func TestAddedUpdates(t *testing.T) {
	s := testapi.Working(t)
	for name, c := range map[string]struct {
		token, body string
		status      int
		added       int64
	}{
		"a compact message":     {testapi.AgentToken, `{"t":1,"m":"hm"}`, 202, 1},
		"readable messages":     {testapi.AgentToken, `[{"type":"update","message":"a"},{"type":3,"message":"b","workstream_id":"w2"}]`, 202, 2},
		"the end of another":    {testapi.AgentToken, `{"t":4,"w":"w2"}`, 403, 0},
		"the end of the run":    {testapi.AgentToken, `[{"t":1},{"t":4}]`, 403, 0},
		"no message":            {testapi.AgentToken, `{"m":"hm"}`, 400, 0},
		"no object":             {testapi.AgentToken, `[[]]`, 400, 0},
		"another type":          {testapi.AgentToken, `{"t":1,"m":7}`, 400, 0},
		"no messages":           {testapi.AgentToken, `[]`, 400, 0},
		"too many":              {testapi.AgentToken, `[` + strings.Repeat(`{"t":1},`, 100) + `{"t":1}]`, 400, 0},
		"of a user":             {testapi.OwnToken, `{"t":1}`, 403, 0},
		"of an agent elsewhere": {testapi.TheirAgent, `{"t":1}`, 404, 0},
	} {
		before := s.Last()
		status, body := s.Post(c.token, "/runs/"+s.ID+"/updates", c.body)
		if added := s.Last() - before; status != c.status || added != c.added || strings.Contains(body, " Go ") {
			t.Errorf("%s: %d %s, %d added; want %d, %d", name, status, body, added, c.status, c.added)
		}
	}
	s.Reply("Yes.")
	if status, body := s.Post(testapi.AgentToken, "/runs/"+s.ID+"/updates", `{"t":1}`); status != http.StatusGone {
		t.Errorf("after the end: %d %s", status, body)
	}
}

// TestStreamOfMany checks that a stream leaves out more messages than it reads at once.
func TestStreamOfMany(t *testing.T) {
	s := testapi.Working(t)
	s.Say(5, on(250)...)
	listens(s, s.Follow+"?since="+testapi.Stamp("254")).hears("252 " + testapi.Message("254", `"t":3,"m":"on"`))
}

// input is the body of a run in Thread with a name.
func input(name string) string {
	return `{"threadId":"` + testapi.Thread + `","runId":"` + name + `","state":{},"messages":[{"id":"m","role":"user","content":"hi"}],"tools":[],"context":[],"forwardedProps":{}}`
}

// waiting starts an API with a run that its client has named. It waits for another run, which is returned.
func waiting(t *testing.T, name string) *testapi.Run {
	t.Helper()
	api := testapi.New(t)
	asks := func(name string) {
		if status, body := api.Post(testapi.OwnToken, "/api/v1/agent/runs", input(name)); status != http.StatusAccepted {
			t.Fatal(status, body)
		}
	}
	asks("first")
	first := api.Begin()
	asks(name)
	return first
}

// TestNamedRuns checks that a client finds its run under the name that it gave, also before the
// run's begin.
func TestNamedRuns(t *testing.T) {
	before := waiting(t, "mine")
	api := before.API
	path := "/runs/" + strings.ToUpper(testapi.Thread) + "/mine/"
	for path, want := range map[string]string{path + "updates": `{"messages":[],"dropped":0}`, "/api/v1/runs/mine/events": `{"events":[],"next":null}`} {
		if status, body := api.Get(testapi.OwnToken, path); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("before its begin: %d %s", status, body)
		}
	}
	soon := ear{api, bufio.NewScanner(api.Listen("/api/v1/agent/runs/mine/stream?since=" + testapi.Stamp("4")))}
	before.Reply("Yes.")
	run := before.Next()
	run.Say(1, testapi.Said(stream.Thought, "hm"))
	run.Say(4, testapi.Said(stream.StreamingChunk, "Y"))
	soon.hears("2 " + testapi.Message("4", `"t":12,"m":"Y"`))
	if status, body := api.Get(testapi.OwnToken, path+"updates"); status != http.StatusOK || !strings.Contains(body, "hm") {
		t.Errorf("by its name: %d %s", status, body)
	}
	if status, body := api.Get(testapi.TheirToken, "/api/v1/runs/mine/events"); status != http.StatusNotFound {
		t.Errorf("a name of others: %d %s", status, body)
	}
}

// TestRunsAboveALimit checks that a run above a limit is a 429, also if other runs have reached the
// limit since the check, and that the check comes before the thread.
func TestRunsAboveALimit(t *testing.T) {
	api := testapi.New(t)
	api.Settings.Limits.RunsPerUser = ingest.Rate{Runs: 1, Per: time.Hour}
	asks := func(name string) (int, string) { return api.Post(testapi.OwnToken, "/api/v1/agent/runs", input(name)) }
	api.Accept = func(event.Envelope) error {
		api.Accept = nil
		if status, body := api.Post(testapi.OwnToken, "/api/v1/agent/runs", strings.ReplaceAll(input("other"), testapi.Thread, testapi.Other)); status != http.StatusAccepted {
			t.Errorf("the run that reaches the limit: %d %s", status, body)
		}
		return nil
	}
	if status, body := asks("late"); status != http.StatusTooManyRequests || !strings.Contains(body, "ask again later") {
		t.Errorf("%d %s", status, body)
	}
	before := len(api.Accepted())
	const unused = "7ba7b810-9dad-41d1-80b4-00c04fd430c8"
	status, body := api.Post(testapi.OwnToken, "/api/v1/agent/runs", strings.ReplaceAll(input("more"), testapi.Thread, unused))
	if _, err := api.Journal.Threads.Thread(t.Context(), "ours", unused); status != http.StatusTooManyRequests || len(api.Accepted()) != before || !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%d %s, and the thread: %v", status, body, err)
	}
	api.At(2 * time.Hour)
	if status, body := asks("later"); status != http.StatusAccepted {
		t.Errorf("within the limit: %d %s", status, body)
	}
}
