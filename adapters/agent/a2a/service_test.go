package a2a_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/a2a"
	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
)

// service is a service of A2A. Each request gets the next script of its method.
type service struct {
	t       *testing.T
	card    string // more members
	scripts map[string][]http.HandlerFunc
	calls   []string         // the methods
	params  []map[string]any // of them
	headers []http.Header
	away    func() bool // the service answers no request; nil for never
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.away != nil && s.away() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodGet {
		cardOf(s.card)(w, r)
		return
	}
	var body struct {
		Method string
		Params map[string]any
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Error(err)
	}
	s.calls, s.params, s.headers = append(s.calls, body.Method), append(s.params, body.Params), append(s.headers, r.Header)
	list := s.scripts[body.Method]
	if len(list) == 0 {
		refuses(-32601)(w, r)
		return
	}
	if len(list) > 1 {
		s.scripts[body.Method] = list[1:]
	}
	list[0](w, r)
}

// streams answers with an event stream of results.
func streams(results ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(results...)) }
}

// answers answers with a result.
func answers(result string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"x","result":%s}`, result)
	}
}

func refuses(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"x","error":{"code":%d,"message":"no, never"}}`, code)
	}
}

// task returns the whole task t1.
func task(state, words string, artifacts ...string) string {
	said := ""
	if words != "" {
		said = `,"message":{"messageId":"s","parts":[` + text(words) + `]}`
	}
	return fmt.Sprintf(`{"kind":"task","id":"t1","contextId":"c1","status":{"state":%q%s},"artifacts":[%s]}`, state, said, strings.Join(artifacts, ","))
}

func made(id, parts string) string { return fmt.Sprintf(`{"artifactId":%q,"parts":[%s]}`, id, parts) }

// memory is the journal of the conversation.
type memory struct {
	session string
	taken   int
}

// run runs the agent in a bubble. It returns what it emitted, a line each.
func (s *service) run(t *testing.T, m *memory, change func(*assembly.Input)) (got []string, err error) {
	t.Helper()
	return s.runIn(t, t.Context(), m, change)
}

func (s *service) runIn(t *testing.T, ctx context.Context, m *memory, change func(*assembly.Input)) (got []string, err error) {
	t.Helper()
	s.t = t
	agent := s.agent()
	input := agenttest.Hello()
	input.Session = m.session
	input.KeepSession = func(session string, take bool) error {
		if m.session = session; take {
			m.taken++
		}
		return nil
	}
	if change != nil {
		change(&input)
	}
	emitted, err := agenttest.Run(ctx, agent, input)
	for _, m := range emitted {
		line := m.Type.String() + " " + m.Text
		files, fault := m.Files()
		if fault != nil {
			t.Error(fault)
		}
		for _, f := range files {
			line += fmt.Sprintf(" [%s %s %q]", f.Name, f.MimeType, f.Data)
		}
		got = append(got, line)
	}
	return got, err
}

func (s *service) agent() *a2a.Agent {
	_, files := agenttest.Looks()
	return a2a.New(a2a.Config{Card: "http://agent.test/card", Token: secret.New(agenttest.Canary), Config: remote.DefaultConfig(), Reading: remote.DefaultReading()}, files, agenttest.Pipes(s.t, s.ServeHTTP))
}

