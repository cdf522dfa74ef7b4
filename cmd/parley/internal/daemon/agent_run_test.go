package daemon_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley/assembly/runinput"
)

const runsPath = "/api/v1/agent/runs"

// task is the answer to a run.
type task struct {
	TaskID, ThreadID, RunID string
	Created                 time.Time
}

// run posts a RunAgentInput.
func (h *harness) postRun(token, body string) answer {
	h.t.Helper()
	return h.request(http.MethodPost, runsPath, token, "application/json", body)
}

// started posts a run that must be accepted.
func (h *harness) started(token, body string) task {
	h.t.Helper()
	got := h.postRun(token, body)
	if got.status != http.StatusAccepted {
		h.t.Fatalf("%d %s\n%s", got.status, got.body, h.log)
	}
	return decode[task](h.t, got.body)
}

// runInput returns a RunAgentInput with one message, and further members.
func runInput(thread, run, content string, more ...string) string {
	return `{"threadId":"` + thread + `","runId":` + quoted(run) + `,"messages":[{"id":"msg-001","role":"user","content":` + content + `}]` + strings.Join(append([]string{""}, more...), ",") + `}`
}

const toolsBlock = `<!-- TOOLS_START -->
- get_weather: 获取指定城市的天气信息
  - args_schema: {"type":"object","properties":{"city":{"type":"string","description":"城市名称"}},"required":["city"]}
Note: tool arguments must strictly match args_schema.
<!-- TOOLS_END -->`

// TestRunsOfTheDocument posts the examples of the document, with a link of ours.
func TestRunsOfTheDocument(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		const thread = "550e8400-e29b-41d4-a716-446655440000"
		image := h.upload(ownToken, "image.png", "image/png", catPNG)
		for _, c := range []struct {
			run, body string
			want      []chatMessage
			images    int
		}{
			{"run-001", `{"threadId":"550e8400-e29b-41d4-a716-446655440000","runId":"run-001","state":{},
				"messages":[{"id":"msg-001","role":"user","content":"帮我查一下北京今天的天气"}],"tools":[],"context":[],"forwardedProps":{}}`,
				[]chatMessage{{"user", "[Olivia]: 帮我查一下北京今天的天气"}}, 0},
			{"run-002", `{"threadId":"550e8400-e29b-41d4-a716-446655440000","runId":"run-002","state":{},
				"messages":[{"id":"msg-001","role":"user","content":[{"type":"text","text":"这张图片里的内容是什么?"},
				{"type":"binary","mimeType":"image/png","url":"` + image.URL + `"}]}],"tools":[],"context":[],"forwardedProps":{}}`, nil, 1},
			{"run-003", `{"threadId":"550e8400-e29b-41d4-a716-446655440000","runId":"run-003","state":{},
				"messages":[{"id":"msg-001","role":"user","content":"北京天气怎么样?"}],
				"tools":[{"name":"get_weather","description":"获取指定城市的天气信息","parameters":{"type":"object",
					"properties":{"city":{"type":"string","description":"城市名称"}},"required":["city"]}}],"context":[],"forwardedProps":{}}`,
				[]chatMessage{{"system", toolsBlock}, {"user", "[Olivia]: 北京天气怎么样?"}}, 1},
		} {
			made := h.started(ownToken, c.body)
			if made.ThreadID != thread || made.RunID != c.run || uuid.Validate(made.TaskID) != nil || made.Created.IsZero() {
				t.Errorf("%+v", made)
			}
			asked := h.answerNext(replyWith("Noted."))
			if uuid.Validate(asked.run) != nil || asked.images() != c.images {
				t.Errorf("the agent was asked for the run %q, with %d images", asked.run, asked.images())
			}
			if n := len(c.want); n > 0 {
				same(t, asked.messages[len(asked.messages)-n:], c.want)
			}
		}
	})
}

