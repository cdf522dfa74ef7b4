package web_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/guard"
	"parley/adapters/web"
	"parley/adapters/web/payload"
	"parley/assembly/stream"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// store is a fake journal with one run.
type store struct {
	mu       sync.Mutex
	page     journal.RunPage
	messages []journal.Message
	changed  chan struct{}
	added    []stream.Message
	key      string // of the last request that added messages
	answer   *stream.Message
	woken    int
	tickets  map[string]journal.Ticket
	named    map[string]string // the ids of runs, by the names that a client gave them
	backend
	stopped []string // run and notice
	limited time.Time
	made    []string // ids of threads
}

func (s *store) Limited(context.Context, event.Envelope) (time.Time, error) { return s.limited, nil }

func (s *store) MakeThread(_ context.Context, _ event.Platform, id string, t journal.Thread, _ ...string) (journal.Thread, bool, error) {
	s.made = append(s.made, id)
	return t, true, nil
}

func (s *store) stop(_ context.Context, run string, notice journal.Notice) error {
	if s.page.Ended() {
		return journal.ErrEnded
	}
	s.stopped = append(s.stopped, run+" "+notice.Text)
	return nil
}

func (s *store) PutTicket(_ context.Context, secret string, t journal.Ticket, _ time.Duration) error {
	s.tickets[secret] = t
	return nil
}

func (s *store) TakeTicket(_ context.Context, secret string) (journal.Ticket, error) {
	t, ok := s.tickets[secret]
	if delete(s.tickets, secret); !ok {
		return t, journal.ErrNotFound
	}
	return t, nil
}

func (s *store) RunEvents(_ context.Context, run string, after int64, limit int) (journal.RunPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run != s.page.ID {
		return journal.RunPage{}, journal.ErrNotFound
	}
	page := s.page
	page.Events = nil
	for _, e := range s.page.Events {
		if e.Seq > after && len(page.Events) < limit {
			page.Events = append(page.Events, e)
		}
	}
	page.Full = len(page.Events) == limit
	return page, nil
}

func (s *store) RunMessages(context.Context, string) ([]journal.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages), nil
}

func (s *store) NamedRun(_ context.Context, workspace, madeBy, threadID, name string) (journal.NamedRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.named[name]; ok && workspace == "ours" && strings.HasPrefix(madeBy, "user:") && (threadID == "" || threadID == thread) {
		return journal.NamedRun{ID: id, ThreadID: thread}, nil
	}
	return journal.NamedRun{}, journal.ErrNotFound
}

// StopNamedRun begins the run named "late" instead, as a worker may at any time.
func (s *store) StopNamedRun(_ context.Context, _, _, _, name string, notice journal.Notice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "late" {
		s.named[name] = run
	}
	if s.named[name] != "" || name == "unrecorded" {
		return journal.ErrNotFound
	}
	s.stopped = append(s.stopped, name+" "+notice.Text)
	return nil
}

func (s *store) FollowRun(string) (<-chan struct{}, func()) { return s.changed, func() {} }

func (s *store) AddEvents(_ context.Context, _ string, added journal.Added) error {
	if s.page.Ended() {
		return journal.ErrEnded
	}
	s.added, s.key = append(s.added, added.Messages...), added.Key
	for _, m := range added.Messages {
		s.have(journal.RunEvent{Seq: int64(len(s.page.Events) + 5), Message: m})
	}
	return nil
}

// LaterRun and AnswerRun take the answer of the agent "hook".
func (s *store) LaterRun(_ context.Context, id string) (journal.LaterRun, error) {
	if id != run {
		return journal.LaterRun{}, journal.ErrNotFound
	}
	return journal.LaterRun{ID: run, Thread: 7, Agent: "hook"}, nil
}

func (s *store) AnswerRun(_ context.Context, _ string, answer stream.Message) error {
	if s.answer != nil {
		return journal.ErrAnswered
	}
	s.answer = &answer
	return nil
}