// TestATask checks the messages and the session of a task that has everything.
func TestATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := base64.StdEncoding.EncodeToString([]byte("a,b"))
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(
			begun, status("working", "Looking."), piece("a", text("It "), false), piece("a", text("rains."), true),
			piece("b", `{"kind":"data","data":{"mm":[1]}}`, false), piece("f", `{"kind":"file","file":{"name":"r.csv","mimeType":"text/csv","bytes":"`+data+`"}}`, false),
			piece("l", `{"kind":"file","file":{"name":"a [photo]","uri":"https://elsewhere.test/a b.png"}},{"kind":"file","file":{"name":"local","uri":"file:///etc/passwd"}}`, false),
			status("completed", "Done."), status("failed", "late"), status("completed", "twice"),
		)}}}
		m := new(memory)
		got, err := s.run(t, m, nil)
		answer := "It rains.\n\n```json\n{\n  \"mm\": [\n    1\n  ]\n}\n```\n\n[a (photo)](https://elsewhere.test/a%20b.png)\n\nlocal"
		want := []string{"UPDATE Looking.", "STREAMING_CHUNK " + answer, "ANSWER " + answer + ` [r.csv text/csv "a,b"]`}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
		if m.taken != 1 || !strings.Contains(m.session, `"context":"c1","task":"t1","run":"run-1"`) {
			t.Errorf("taken %d times, kept %s", m.taken, m.session)
		}
		wantParams := []map[string]any{{
			"configuration": map[string]any{"blocking": false},
			"message":       map[string]any{"kind": "message", "messageId": "run-1", "role": "user", "parts": []any{map[string]any{"kind": "text", "text": "[Olivia]: hi"}}},
		}}
		if diff := cmp.Diff(wantParams, s.params); diff != "" || s.headers[0].Get("Authorization") != "Bearer "+agenttest.Canary {
			t.Errorf("%v\n%s", s.headers, diff)
		}
	})
}

// TestAnswers checks which words of a task are the answer, however the artifacts came.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		results []string
		want    string
	}{
		"a message":                       {[]string{`{"kind":"message","role":"agent","messageId":"m","contextId":"c1","parts":[` + text("Hi.") + `]}`}, "Hi."},
		"a message without a kind":        {[]string{`{"role":"agent","parts":[{"text":"Hi."}]}`}, "Hi."},
		"the last status":                 {[]string{begun, status("working", "Hm."), status("completed", "Done.")}, "Done."},
		"the last status with words":      {[]string{begun, status("working", "Nearly."), status("completed", "")}, "Nearly."},
		"a whole task":                    {[]string{task("completed", "Done.", made("a", text("One.")), made("b", text("Two.")))}, "One.\n\nTwo."},
		"pieces out of order":             {[]string{begun, piece("a", text("1"), false), piece("b", text("2"), false), piece("a", text("1"), true), piece("c", text("3"), true), status("completed", "")}, "11\n\n2\n\n3"},
		"an artifact that is replaced":    {[]string{begun, piece("a", text("draft"), false), piece("a", text("final"), false), status("completed", "")}, "final"},
		"a piece of an unknown artifact":  {[]string{begun, piece("a", text("only"), true), status("completed", "")}, "only"},
		"a task that goes on from pieces": {[]string{begun, piece("a", text("One"), false), task("completed", "", made("a", text("One more.")))}, "One more."},
		"a task that differs from pieces": {[]string{begun, piece("a", text("One"), false), task("completed", "", made("x", text("Two.")))}, "Two."},
		"a file of nothing":               {[]string{begun, piece("f", `{"kind":"file","file":{"name":"r.csv"}}`, false), status("completed", "")}, "r.csv"},
		"an unknown kind of event":        {[]string{`{"kind":"weather"}`, begun, status("completed", "Done.")}, "Done."},
		"an unknown kind of part":         {[]string{begun, piece("a", `{"kind":"hologram","x":[]},`+text("Hi."), false), status("completed", "")}, "Hi."},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(c.results...)}}}
			got, err := s.run(t, new(memory), nil)
			if err != nil || len(got) == 0 || got[len(got)-1] != "ANSWER "+c.want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
}

// TestEnds checks the states in which a task ends without an answer. None is asked for again.
func TestEnds(t *testing.T) {
	for state, want := range map[string]struct{ text, sentence string }{
		"failed":        {"the task failed: No disk.", "The agent could not do this: No disk."},
		"rejected":      {"the agent rejected the task: No disk.", "The agent declined this: No disk."},
		"canceled":      {"the agent canceled the task: No disk.", "The agent canceled this: No disk."},
		"auth-required": {"which Parley cannot give: No disk.", "The agent needs an authorization that I can't give it: No disk."},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(begun, status(state, "No disk."))}}}
			_, err := s.run(t, new(memory), nil)
			fault, ok := errors.AsType[*remote.Error](err)
			if !ok || !fault.Permanent || !strings.Contains(fault.Error(), want.text) || fault.Sentence() != want.sentence || strings.Contains(fault.Unquoted().Error(), "disk") {
				t.Errorf("%s: %+v", state, err)
			}
		})
	}
}

