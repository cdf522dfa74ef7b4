package daemon_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/ingest/stream"
)

// TestARunAPIAgentGetsReports checks that an agent behind the run protocol gets the report of its workstream during its run, also if
// a client named that, and as the message of a further run if it takes no messages during one.
func TestARunAPIAgentGetsReports(t *testing.T) {
	for name, signals := range map[string]int{"during the run": http.StatusAccepted, "after the run": http.StatusConflict} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			posted, signalled, end := make(chan string, 4), make(chan string, 16), make(chan string, 4)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch {
				case strings.HasSuffix(r.URL.Path, "/signals"):
					w.WriteHeader(signals)
					signalled <- string(body)
				case r.Method == http.MethodPost:
					var run struct{ RunID string }
					_ = json.Unmarshal(body, &run)
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusAccepted)
					fmt.Fprintf(w, `{"runId":%q}`, run.RunID)
					posted <- string(body)
				default:
					w.Header().Set("Content-Type", "text/event-stream")
					w.(http.Flusher).Flush()
					select {
					case text := <-end:
						fmt.Fprintf(w, "data: {\"t\":7,\"m\":%q}\n\ndata: {\"t\":4}\n\n", text)
					case <-r.Context().Done():
					}
				}
			}))
			t.Cleanup(server.Close)
			h := open(t, plan{files: map[string]string{"parley.yaml": "listen: 127.0.0.1:0\nshutdown: 30s\n" +
				"agents: [{id: helper, kind: run-api, base_url: " + server.URL + ", token: " + ownToken + ", workstreams: {agents: [echo]}}, {id: echo, kind: echo}]\n"}})
			h.started(ownToken, runInput(thread, "run-001", `"hi"`))
			<-posted
			got := h.request(http.MethodPost, "/runs/run-001/workstreams?thread_id="+thread, ownToken, "application/json", `{"task":"Look it up.","agent":"echo"}`)
			same(t, got.status, http.StatusCreated)
			if report := <-signalled; !strings.Contains(report, "is completed. Its answer:") || !strings.Contains(report, "The task was: Look it up.") {
				t.Errorf("the signal is %s", report)
			}
			end <- "Done."
			if signals != http.StatusAccepted {
				if next := <-posted; strings.Count(next, `"role":"user"`) != 1 || !strings.Contains(next, "is completed. Its answer:") {
					t.Errorf("the next run is %s", next)
				}
				end <- "Thanks."
			}
			path := "/runs/" + thread + "/run-001/updates"
			updates := func() string { return h.request(http.MethodGet, path, ownToken, "", "").body }
			for !strings.Contains(updates(), `{"t":4`) && h.poll() {
			}
			list := h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body
			for signals != http.StatusAccepted && !strings.Contains(list, "Thanks.") && h.poll() {
				list = h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body
			}
			if strings.Contains(list, "Sorry") || strings.Contains(list, `"error":"`) {
				t.Errorf("the thread is %s", list)
			}
			for _, m := range decode[struct{ Messages []stream.Message }](t, updates()).Messages {
				if m.OfMain() && (m.Type == stream.Error || m.Type == stream.Complete && m.Text != "") {
					t.Errorf("the report is the text of %+v", m)
				}
			}
		})
	}
}