// have adds events to the run, ms milliseconds after noon each.
func (s *store) have(events ...journal.RunEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page.Events = append(s.page.Events, events...)
}

// end ends the run, whose notice or reply comes last, 9 ms after noon.
func (s *store) end(state string, last *journal.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page.State, s.page.EndedAt = state, noon.Add(9*time.Millisecond)
	if last != nil {
		s.messages = append(s.messages, *last)
	}
}

const run = "run-1"

const hookSecret = "the-secret-of-the-agent-hook"

// working is a run in our workspace that has said something.
func working() *store {
	s := &store{changed: make(chan struct{}, 1), tickets: map[string]journal.Ticket{}, messages: []journal.Message{
		{Author: journal.ByHuman, Version: 1, Content: "so?", ClientMessageID: "c1", CreatedAt: noon},
	}}
	s.page.RunStatus = journal.RunStatus{ID: run, ThreadID: thread, Workspace: "ours", State: "running"}
	s.have(said(1, stream.Thought, "hm"), said(4, stream.StreamingChunk, "Y"))
	return s
}

func said(seq int64, kind stream.Type, text string) journal.RunEvent {
	return journal.RunEvent{Seq: seq, Message: stream.Message{Type: kind, Text: text, Time: noon.Add(time.Duration(seq) * time.Millisecond)}}
}