// TestSameRun posts runs with ids that were given before.
func TestSameRun(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		h.echoes()
		one, other := uuid.NewString(), uuid.NewString()
		first := h.started(ownToken, runInput(one, "run-1", `"hi"`))
		again := h.postRun(ownToken, runInput(strings.ToUpper(one), "run-1", `"other words"`))
		if again.status != http.StatusOK {
			t.Fatalf("%d %s", again.status, again.body)
		}
		same(t, decode[task](t, again.body), first)
		elsewhere := h.started(ownToken, runInput(other, "run-1", `"hi"`))
		if elsewhere.TaskID == first.TaskID || elsewhere.RunID != "run-1" {
			t.Errorf("in another thread: %+v", elsewhere)
		}
		if got := h.request(http.MethodPost, "/api/v1/agent/run", ownToken, "application/json", runInput(other, "run-2", `"hi"`)); got.status != http.StatusAccepted {
			t.Errorf("the other path: %d %s", got.status, got.body)
		}
	})
}

// TestRunInAnothersThread posts a run to a thread of another caller of the workspace, and to one
// with the same id in another workspace.
func TestRunInAnothersThread(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		h.echoes()
		h.started(ownToken, runInput(thread, "run-1", `"hi"`))
		got := h.postRun(anyToken, runInput(thread, "run-2", `"hi"`))
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "not-found") {
			t.Errorf("another caller: %d %s", got.status, got.body)
		}
		if got := h.postRun(theirToken, runInput(thread, "run-1", `"hi"`)); got.status != http.StatusNotFound {
			t.Errorf("another workspace: %d %s", got.status, got.body)
		}
		for _, token := range []string{"", "wrong"} {
			if got := h.postRun(token, runInput(thread, "run-3", `"hi"`)); got.status != http.StatusUnauthorized {
				t.Errorf("the token %q: %d", token, got.status)
			}
		}
	})
}

// TestRunRules breaks each rule of the protocol.
func TestRunRules(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		many := strings.Repeat(`{"id":"m","role":"assistant","content":"x"},`, 200)
		with := func(message string) string {
			return `{"threadId":"` + thread + `","runId":"r","messages":[` + message + `]}`
		}
		user := `{"id":"m","role":"user","content":"hi"}`
		block := func(b string) string { return runInput(thread, "r", `[`+b+`]`) }
		for _, c := range []struct {
			body   string
			status int
			rule   runinput.Fault
		}{
			{runInput("abc", "r", `"hi"`, `"x":"`+strings.Repeat("x", 256<<10)+`"`), 413, runinput.TooLarge},
			{runInput("abc", strings.Repeat("x", 129), `"hi"`), 400, runinput.NoThread},
			{runInput("urn:uuid:"+thread, "r", `"hi"`), 400, runinput.NoThread},
			{`{"runId":"r"}`, 400, runinput.NoThread},
			{runInput(thread, strings.Repeat("天", 129), `"hi"`), 400, runinput.LongRunID},
			{with(many + user), 400, runinput.ManyMessages},
			{runInput(thread, "r", `"`+strings.Repeat("天", 10001)+`"`), 400, runinput.LongText},
			{with(user + "," + user), 400, runinput.NotOneUser},
			{with(""), 400, runinput.NotOneUser},
			{with(`{"id":"s","role":"system","content":"x"},` + user), 400, runinput.NotUserFirst},
			{block(`{"type":"binary","mimeType":"application/pdf","url":"u"}`), 400, runinput.NoImage},
			{block(`{"type":"binary","mimeType":"image/png"}`), 400, runinput.NoURL},
			{block(`{"type":"binary","mimeType":"image/png","url":"u","data":""}`), 400, runinput.DataForbidden},
		} {
			got := h.postRun(ownToken, c.body)
			if fault := decode[rejected](t, got.body).Error; got.status != c.status || fault.Message != string(c.rule) {
				t.Errorf("%d %s, want %d %s", got.status, got.body, c.status, c.rule)
			}
		}
		chunked, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+runsPath, struct{ *strings.Reader }{strings.NewReader(strings.Repeat(" ", 256<<10+1))})
		if err != nil {
			t.Fatal(err)
		}
		chunked.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + ownToken}}
		if got := h.send(chunked, nil); got.status != 413 || decode[rejected](t, got.body).Error.Message != string(runinput.TooLarge) {
			t.Errorf("without a declared length: %d %s", got.status, got.body)
		}
		for body, field := range map[string]string{
			`[]`: "body", runInput(thread, "", `"hi"`): "runId", runInput(thread, "r", `7`): "messages[0].content",
			runInput(thread, "r", `"hi"`, `"tools":[{"name":"a"}]`): "tools[0].description", runInput(thread, "r", `"hi"`, `"state":`+nested(9999)): "state",
		} {
			got := h.postRun(ownToken, body)
			if faults := decode[rejected](t, got.body).Error.Fields; got.status != 400 || len(faults) == 0 || faults[0].Field != field {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
		}
		if got := h.request(http.MethodPost, runsPath, ownToken, "text/plain", runInput(thread, "r", `"hi"`)); got.status != http.StatusUnsupportedMediaType {
			t.Errorf("a text: %d", got.status)
		}
	})
}