// TestAQuestion checks that the answer to a question goes to the task that asked, and a late one to a task of its own.
func TestAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {
			streams(begun, status("input-required", "Which colour?")), streams(task("working", ""), status("completed", "Blue it is.")), streams(begun, status("completed", "Done.")),
		}}}
		m := new(memory)
		got, err := s.run(t, m, nil)
		if diff := cmp.Diff([]string{"REQUEST_INPUT Which colour?"}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		for _, answered := range []bool{true, false} {
			m2 := *m
			if _, err := s.run(t, &m2, func(in *assembly.Input) {
				in.RunID, in.Resume = "run-2", &assembly.Resume{RunID: "run-1", Answered: answered}
			}); err != nil {
				t.Error(err)
			}
			if answered && !strings.Contains(m2.session, `"task":"t1","run":"run-2"`) {
				t.Errorf("kept %s", m2.session)
			}
		}
		for i, want := range []any{nil, "t1", nil} {
			if sent := s.params[i]["message"].(map[string]any); sent["taskId"] != want || i > 0 && sent["contextId"] != "c1" {
				t.Errorf("message %d: %v", i, sent)
			}
		}
	})
}

// TestAQuestionWithAFile posts what the task has made before it asks.
func TestAQuestionWithAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(
			begun, piece("a", text("A draft."), false), piece("f", `{"kind":"file","file":{"name":"r.csv","mimeType":"text/csv","bytes":"YSxi"}}`, false), status("input-required", "Send it?"),
		)}}}
		got, err := s.run(t, new(memory), nil)
		if diff := cmp.Diff([]string{`ANSWER A draft. [r.csv text/csv "a,b"]`, "REQUEST_INPUT Send it?"}, of(got, "ANSWER", "REQUEST_INPUT")); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// TestTheWindow checks that a new context gets the thread's window, and a known one the turn.
func TestTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for session, want := range map[string]string{
			"":                 "[Bo]: before\n\n[The assistant so far]: yes\n\n[Thread context]\n\n[Olivia]: hi\n(file: a.png, image/png, 14 B)\n(file: b.pdf, application/pdf, 8 B)",
			`{"context":"c9"}`: "[Thread context]\n\n[Olivia]: hi\n(file: a.png, image/png, 14 B)\n(file: b.pdf, application/pdf, 8 B)",
		} {
			s := &service{card: streaming + `,"defaultInputModes":["text/plain","image/*"]`, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(begun, status("completed", "Done."))}}}
			_, err := s.run(t, &memory{session: session}, func(in *assembly.Input) {
				looks, _ := agenttest.Looks()
				in.Messages = append([]assembly.Message{
					{ID: "m0", Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Bo]: before"}}}, {ID: "r0", Role: assembly.RoleAssistant, Parts: []assembly.Part{{Text: "yes"}}},
					{ID: "c", Role: assembly.RoleSystem, Parts: []assembly.Part{{Text: "[Thread context]"}}},
				}, looks.Messages...)
			})
			parts := s.params[0]["message"].(map[string]any)["parts"]
			image := map[string]any{"kind": "file", "file": map[string]any{"name": "a.png", "mimeType": "image/png", "bytes": base64.StdEncoding.EncodeToString([]byte(agenttest.PNG))}}
			if diff := cmp.Diff([]any{map[string]any{"kind": "text", "text": want}, image}, parts); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		}
	})
}