// serve starts a server with the routes of the documents.
func (s *store) serve(t *testing.T) *httptest.Server {
	t.Helper()
	adapters := []*web.Adapter{
		web.New("ours", web.Config{Tokens: []web.Token{
			{ID: "olivia", Name: "Olivia", Token: secret.New(ownToken)},
			{ID: "helper", Name: "Helper", Token: secret.New(anyToken), Actor: agentActor},
		}}),
		web.New("theirs", web.Config{Tokens: []web.Token{
			{ID: "olivia", Name: "Olivia", Token: secret.New("their-token")},
			{ID: "helper", Name: "Helper", Token: secret.New("their-agent"), Actor: agentActor, Read: []string{"ours"}},
			{ID: "console", Name: "Console", Token: secret.New(readerToken), Read: []string{"ours"}},
		}}),
	}
	guards, streams := guard.New(func(string) {}), web.NewStreams()
	d := web.Documents{
		Adapters: func() []*web.Adapter { return adapters }, Guard: guards,
		Replies: web.Replies{
			Runs: s, Guard: guards, Wake: func(agent string, thread int64) { s.woken++ },
			Secrets: func() map[string]secret.Value {
				return map[string]secret.Value{"hook": secret.New(hookSecret), "other": secret.New("a-secret-of-another-hook")}
			},
		},
		API: func(workspace string) web.API {
			return web.API{
				Workspace: workspace, Guard: guards, Store: s, Limits: s, Runs: s, Updates: s, Tickets: s, Stop: s.stop, Streams: streams, Now: func() time.Time { return noon },
				Inbox: &s.backend, Recorded: &s.backend, Files: &s.backend,
			}
		},
	}
	mux := http.NewServeMux()
	for _, route := range web.Routes() {
		mux.HandleFunc(route.Pattern, d.Handler(route))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(streams.Close)
	return server
}

// get returns the status and the body of a GET with a token.
func get(t *testing.T, server *httptest.Server, token, path string, header ...string) (int, string) {
	t.Helper()
	return ask(t, server, "GET "+path, "", append([]string{"Authorization", "Bearer " + token}, header...)...)
}

const (
	updates = "/runs/" + thread + "/" + run + "/updates"
	follow  = "/runs/" + thread + "/" + run + "/stream"
)

// at returns a compact message some milliseconds after noon.
func at(ms, members string) string {
	return `{` + members + `,"ts":` + stamp(ms) + `}`
}

func stamp(ms string) string { return noonMillis[:len(noonMillis)-len(ms)] + ms }

var noonMillis = func() string { raw, _ := json.Marshal(noon.UnixMilli()); return string(raw) }()

// post returns the status and the body of a POST of JSON with a token.
func post(t *testing.T, server *httptest.Server, token, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// TestEventsOfARun checks the route of the stored messages.
func TestEventsOfARun(t *testing.T) {
	s := working()
	s.have(journal.RunEvent{Seq: 5, Message: stream.Message{Type: stream.Update, Details: json.RawMessage(`{"tool":"search"}`)}})
	server := s.serve(t)
	for path, want := range map[string]string{
		"":                 `{"events":[{"seq":1,"stage":"intent",` + at("1", `"t":1,"m":"hm"`)[1:] + `,{"seq":5,"stage":"tool_execution","t":3,"d":{"tool":"search"}}],"next":null}`,
		"?after=1&limit=1": `{"events":[],"next":4}`,
		"?after=4&limit=1": `{"events":[{"seq":5,"stage":"tool_execution","t":3,"d":{"tool":"search"}}],"next":5}`,
	} {
		if status, body := get(t, server, ownToken, "/api/v1/runs/"+run+"/events"+path); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s; want %s", path, status, body, want)
		}
	}
	if status, body := get(t, server, ownToken, "/api/v1/runs/"+run+"/events?after=x"); status != http.StatusBadRequest {
		t.Errorf("a faulty query: %d %s", status, body)
	}
}

// TestRunsOfOthers checks that a caller cannot tell runs of others from unknown runs. The same
// holds for a run under another thread's id.
func TestRunsOfOthers(t *testing.T) {
	server := working().serve(t)
	_, unknown := get(t, server, ownToken, "/api/v1/runs/nothing/events")
	for name, c := range map[string]struct {
		token, path string
		status      int
	}{
		"own":                 {ownToken, updates, 200},
		"an agent's":          {anyToken, updates, 200},
		"read":                {readerToken, updates, 200},
		"under /api/v1":       {ownToken, "/api/v1" + updates, 200},
		"of others":           {"their-token", updates, 404},
		"events of others":    {"their-token", "/api/v1/runs/" + run + "/events", 404},
		"stream of others":    {"their-token", follow, 404},
		"unknown":             {ownToken, "/runs/" + thread + "/nothing/updates", 404},
		"in another thread":   {ownToken, "/runs/" + rowID + "/" + run + "/updates", 404},
		"without a token":     {"", updates, 401},
		"a faulty since":      {ownToken, updates + "?since=x", 400},
		"a faulty skip":       {ownToken, follow + "?skipHistory=1", 400},
		"a thread's upper id": {ownToken, "/runs/" + strings.ToUpper(thread) + "/" + run + "/updates", 200},
	} {
		status, body := get(t, server, c.token, c.path)
		if status != c.status || status == http.StatusNotFound && body != unknown {
			t.Errorf("%s: %d %s; want %d", name, status, body, c.status)
		}
	}
}

// TestUpdates checks the history of a run in each of its states.
func TestUpdates(t *testing.T) {
	hm, y := at("1", `"t":1,"m":"hm"`), at("4", `"t":12,"m":"Y"`)
	reply := &journal.Message{Author: journal.ByAgent, Version: 1, Content: "Yes."}
	answer := `{"t":7,"m":"Yes.","ts":` + stamp("9") + `,"i":"run-1/answer"}`
	notice := &journal.Message{Author: journal.BySystem, Content: "Sorry."}
	first := `{"t":8,"m":"so?","d":{"ack":"c1"},"ts":` + noonMillis + `}`
	for name, c := range map[string]struct {
		change func(s *store)
		query  string
		want   []string
	}{
		"working":                          {func(*store) {}, "", []string{first, hm, y}},
		"since":                            {func(*store) {}, "?since=" + stamp("4"), []string{y}},
		"since the question, and its time": {func(*store) {}, "?since=" + noonMillis, []string{first, hm, y}},
		"done":                             {func(s *store) { s.end("done", reply) }, "", []string{first, hm, y, answer, at("10", `"t":4`)}},
		"done, since":                      {func(s *store) { s.end("done", reply) }, "?since=" + stamp("99"), []string{answer, at("10", `"t":4`)}},
		"its end is stored": {func(s *store) {
			s.page.Answered, s.page.Closed = true, true
			s.have(said(5, stream.Answer, "Yes."), said(6, stream.Complete, "bye"))
			s.end("done", reply)
		}, "?since=" + stamp("5"), []string{at("5", `"t":7,"m":"Yes."`), at("6", `"t":4,"m":"bye"`)}},
		"failed":    {func(s *store) { s.end("failed", notice) }, "", []string{first, hm, y, at("9", `"t":6,"m":"Sorry."`), at("10", `"t":11`)}},
		"cancelled": {func(s *store) { s.end("cancelled", notice) }, "", []string{first, hm, y, at("10", `"t":11,"m":"Sorry."`)}},
		"of another workstream": {func(s *store) {
			s.have(journal.RunEvent{Seq: 5, Message: stream.Message{Type: stream.Complete, Workstream: "w2", Time: noon.Add(5 * time.Millisecond)}}, said(6, stream.Update, "on"))
		}, "?since=" + stamp("5"), []string{at("5", `"t":4,"w":"w2"`), at("6", `"t":3,"m":"on"`)}},
		"many": {func(s *store) {
			for seq := range int64(250) {
				s.have(said(seq+5, stream.Update, "on"))
			}
		}, "?since=" + stamp("254"), []string{at("254", `"t":3,"m":"on"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := working()
			c.change(s)
			status, body := get(t, s.serve(t), ownToken, updates+c.query)
			want := `{"messages":[` + strings.Join(c.want, ",") + `],"dropped":0}`
			if diff := cmp.Diff(want, strings.TrimSpace(body)); status != http.StatusOK || diff != "" {
				t.Errorf("%d %s", status, diff)
			}
		})
	}
}

// TestUpdatesAreBounded checks that the newest messages are kept, and the number of the others told, of
// which some are not stored any more.
func TestUpdatesAreBounded(t *testing.T) {
	s := working()
	s.page.Dropped = 5
	for seq := range int64(1200) {
		s.have(said(seq+5, stream.Update, "on"))
	}
	status, body := get(t, s.serve(t), ownToken, updates)
	var got struct {
		Messages []stream.Message
		Dropped  int
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	all := 1 + len(s.page.Events) // with the question
	if len(got.Messages) != stream.MaxKept || got.Dropped != 5+all-stream.MaxKept || got.Messages[0].Type != stream.Question {
		t.Errorf("%d messages, %d dropped", len(got.Messages), got.Dropped)
	}
}

// TestAgentForm checks the readable form on each route, and that an unknown key of a query is refused.
func TestAgentForm(t *testing.T) {
	s := working()
	server := s.serve(t)
	const chunk = `"workflow_run_id":"` + run + `","type":12,"message":"Y","details":{"is_final":false,"streaming_id":"main"},"workstream_id":"main"}`
	for path, want := range map[string]string{
		updates + "?format=agent":                        chunk,
		"/api/v1/runs/" + run + "/events?format=agent":   `{"seq":1,"stage":"intent","timestamp":` + stamp("1") + `,"workflow_run_id":"` + run + `","type":1,"message":"hm"`,
		"/api/v1/runs/" + run + "/events?format=compact": `"stage":"intent","t":1,"m":"hm"`,
	} {
		if status, body := get(t, server, ownToken, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{updates, strings.TrimSuffix(updates, "updates") + "stream", "/api/v1/agent/runs/" + run + "/stream", "/api/v1/runs/" + run + "/events"} {
		for query, key := range map[string]string{"?formt=agent": "formt", "?format=other": "format", "?Since=1": "Since"} {
			if status, body := get(t, server, ownToken, path+query); status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+key) {
				t.Errorf("%s%s: %d %s", path, query, status, body)
			}
		}
	}
}

// TestUpdatesOfAnAgent checks which messages a token of an agent may add, and that they name it.
func TestUpdatesOfAnAgent(t *testing.T) {
	const path = "/runs/" + run + "/updates"
	for kind := range stream.Type(14) {
		s := working()
		body := `{"t":` + kindNumber(kind) + `,"m":"x","d":{"n":1}}`
		for _, token := range []string{anyToken, ownToken} {
			status, answer := post(t, s.serve(t), token, path, body)
			switch kind {
			case stream.Thought, stream.Plan, stream.Update, stream.Warning, stream.System, stream.BatchProgress:
				if token == anyToken && (status != http.StatusAccepted || string(s.added[0].Details) != `{"author":"`+string(agentActor)+`","n":1}`) {
					t.Errorf("%v: %d %s, %+v", kind, status, answer, s.added)
				}
			default:
				if status != http.StatusForbidden || !strings.Contains(answer, kind.String()) || len(s.added) > 0 {
					t.Errorf("%v: %d %s", kind, status, answer)
				}
			}
		}
	}
}

func kindNumber(kind stream.Type) string { raw, _ := json.Marshal(kind); return string(raw) }

// TestUpdatesOfTheRunsOwnAgent checks that its answer, its question and the end of its run take effect.
func TestUpdatesOfTheRunsOwnAgent(t *testing.T) {
	const path = "/runs/" + run + "/updates"
	answer := func(kind stream.Type, text string) *stream.Message { return &stream.Message{Type: kind, Text: text} }
	for name, c := range map[string]struct {
		secret, body string
		status       int
		want         *stream.Message // that takes effect
		added        int
	}{
		"an answer":                 {hookSecret, `[{"t":3,"m":"half"},{"t":7,"m":"Yes."},{"t":4}]`, 202, answer(stream.Answer, "Yes."), 1},
		"a question":                {hookSecret, `{"t":9,"m":"Which?"}`, 202, answer(stream.RequestInput, "Which?"), 0},
		"an answer and a question":  {hookSecret, `[{"t":7,"m":"Two."},{"t":9,"m":"Which?"}]`, 202, answer(stream.RequestInput, "Two.\n\nWhich?"), 0},
		"a failure":                 {hookSecret, `{"t":6,"m":"broken"}`, 202, answer(stream.Error, "broken"), 0},
		"streamed text":             {hookSecret, `[{"t":12,"m":"Hm","i":"th"},{"t":1,"m":"Hm","i":"th"},{"t":12,"m":"Ye","i":"a"},{"t":12,"m":"s.","i":"a"},{"t":10}]`, 202, answer(stream.Answer, "YYes."), 4},
		"a text at the end":         {hookSecret, `{"t":4,"m":"Yes."}`, 202, answer(stream.Answer, "Yes."), 0},
		"progress alone":            {hookSecret, `{"t":1,"m":"hm"}`, 202, nil, 1},
		"the end of another stream": {hookSecret, `{"t":4,"w":"w2"}`, 202, nil, 1},
		"a question of people":      {hookSecret, `{"t":8,"m":"so?"}`, 400, nil, 0},
		"of another agent":          {"a-secret-of-another-hook", `{"t":7,"m":"Yes."}`, 404, nil, 0},
		"a wrong secret":            {"no-secret-of-any-hook", `{"t":7,"m":"Yes."}`, 401, nil, 0},
	} {
		s := working()
		if name == "streamed text" {
			s.page.Events[1].ActivityID = "a"
		}
		server := s.serve(t)
		status, body := post(t, server, c.secret, path, c.body)
		if diff := cmp.Diff(c.want, s.answer); status != c.status || len(s.added) != c.added || diff != "" || (s.woken > 0) != (c.want != nil) {
			t.Errorf("%s: %d %s, %d added\n%s", name, status, body, len(s.added), diff)
		}
		if c.want == nil {
			continue
		}
		if status, _ := post(t, server, c.secret, path, `{"t":7,"m":"again"}`); status != http.StatusConflict {
			t.Errorf("%s: a second answer: %d", name, status)
		}
		if status, _ := post(t, server, c.secret, path, `{"t":4}`); status != http.StatusAccepted {
			t.Errorf("%s: the end after the answer: %d", name, status)
		}
	}
}

// TestUpdatesAreZipped for clients that take it.
func TestUpdatesAreZipped(t *testing.T) {
	server := working().serve(t)
	_, plain := get(t, server, ownToken, updates, "Accept-Encoding", "br, gzip;q=0")
	_, packed := get(t, server, ownToken, updates, "Accept-Encoding", "br, GZIP;q=0.5")
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
	request.Header.Set("Authorization", "Bearer "+ownToken)
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
	s := working()
	server := s.serve(t)
	first := `0 {"t":8,"m":"so?","d":{"ack":"c1"},"ts":` + noonMillis + `}`
	hm, y := "1 "+at("1", `"t":1,"m":"hm"`), "4 "+at("4", `"t":12,"m":"Y"`)
	all := listens(t, server, follow)
	all.hears(first, hm, y)
	alias := listens(t, server, "/api/v1/agent/runs/"+run+"/stream?since="+stamp("4"))
	alias.hears(y)
	later := listens(t, server, follow+"?skipHistory=true")
	since := listens(t, server, "/api/v1"+follow+"?skipHistory=true&since="+stamp("2"))
	since.hears(y)
	back := listens(t, server, follow+"?skipHistory=true&since="+stamp("1"), "Last-Event-ID", "1")
	back.hears(y)
	asked := listens(t, server, follow, "Last-Event-ID", "0")
	asked.hears(hm, y)

	s.have(said(5, stream.Update, "on"))
	s.end("done", &journal.Message{Author: journal.ByAgent, Version: 1, Content: "Yes."})
	close(s.changed)
	end := []string{
		"5 " + at("5", `"t":3,"m":"on"`),
		`1099511627777 {"t":7,"m":"Yes.","ts":` + stamp("9") + `,"i":"run-1/answer"}`, "1099511627778 " + at("10", `"t":4`),
	}
	for _, e := range []ear{all, alias, later, since, back, asked} {
		e.hears(end...)
		e.ends()
	}
	behind := listens(t, server, follow, "Last-Event-ID", "1099511627777")
	behind.hears(end[2:]...)
	behind.ends()
	ended := listens(t, server, follow+"?skipHistory=true")
	ended.hears(end[2:]...)
	ended.ends()
	if status, body := get(t, server, ownToken, follow, "Last-Event-ID", "1099511627778"); status != http.StatusNoContent {
		t.Errorf("a client that has heard everything: %d %s", status, body)
	}
}

// TestSkippedHistoryHasTheEnd checks a reader that skips the history of a long run, whose stored
// end is not on the first page.
func TestSkippedHistoryHasTheEnd(t *testing.T) {
	s := working()
	for seq := range int64(200) {
		s.have(said(5+seq, stream.Update, "on"))
	}
	s.have(said(205, stream.Complete, ""))
	s.end("done", nil)
	s.page.Closed, s.page.Answered = true, true
	ended := listens(t, s.serve(t), follow+"?skipHistory=true")
	ended.hears("205 " + at("205", `"t":4`))
	ended.ends()
}

// TestAddedUpdates checks the messages of an external agent.
func TestAddedUpdates(t *testing.T) {
	const path = "/runs/" + run + "/updates"
	for name, c := range map[string]struct {
		token, body string
		status      int
		added       int
	}{
		"a compact message":     {anyToken, `{"t":1,"m":"hm"}`, 202, 1},
		"readable messages":     {anyToken, `[{"type":"update","message":"a"},{"type":3,"message":"b","workstream_id":"w2"}]`, 202, 2},
		"the end of another":    {anyToken, `{"t":4,"w":"w2"}`, 403, 0},
		"the end of the run":    {anyToken, `[{"t":1},{"t":4}]`, 403, 0},
		"no message":            {anyToken, `{"m":"hm"}`, 400, 0},
		"no object":             {anyToken, `[[]]`, 400, 0},
		"another type":          {anyToken, `{"t":1,"m":7}`, 400, 0},
		"no messages":           {anyToken, `[]`, 400, 0},
		"too many":              {anyToken, `[` + strings.Repeat(`{"t":1},`, 100) + `{"t":1}]`, 400, 0},
		"of a user":             {ownToken, `{"t":1}`, 403, 0},
		"of an agent elsewhere": {"their-agent", `{"t":1}`, 404, 0},
	} {
		s := working()
		status, body := post(t, s.serve(t), c.token, path, c.body)
		if status != c.status || len(s.added) != c.added || strings.Contains(body, " Go ") {
			t.Errorf("%s: %d %s, %d added; want %d, %d", name, status, body, len(s.added), c.status, c.added)
		}
	}
	s := working()
	s.end("done", nil)
	if status, body := post(t, s.serve(t), anyToken, path, `{"t":1}`); status != http.StatusGone {
		t.Errorf("after the end: %d %s", status, body)
	}
}

// TestStreamOfMany checks that a stream leaves out more messages than it reads at once.
func TestStreamOfMany(t *testing.T) {
	s := working()
	for seq := range int64(250) {
		s.have(said(seq+5, stream.Update, "on"))
	}
	many := listens(t, s.serve(t), follow+"?since="+stamp("254"))
	many.hears("254 " + at("254", `"t":3,"m":"on"`))
}

// TestNamedRuns checks that a client finds its run under the name that it gave, also before the
// run's begin.
func TestNamedRuns(t *testing.T) {
	s := working()
	s.named = map[string]string{"mine": run, "soon": ""}
	server := s.serve(t)
	if status, body := get(t, server, ownToken, "/runs/"+strings.ToUpper(thread)+"/mine/updates"); status != http.StatusOK || !strings.Contains(body, "hm") {
		t.Errorf("by its name: %d %s", status, body)
	}
	for path, want := range map[string]string{"/runs/" + thread + "/soon/updates": `{"messages":[],"dropped":0}`, "/api/v1/runs/soon/events": `{"events":[],"next":null}`} {
		if status, body := get(t, server, ownToken, path); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("before its begin: %d %s", status, body)
		}
	}
	if status, body := get(t, server, "their-token", "/api/v1/runs/mine/events"); status != http.StatusNotFound {
		t.Errorf("a name of others: %d %s", status, body)
	}
	soon := listens(t, server, "/api/v1/agent/runs/soon/stream?since="+stamp("4"))
	s.mu.Lock()
	s.named["soon"] = run
	s.mu.Unlock()
	soon.hears("4 " + at("4", `"t":12,"m":"Y"`))
}

// TestRunsAboveALimit checks that a run above a limit is a 429, also if other runs have reached the
// limit since the check, and that the check comes before the thread.
func TestRunsAboveALimit(t *testing.T) {
	const input = `{"threadId":"` + thread + `","runId":"r","state":{},"messages":[{"id":"m","role":"user","content":"hi"}],"tools":[],"context":[],"forwardedProps":{}}`
	s := working()
	server := s.serve(t)
	s.limited = noon.Add(time.Hour)
	if status, body := post(t, server, ownToken, "/api/v1/agent/runs", input); status != http.StatusTooManyRequests || len(s.made)+len(s.backend.accepted) > 0 {
		t.Errorf("%d %s, and the threads %q", status, body, s.made)
	}
	s.limited = time.Time{}
	s.backend.result = func(b payload.Body) *journal.EnvelopeResult {
		return &journal.EnvelopeResult{Result: *event.Ignore(event.ReasonLimit)}
	}
	if status, body := post(t, server, ownToken, "/api/v1/agent/runs", input); status != http.StatusTooManyRequests || !strings.Contains(body, "ask again later") {
		t.Errorf("%d %s", status, body)
	}
	s.backend.result = nil
	if status, body := post(t, server, ownToken, "/api/v1/agent/runs", input); status != http.StatusAccepted {
		t.Errorf("the same run within the limit: %d %s", status, body)
	}
}