// TestRunNamesOnlyOurLinks posts runs with links that are not ours, or not for the caller.
func TestRunNamesOnlyOurLinks(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		made, theirs := h.upload(ownToken, "cat.png", "image/png", catPNG), h.upload(theirToken, "cat.png", "image/png", catPNG)
		text := h.upload(ownToken, "cat.png", "text/plain", "no image")
		run := func(url string) answer {
			return h.postRun(ownToken, runInput(thread, uuid.NewString(), `[{"type":"binary","mimeType":"image/png","url":`+quoted(url)+`}]`))
		}
		for name, url := range map[string]string{
			"another server":          strings.Replace(made.URL, h.url, "http://127.0.0.1:1", 1),
			"another scheme":          strings.Replace(made.URL, "http:", "https:", 1),
			"credentials":             strings.Replace(made.URL, "http://", "http://me:pw@", 1),
			"a server that begins so": strings.Replace(made.URL, h.url, h.url+".example.com", 1),
			"another workspace's":     theirs.URL,
			"another path":            strings.Replace(made.URL, made.Path, text.Path, 1),
			"up":                      strings.Replace(made.URL, made.Path, "../"+made.Path, 1),
			"up, encoded":             strings.Replace(made.URL, made.Path, "%2e%2e/"+made.Path, 1),
			"two slashes":             strings.Replace(made.URL, made.Bucket+"/", made.Bucket+"//", 1),
			"another bucket":          strings.Replace(made.URL, made.Bucket, "else", 1),
			"a changed signature":     made.URL[:len(made.URL)-9] + "AAAAAAAAA",
			"no token":                made.URL[:strings.Index(made.URL, "?")],
			"two tokens":              made.URL + "&token=x",
			"a fragment":              made.URL + "#x",
			"the local disk":          "file:///etc/passwd",
			"metadata of a cloud":     "http://169.254.169.254/latest/meta-data/",
		} {
			got := run(url)
			if fault := decode[rejected](t, got.body).Error; got.status != 400 || len(fault.Fields) != 1 || fault.Fields[0].Field != "messages[0].content[0].url" {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		if got := run(text.URL); got.status != 400 || decode[rejected](t, got.body).Error.Message != string(runinput.NoImage) {
			t.Errorf("a text: %d %s", got.status, got.body)
		}
		h.clock.advance(time.Hour)
		if got := run(made.URL); got.status != 400 || !strings.Contains(got.body, "time has ended") {
			t.Errorf("after its end: %d %s", got.status, got.body)
		}
		if got := h.request(http.MethodGet, "/api/v1/agent/runs", ownToken, "", ""); got.status != http.StatusMethodNotAllowed {
			t.Errorf("GET: %d", got.status)
		}
	})
}