// TestPolling follows a task of a service that streams nothing, whatever its card says.
func TestPolling(t *testing.T) {
	for _, card := range []string{"", streaming} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{card: card, scripts: map[string][]http.HandlerFunc{
				"message/stream": {refuses(-32004)}, "message/send": {answers(task("submitted", ""))},
				"tasks/get": {answers(task("working", "", made("a", text("One")))), answers(task("working", "Hm.", made("a", text("One, two")))), answers(task("completed", "", made("a", text("One, two, three"))))},
			}}
			m := new(memory)
			got, err := s.run(t, m, nil)
			want := []string{"UPDATE Hm.", "ANSWER One, two, three"}
			if diff := cmp.Diff(want, of(got, "UPDATE", "ANSWER")); err != nil || diff != "" || m.taken != 1 {
				t.Errorf("taken %d times, %v\n%s", m.taken, err, diff)
			}
			if calls := strings.Join(s.calls, " "); strings.TrimPrefix(calls, "message/stream ") != "message/send tasks/get tasks/get tasks/get" {
				t.Error(calls)
			}
			if chunks := strings.ReplaceAll(strings.Join(of(got, "STREAMING_CHUNK"), ""), "STREAMING_CHUNK ", ""); chunks != "One, two, three" {
				t.Errorf("the chunks are %q", chunks)
			}
		})
	}
}

// of returns the lines of some types.
func of(lines []string, kinds ...string) (found []string) {
	for _, line := range lines {
		for _, kind := range kinds {
			if strings.HasPrefix(line, kind+" ") {
				found = append(found, line)
			}
		}
	}
	return found
}

// TestALostStream goes on with the same task, and misses nothing that came between the connections.
func TestALostStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(results ...string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				streams(results...)(w, r)
				panic(http.ErrAbortHandler)
			}
		}
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{
			"message/stream":    {cut(begun, piece("a", text("One"), false))},
			"tasks/get":         {answers(task("working", "", made("a", text("One, two")))), answers(task("working", "", made("a", text("One, two")))), answers(task("completed", "", made("a", text("One, two, three, four"))))},
			"tasks/resubscribe": {cut(), streams(piece("a", text(", four"), true), status("completed", ""))}, // ", three" came between
		}}
		m := new(memory)
		got, err := s.run(t, m, nil)
		if diff := cmp.Diff([]string{"ANSWER One, two, three, four"}, of(got, "ANSWER")); err != nil || diff != "" || m.taken != 1 {
			t.Errorf("taken %d times, %v\n%s", m.taken, err, diff)
		}
		if calls := strings.Join(s.calls, " "); calls != "message/stream tasks/get tasks/resubscribe tasks/get tasks/resubscribe tasks/get" {
			t.Error(calls)
		}
	})
}

// TestATaskOutlivesTheAttempt checks that a task which works when the attempt's time ends is awaited, and that a later attempt goes
// on with it, as after a restart.
func TestATaskOutlivesTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{
			"message/stream":    {func(w http.ResponseWriter, r *http.Request) { streams(begun)(w, r); <-r.Context().Done() }},
			"tasks/get":         {answers(task("working", ""))},
			"tasks/resubscribe": {streams(task("working", ""), piece("a", text("Hi."), false), status("completed", ""))},
		}}
		m := new(memory)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := s.runIn(t, ctx, m, nil)
		var pause interface{ Pause() time.Duration }
		if !errors.Is(err, turn.ErrLater) || !errors.As(err, &pause) || pause.Pause() != 5*time.Minute/8 {
			t.Errorf("%v", err)
		}
		taken := func(in *assembly.Input) { in.Taken = true }
		got, err := s.run(t, m, taken)
		if diff := cmp.Diff([]string{"ANSWER Hi."}, of(got, "ANSWER")); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		if calls := strings.Join(s.calls, " "); calls != "message/stream tasks/get tasks/resubscribe" || m.taken != 1 {
			t.Errorf("taken %d times, %s", m.taken, calls)
		}
		m.session = "" // it was forgotten
		if _, err := s.run(t, m, taken); err == nil || len(s.calls) != 3 {
			t.Errorf("%v, %d calls", err, len(s.calls))
		}
	})
}