// TestADeleteEndsWorkstreams checks that a run whose agent answers later ends if its question is deleted, with its workstreams, and that
// no result of them is answered.
func TestADeleteEndsWorkstreams(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	question := h.mention("who is right?")
	asked := <-h.inputs
	h.launch(asked.RunID, `{"task":"Think.","agent":"other"}`)
	child := <-h.inputs
	h.accept(deleted(question))
	for h.childrenOf(asked.RunID)[0].State != "canceled" && h.poll() {
	}
	late := h.request(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", otherSecret, "application/json", `{"content":"Late."}`)
	same(t, []int{late.status, len(h.inputs), len(h.posts(0))}, []int{http.StatusGone, 0, 0})
	h.call(http.MethodPost, "/api/v1/runs/"+asked.RunID+"/reply", `{"content":"Late."}`, http.StatusGone)
}

// TestTheNextTurnKnowsWhatWorks checks that the agent's next input names the workstreams that it has launched.
func TestTheNextTurnKnowsWhatWorks(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.postWeb("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Think of it.","agent":"other","name":"the thinker"}`)
	<-h.inputs
	h.reply(asked.RunID, "Wait.")
	h.postWeb("and now?")
	next := <-h.inputs
	same(t, next.count("- the thinker (launch_id "+id+", agent other): Think of it."), 1)
}

// TestAStreamedLaterAnswerKeepsItsActivity checks that the answer of an agent that streams it by updates replaces its chunks, and that
// no thought says that it begins again.
func TestAStreamedLaterAnswerKeepsItsActivity(t *testing.T) {
	for name, c := range map[string]struct{ activity, end string }{
		"an end":                      {`,"i":"a"`, `{"t":4}`},
		"an answer":                   {`,"i":"a"`, `{"t":7,"m":"Hello world","i":"a"}`},
		"an end without an activity":  {"", `{"t":4}`},
		"an answer without one":       {"", `{"t":7,"m":"Hello world"}`},
		"the rest and an end at once": {"", `[{"t":12,"m":"","f":1},{"t":10}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openLater(t)
			run := h.take()
			activity := run + "/answer"
			if c.activity != "" {
				activity = "a"
			}
			updates := func() (list []stream.Message) {
				return decode[struct{ Messages []stream.Message }](t, h.request(http.MethodGet, "/runs/"+thread+"/"+run+"/updates", ownToken, "", "").body).Messages
			}
			for _, body := range []string{`{"t":12,"m":"Hello "` + c.activity + `}`, `{"t":12,"m":"world"` + c.activity + `,"f":1}`} {
				same(t, h.request(http.MethodPost, "/runs/"+run+"/updates", laterSecret, "application/json", body).status, http.StatusAccepted)
			}
			for _, m := range updates() {
				if m.Type == stream.StreamingChunk && m.ActivityID != activity {
					t.Errorf("%+v", m)
				}
			}
			same(t, h.request(http.MethodPost, "/runs/"+run+"/updates", laterSecret, "application/json", c.end).status, http.StatusAccepted)
			h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
			answers := 0
			for _, m := range updates() {
				if m.Type == stream.Answer {
					answers++
				}
				if m.Type == stream.Thought || m.Type == stream.Answer && (m.ActivityID != activity || m.Text != "Hello world") {
					t.Errorf("%+v in %+v", m, updates())
				}
			}
			same(t, answers, 1)
		})
	}
}

// TestASignalGoesToItsThread checks that a signal goes to the run of the thread that it names, and to none if its name is that of
// runs in several threads.
func TestASignalGoesToItsThread(t *testing.T) {
	t.Parallel()
	h := openLater(t)
	const other = "0190a0e4-0000-7000-8000-00000000aaaa"
	for _, of := range []string{thread, other} {
		h.started(ownToken, runInput(of, "run-007", `"hi"`))
		<-h.runs
	}
	signal := func(query, body string) answer {
		return h.request(http.MethodPost, "/runs/run-007/signals"+query, ownToken, "application/json", body)
	}
	got := signal("", `{"signal":"Stop"}`)
	if got.status != http.StatusConflict || !strings.Contains(got.body, "thread_id") {
		t.Errorf("%d %s", got.status, got.body)
	}
	said := signal("?thread_id="+thread, `{"signal":"UserInput","data":{"message":"for the first"}}`)
	if said.status != http.StatusAccepted || !strings.Contains(said.body, `"thread_id":"`+thread+`"`) {
		t.Errorf("%d %s", said.status, said.body)
	}
	same(t, signal("?thread_id="+other, `{"signal":"Stop"}`).status, http.StatusAccepted)
	for of, want := range map[string]bool{thread: false, other: true} {
		updates := h.request(http.MethodGet, "/runs/"+of+"/run-007/updates", ownToken, "", "").body
		if strings.Contains(updates, `"t":11`) != want {
			t.Errorf("the run of %s: %s", of, updates)
		}
	}
}

// TestEachIDLeadsToTheRun checks that operators find a run by the id that its client chose, and by the one that its agent got.
func TestEachIDLeadsToTheRun(t *testing.T) {
	t.Parallel()
	h := openLater(t)
	h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	known := <-h.runs
	client := h.operate()
	for _, id := range []string{"run-001", known} {
		run, err := client.Run(h.ctx, id)
		if err != nil || run.ID != "run-001" {
			t.Errorf("%s: %v %+v", id, err, run)
		}
		why, err := client.Why(h.ctx, id)
		if err != nil || !why.Found {
			t.Errorf("%s: %v %+v", id, err, why)
		}
	}
	if run, err := client.StopRun(h.ctx, known); err != nil || run.ID != "run-001" {
		t.Errorf("%v %+v", err, run)
	}
}