// TestRunKeepsWhatItsClientGave looks at the stored message of a run, and searches the store for
// the link.
func TestRunKeepsWhatItsClientGave(t *testing.T) {
	t.Parallel()
	h := open(t, documentsPlan("sqlite:data/parley.db", "")).echoes()
	made := h.upload(ownToken, "cat.png", "image/png", catPNG)
	h.started(ownToken, runInput(thread, `run "1"`, `[{"type":"text","text":"look"},{"type":"text","text":"here"},{"type":"binary","mimeType":"image/jpeg","filename":"tom.png","url":"`+made.URL+`"}]`))
	h.awaitReply("Noted.")
	messages := decode[struct {
		Messages []struct {
			Content     string
			SenderID    string `json:"sender_id"`
			Metadata    map[string]json.RawMessage
			Run         struct{ ID string }
			Attachments []struct {
				Name     string
				MimeType string `json:"mime_type"`
				Size     int
			}
		}
	}](t, h.web(http.MethodGet, "ours/threads/"+thread+"/messages", ownToken, "").body).Messages
	m := messages[0]
	same(t, []string{m.Content, m.SenderID[:5], m.Run.ID, string(m.Metadata["run_id"]), string(m.Metadata["message_id"]), string(m.Metadata["user_message_attachments"])},
		[]string{"look\nhere", "user:", `run "1"`, `"run \"1\""`, `"msg-001"`, `{"bucket":"` + made.Bucket + `","path":"` + made.Path + `","mime_type":"image/png"}`})
	same(t, fmt.Sprint(m.Attachments), fmt.Sprintf("[{tom.png image/png %d}]", len(catPNG)))
	same(t, string(messages[1].Metadata["run_id"]), `"run \"1\""`)
	_, token, _ := strings.Cut(made.URL, "?token=")
	err := filepath.WalkDir(filepath.Join(h.dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), token) {
			t.Errorf("the link is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	h.clock.advance(25 * time.Hour)
	h.restart() // a start removes files that nothing names
	again := h.upload(ownToken, "dog.txt", "text/plain", "a dog")
	if _, err := os.Stat(filepath.Join(h.dir, "files", made.Path)); err != nil || again.Path == made.Path {
		t.Errorf("the named file: %v", err)
	}
}

// TestRunsWaitForEachOther posts a run during another run of its thread.
func TestRunsWaitForEachOther(t *testing.T) {
	t.Parallel()
	p := documentsPlan("sqlite:data/parley.db", "")
	p.turns = "coalesce: 1h, coalesce_max: 1h, mode: interrupt"
	h := open(t, p)
	h.started(ownToken, runInput(thread, "run-1", `"one"`))
	first := h.nextRequest()
	h.started(ownToken, runInput(thread, "run-2", `"two"`))
	h.started(ownToken, runInput(thread, "run-3", `"three"`))
	h.answer(first, replyWith("1"))
	for i, want := range []string{"two", "three"} {
		asked := h.answerNext(replyWith(fmt.Sprint(i + 2)))
		if said := asked.messages[len(asked.messages)-1]; asked.run == first.run || !strings.Contains(fmt.Sprint(said), want) {
			t.Errorf("the agent was asked %v in the run %q", said, asked.run)
		}
	}
}

// TestRunAboveALimit posts more runs than a limit allows.
func TestRunAboveALimit(t *testing.T) {
	t.Parallel()
	p := documentsPlan("sqlite:data/parley.db", "")
	p.turns = "coalesce: 0s}\nlimits: {runs_per_user: 1/h"
	h := open(t, p).echoes()
	h.started(ownToken, runInput(thread, "run-1", `"one"`))
	if got := h.postRun(ownToken, runInput(thread, "run-2", `"two"`)); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestOnlyRunsSetRunMembers posts an ordinary message with the members of a run.
func TestOnlyRunsSetRunMembers(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, member := range []string{`"run_id":"r"`, `"run_input":{}`} {
		if got := h.post(ownToken, `{"content":"x",`+member+`}`); got.status != http.StatusBadRequest || !strings.Contains(got.body, "run_id") {
			t.Errorf("%s: %d %s", member, got.status, got.body)
		}
	}
}

// TestRunsAreFoundByTheirClientsIDs reads runs whose clients gave them the same id, and one that
// has not begun.
func TestRunsAreFoundByTheirClientsIDs(t *testing.T) {
	t.Parallel()
	const mayToken = "canary-may-70c1d2-aa15c0de-77"
	everyStore(t, func(t *testing.T, h *harness) {
		one, other := uuid.NewString(), uuid.NewString()
		h.started(ownToken, runInput(one, "run-1", `"mine"`))
		mine := h.nextRequest()
		h.started(mayToken, runInput(other, "run-1", `"May's"`))
		h.answerNext(replyWith("To May."))
		h.started(ownToken, runInput(one, "run-2", `"later"`))
		updates := func(token, path string) answer { return h.request(http.MethodGet, path+"/updates", token, "", "") }
		for name, c := range map[string]struct {
			token, path, said string
			status            int
		}{
			"mine":                     {ownToken, "/runs/" + one + "/run-1", `"m":"mine"`, 200},
			"May's":                    {mayToken, "/api/v1/runs/" + other + "/run-1", `"m":"May's"`, 200},
			"a thread in upper case":   {ownToken, "/runs/" + strings.ToUpper(one) + "/run-1", `"m":"mine"`, 200},
			"one that waits":           {ownToken, "/runs/" + one + "/run-2", `"messages":[]`, 200},
			"May's, for me":            {ownToken, "/runs/" + other + "/run-1", "", 404},
			"mine, for May":            {mayToken, "/runs/" + one + "/run-1", "", 404},
			"one that waits, for May":  {mayToken, "/runs/" + one + "/run-2", "", 404},
			"mine, elsewhere":          {theirToken, "/runs/" + one + "/run-1", "", 404},
			"mine, for an integration": {anyToken, "/runs/" + one + "/run-1", `"m":"mine"`, 200},
		} {
			if got := updates(c.token, c.path); got.status != c.status || !strings.Contains(got.body, c.said) {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		for token, said := range map[string]string{ownToken: `"m":"mine"`, mayToken: `"m":"May's"`} {
			if token == ownToken {
				h.answer(mine, replyWith("To you."))
				h.answerNext(replyWith("To you, later."))
			}
			if got := h.request(http.MethodGet, "/api/v1/agent/runs/run-1/stream?since=0", token, "", ""); got.status != 200 || !strings.Contains(got.body, said) {
				t.Errorf("%d %s", got.status, got.body)
			}
		}
	}, func(p *plan) {
		p.files["workspaces/ours.yaml"] = "id: ours\nplatform: web\nagent: helper\nturns: {coalesce: 0s}\nweb:\n  tokens:\n" +
			"    - {id: olivia, token: " + ownToken + ", name: Olivia}\n    - {id: may, token: " + mayToken + ", name: May}\n" +
			"    - {id: bridge, token: " + anyToken + ", name: Bridge, senders: any}\n"
	})
}

// TestLocalWorkspaceRuns sends a file and a run to the built-in workspace.
func TestLocalWorkspaceRuns(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true})
	contentType, body := form(t, "cat.png", "image/png", catPNG)
	got := h.request(http.MethodPost, attachmentsPath, h.local(), contentType, body)
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	image := decode[attachment](t, got.body)
	h.started(h.local(), runInput(thread, "run-1", `[{"type":"text","text":"hi"},{"type":"binary","mimeType":"image/png","url":"`+image.URL+`"}]`))
	if got := h.request(http.MethodGet, "/runs/"+thread+"/run-1/stream", h.local(), "", ""); !strings.Contains(got.body, `"m":"hi"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := h.history(h.local(), ""); !strings.Contains(got.body, `"role":"assistant","content":"hi"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestRunInAThreadForMentions posts a run to a thread whose agents answer only mentions. It
// names the agent by itself.
func TestRunInAThreadForMentions(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		made := decode[struct{ ID string }](t, h.request(http.MethodPost, "/api/v1/chat/threads", ownToken, "application/json", `{"mode":"invocation_only"}`).body)
		if got := h.request(http.MethodPost, "/api/v1/chat/threads/"+made.ID+"/messages", ownToken, "application/json", `{"content":"aside"}`); got.status != http.StatusCreated {
			t.Fatalf("%d %s", got.status, got.body)
		}
		h.started(ownToken, runInput(made.ID, "run-1", `"hi"`))
		same(t, h.answerNext(replyWith("Hello.")).messages, []chatMessage{{"system", contextHead + "- Olivia: aside"}, {"user", "[Olivia]: hi"}})
	})
}