// TestNobodyWantsTheAnswer cancels the task, also if no attempt is being made.
func TestNobodyWantsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cause := range []error{turn.ErrStopped, turn.ErrWithdrawn, turn.ErrInterrupted, context.DeadlineExceeded} {
			s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{
				"message/stream": {func(w http.ResponseWriter, r *http.Request) { streams(begun)(w, r); <-r.Context().Done() }}, "tasks/cancel": {answers(task("canceled", ""))},
			}}
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { synctest.Wait(); cancel(cause) }()
			m := new(memory)
			_, err := s.runIn(t, ctx, m, nil)
			want := "message/stream tasks/cancel"
			if cause == context.DeadlineExceeded {
				want = "message/stream"
			}
			if calls := strings.Join(s.calls, " "); calls != want || !errors.Is(err, cause) {
				t.Errorf("%v: %s, %v", cause, calls, err)
			}
			before := len(s.calls)
			for _, run := range []string{"run-0", "run-1"} { // a later run has another task
				s.agent().Abandon(t.Context(), run, []string{m.session, "", "{}"})
			}
			if got := s.params[len(s.params)-1]["id"]; s.calls[len(s.calls)-1] != "tasks/cancel" || got != "t1" || len(s.calls) != before+1 {
				t.Errorf("%v of %v", s.calls, got)
			}
		}
	})
}

// TestPush names the address for push notifications if the card offers them, and goes on without if the service refuses it.
func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pushes = `,"capabilities":{"streaming":true,"pushNotifications":true}`
		given := map[string]any{"id": "run-1", "url": "https://parley.test/api/v1/runs/run-1/push", "token": "push-token"}
		for card, want := range map[string]any{streaming: nil, pushes: given} {
			s := &service{card: card, scripts: map[string][]http.HandlerFunc{"message/stream": {refuses(-32003), streams(begun, status("completed", "Done."))}}}
			if want == nil {
				s.scripts["message/stream"] = s.scripts["message/stream"][1:]
			}
			_, err := s.run(t, new(memory), func(in *assembly.Input) {
				in.Push = assembly.Push{URL: given["url"].(string), Token: secret.New("push-token")}
			})
			if got := s.params[0]["configuration"].(map[string]any)["pushNotificationConfig"]; !cmp.Equal(got, want) || err != nil {
				t.Errorf("%v, %v", got, err)
			}
			if last := s.params[len(s.params)-1]["configuration"].(map[string]any); last["pushNotificationConfig"] != nil {
				t.Errorf("%v", last)
			}
		}
	})
}

// TestFaults checks services that break the protocol. Each costs the answer, and no request but the first has the input.
func TestFaults(t *testing.T) {
	other := strings.ReplaceAll(status("completed", "Yours."), "t1", "t2")
	flood := func(w http.ResponseWriter, r *http.Request) {
		for streams(begun)(w, r); r.Context().Err() == nil; {
			agenttest.Write(w, events(piece("a", text(strings.Repeat("x", 64<<10)), true)))
		}
	}
	names := func(w http.ResponseWriter, r *http.Request) {
		streams(begun)(w, r)
		for i := range 10 {
			agenttest.Write(w, events(piece(fmt.Sprint(i, strings.Repeat("x", 1<<20)), "", false)))
		}
		agenttest.Write(w, events(status("completed", "Done.")))
	}
	for name, c := range map[string]struct {
		begin     http.HandlerFunc
		permanent bool
		words     string
	}{
		"the task of another":          {streams(begun, other), true, "another task"},
		"an artifact of another":       {streams(begun, strings.ReplaceAll(piece("a", text("x"), false), "t1", "t2")), true, "another task"},
		"no id":                        {streams(`{"kind":"task","status":{"state":"working"}}`), false, "named no task"},
		"nothing":                      {answers(`{"kind":"weather"}`), false, "neither a task nor a message"},
		"a completed task of nothing":  {streams(task("completed", "")), true, "neither an artifact nor a message"},
		"an error about the params":    {refuses(-32602), true, "error -32602"},
		"an error of its own":          {refuses(-32603), false, "error -32603"},
		"a gigabyte":                   {flood, false, "max_bytes"},
		"ten megabytes of names":       {names, false, "max_bytes"},
		"parts without end":            {streams(begun, piece("a", strings.Repeat(`{},`, 1<<17)+`{}`, false), piece("a", strings.Repeat(`{},`, 1<<17)+`{}`, true)), true, "parts"},
		"a long id":                    {streams(strings.ReplaceAll(begun, "t1", strings.Repeat("t", 1001))), true, "more than 1000 bytes"},
		"a result that is no object":   {streams(`"done"`), false, "invalid event"},
		"a stream of another protocol": {func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, "data: [1]\n\n") }, false, "invalid event"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {c.begin}}}
			got, err := s.run(t, new(memory), nil)
			fault, ok := errors.AsType[*remote.Error](err)
			if !ok || fault.Permanent != c.permanent || !strings.Contains(err.Error(), c.words) || len(of(got, "ANSWER")) > 0 || len(s.calls) != 1 {
				t.Errorf("%s: %q, %d calls, %v", name, got, len(s.calls), err)
			}
		})
	}
}