// TestAParentReadsTheFilesOfItsWorkstream checks that a report names the files of its workstream and what still works, and that the
// agent's tool reads the text of such a file in parts, and nothing else.
func TestAParentReadsTheFilesOfItsWorkstream(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.postWeb("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Write it down.","agent":"helper"}`)
	child := <-h.inputs
	working := h.launch(asked.RunID, `{"task":"Go on.","agent":"other","name":"the thinker"}`)
	other := <-h.inputs
	text := strings.Repeat("Ä\"\n", 5000) // of 20,000 bytes; a part ends within a character
	file := func(name, kind, content string) string {
		return fmt.Sprintf(`{"name":%q,"mime_type":%q,"data":%q}`, name, kind, base64.StdEncoding.EncodeToString([]byte(content)))
	}
	h.call(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", `{"content":"Here.","files":[`+file("notes.txt", "text/plain", text)+","+
		file("sound.bin", "application/octet-stream", "\x00\xff\x01")+`]}`, http.StatusAccepted)
	h.reply(asked.RunID, "Wait.")
	told := <-h.inputs
	notes, sound := "files/"+id+"/notes.txt", "files/"+id+"/sound.bin"
	for _, line := range []string{
		"The task was: Write it down.\n", "\n- " + notes + " (text/plain, 20000 bytes)\n", "\n- " + sound + " (application/octet-stream, 3 bytes)\n",
		"Still at work:\n- the thinker (launch_id " + working + ", agent other): Go on.\n",
	} {
		same(t, told.count(line), 1)
	}
	read := func(token, path string, offset int64) toolResult {
		return h.callTool(token, "read_artifact", fmt.Sprintf(`{"path":%q,"offset":%d}`, path, offset))
	}
	var whole string
	for offset, parts := int64(0), 1; ; parts++ {
		part := read(told.token, notes, offset)
		if whole += part.Content; part.fault != "" || len(part.Content) > 15_000 || parts > 2 {
			t.Fatalf("part %d: %+v", parts, part)
		}
		next, more := part.Next.(float64)
		if offset = int64(next); !more {
			break
		}
	}
	same(t, whole, text)
	if got := read(told.token, sound, 0); got.fault != "" || got.Content != "" || !strings.Contains(got.Note, "no text") {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		token, path string
		offset      int64
		want        string
	}{
		{told.token, notes, 20_000, "offset: must be less than"}, {told.token, notes, -1, "offset: must be 0 or more"}, {told.token, "files/" + id + "/other.txt", 0, "path: must be"},
		{told.token, "notes.txt", 0, "path: must be"}, {told.token, "out/notes.txt", 0, "path: must be"}, {other.token, notes, 0, "path: must be"},
	} {
		if got := read(c.token, c.path, c.offset); !strings.Contains(got.fault, c.want) {
			t.Errorf("%s from %d: %+v", c.path, c.offset, got)
		}
	}
}

// TestAModelReadsTheFilesOfItsWorkstream checks that a model has a function for the files of its workstreams, which describes what is no text.
func TestAModelReadsTheFilesOfItsWorkstream(t *testing.T) {
	t.Parallel()
	h := open(t, plan{helper: "workstreams: {agents: [helper]}"})
	h.mention("who is right?")
	h.answerNext(callTool("", "launch_workstream", `{"task":"Draw it.","agent":"helper"}`))
	lead, child := h.nextRequest(), h.nextRequest()
	if lead.result() == "" {
		lead, child = child, lead
	}
	id := decode[struct {
		ID string `json:"launch_id"`
	}](t, lead.result()).ID
	h.answer(lead, replyWith("Wait."))
	h.posts(1)
	h.answer(child, replyWith("Here. ![plan](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)"))
	told := h.nextRequest()
	_, listed, found := strings.Cut(all(told), "\n- files/"+id+"/")
	if !found {
		t.Fatalf("the model is told\n%s", all(told))
	}
	name, _, _ := strings.Cut(listed, " (image/png")
	h.answer(told, callTool("", "read_artifact", `{"path":"files/`+id+`/`+name+`"}`))
	if got := h.nextRequest().result(); !strings.Contains(got, `"mime_type":"image/png"`) || !strings.Contains(got, `"note":"The file is no text`) {
		t.Errorf("the result is %s", got)
	}
}