// TestAServiceThatRestarts is away, with its card, when an attempt goes on with a task.
func TestAServiceThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"tasks/get": {answers(task("completed", "Done."))}}}
		left := 5
		s.away = func() bool { left--; return left > 0 }
		got, err := s.run(t, &memory{session: `{"context":"c1","task":"t1","run":"run-1"}`}, func(in *assembly.Input) { in.Taken = true })
		if diff := cmp.Diff([]string{"ANSWER Done."}, of(got, "ANSWER")); err != nil || diff != "" || len(s.calls) != 1 {
			t.Errorf("%d calls, %v\n%s", len(s.calls), err, diff)
		}
	})
}

// TestAServiceThatRepeats repeats the tokens of the request in an error, which hides them.
func TestAServiceThatRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := "parley-push-" + strings.Repeat("0123456789abcdef", 4)
		s := &service{card: `,"capabilities":{"pushNotifications":true}`, scripts: map[string][]http.HandlerFunc{"message/send": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"error":{"code":-32602,"message":%q}}`, "no "+token+" "+r.Header.Get("Authorization"))
		}}}}
		_, err := s.run(t, new(memory), func(in *assembly.Input) {
			in.Push = assembly.Push{URL: "https://parley.test/push", Token: secret.New(token)}
		})
		if text := fmt.Sprintf("%v %+v", err, err); err == nil || strings.Contains(text, token) || strings.Contains(text, agenttest.Canary) || !strings.Contains(text, "[secret]") {
			t.Error(text)
		}
	})
}

// TestTokensInWordsForPeople are hidden: a service may fail with the words of its request.
func TestTokensInWordsForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := "parley-push-" + strings.Repeat("0123456789abcdef", 4)
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(begun, status("failed", "no "+token+" "+agenttest.Canary))}}}
		_, err := s.run(t, new(memory), nil)
		if fault, ok := errors.AsType[*remote.Error](err); !ok || fault.Sentence() != "The agent could not do this: no [secret] [secret]" {
			t.Errorf("%+v", err)
		}
	})
}

// TestDeepData shows data without indents if it is deep: the spaces would be longer than any answer.
func TestDeepData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const levels, values = 90, 100_000
		data := strings.Repeat("[", levels) + strings.Repeat("0,", values) + "0" + strings.Repeat("]", levels)
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(begun, piece("a", `{"kind":"data","data":`+data+`}`, false), status("completed", ""))}}}
		got, err := s.run(t, new(memory), nil)
		if answer := of(got, "ANSWER"); err != nil || len(answer) != 1 || strings.Count(answer[0], "[\n") != levels || strings.Count(answer[0], "0,\n") != values {
			t.Errorf("%d answers, %v", len(answer), err)
		}
	})
}

// TestAServiceThatDoesNotResume streams the next task all the same.
func TestAServiceThatDoesNotResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, card: streaming, scripts: map[string][]http.HandlerFunc{
			"message/stream": {streams(begun)}, "tasks/get": {answers(task("working", "")), answers(task("completed", "Done."))},
		}}
		agent := s.agent()
		for range 2 {
			if _, err := agenttest.Run(t.Context(), agent, agenttest.Hello()); err != nil {
				t.Error(err)
			}
		}
		if calls := strings.Join(s.calls, " "); calls != "message/stream tasks/get tasks/resubscribe tasks/get message/stream tasks/get" {
			t.Error(calls)
		}
	})
}

// TestALastLook reads the whole task after a lost stream. A service that refuses to tell it leaves the answer so far; one that tells too
// much, or of another task, leaves none, since pieces may be missing.
func TestALastLook(t *testing.T) {
	working := task("working", "", made("a", text("One")))
	for name, c := range map[string]struct {
		last http.HandlerFunc
		ok   bool
	}{
		"it is forgotten":  {refuses(-32001), true},
		"it is too long":   {answers(task("completed", "", made("a", text(strings.Repeat("x", 5<<20))))), false},
		"it is another":    {answers(strings.ReplaceAll(task("completed", "", made("a", text("Yours"))), "t1", "t2")), false},
		"it has an order":  {answers(task("completed", "", made("b", text("Two")), made("a", text("One")))), true},
		"it is as before":  {answers(task("completed", "", made("a", text("One")), made("b", text("Two")))), true},
		"it is not spoken": {http.NotFound, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{
				"message/stream":    {streams(begun, piece("a", text("One"), false))},
				"tasks/get":         {answers(working), c.last},
				"tasks/resubscribe": {streams(piece("b", text("Two"), false), status("completed", ""))},
			}}
			got, err := s.run(t, new(memory), nil)
			answer := strings.Join(of(got, "ANSWER"), "")
			if (err == nil) != c.ok || (answer != "") != c.ok || c.ok && (!strings.Contains(answer, "One") || !strings.Contains(answer, "Two")) {
				t.Errorf("%s: %.100q, %.300v", name, answer, err)
			}
		})
	}
}

// TestAServiceThatForgets has no task of an earlier attempt any more. It is not asked twice.
func TestAServiceThatForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"tasks/get": {refuses(-32001)}}}
		_, err := s.run(t, &memory{session: `{"context":"c1","task":"t1","run":"run-1"}`}, func(in *assembly.Input) { in.Taken = true })
		if fault, ok := errors.AsType[*remote.Error](err); !ok || !fault.Permanent || len(s.calls) != 1 {
			t.Errorf("%d calls, %v", len(s.calls), err)
		}
	})
}

// TestAChangedQuestion has an id of its own: a service may know the run's first message.
func TestAChangedQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{card: streaming, scripts: map[string][]http.HandlerFunc{"message/stream": {streams(begun, status("completed", "Done."))}}}
		if _, err := s.run(t, &memory{session: `{"context":"c1","task":"t0","run":"run-1"}`}, nil); err != nil {
			t.Error(err)
		}
		if id := s.params[0]["message"].(map[string]any)["messageId"].(string); !strings.HasPrefix(id, "run-1-") {
			t.Error(id)
		}
	})
}

// TestTheCardIsRead checks that it is read once in some minutes, and again after a failure.
func TestTheCardIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, away := 0, false
		agent := a2a.New(a2a.Config{Card: "http://agent.test/card", Token: secret.New("long-enough-token"), Config: remote.DefaultConfig()}, nil, agenttest.Pipes(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				if reads++; r.Header.Get(remote.RunTokenHeader) != "" || r.Header.Get("Authorization") != "" {
					t.Errorf("the request for the card has %v", r.Header)
				}
				cardOf(streaming)(w, r)
			case away:
				http.Error(w, "away", http.StatusServiceUnavailable)
			default:
				_, _ = io.Copy(io.Discard, r.Body)
				streams(begun, status("completed", "Done."))(w, r)
			}
		}))
		ask := func() error { _, err := agenttest.Run(t.Context(), agent, agenttest.Hello()); return err }
		for i, want := range []int{1, 1, 1, 2, 2} {
			if away = i == 2; (ask() == nil) == away || reads != want {
				t.Errorf("ask %d: %d reads", i, reads)
			}
		}
		time.Sleep(5 * time.Minute)
		if err := ask(); err != nil || reads != 3 {
			t.Errorf("%d reads, %v", reads, err)
		}
	})
}
