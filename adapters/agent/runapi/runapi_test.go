package runapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent"
	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/adapters/agent/runapi"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/stream"
)

// server is a server of the run protocol. Each connection to the stream gets the next script.
type server struct {
	*testing.T
	posts   []map[string]any
	sinces  []string
	signals []string
	signal  func(w http.ResponseWriter) // answers a signal
	scripts []func(w http.ResponseWriter)
	accept  string                      // the answer to a POST; empty for an ordinary one
	stored  []string                    // the attachments that were posted
	store   func(w http.ResponseWriter) // answers the post of an attachment
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+agenttest.Canary {
		s.Errorf("headers %v", r.Header)
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /api/v1/agent/runs":
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			s.Error(err)
		}
		s.posts = append(s.posts, body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, s.accept)
	case "POST /runs/run-1/signals":
		body, _ := io.ReadAll(r.Body)
		s.signals = append(s.signals, string(body))
		if r.Header.Get("Idempotency-Key") != "" {
			s.Errorf("headers %v", r.Header)
		}
		s.signal(w)
	case "POST /api/v1/agent/attachments":
		file, head, err := r.FormFile("file")
		if err != nil {
			s.Error(err)
			return
		}
		content, _ := io.ReadAll(file)
		s.stored = append(s.stored, head.Filename+" "+head.Header.Get("Content-Type")+" "+string(content))
		s.store(w)
	case "GET /api/v1/agent/runs/run-1/stream":
		s.sinces = append(s.sinces, r.URL.Query().Get("since"))
		if len(s.scripts) == 0 {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		script := s.scripts[0]
		s.scripts = s.scripts[1:]
		script(w)
	default:
		s.Errorf("%s %s", r.Method, r.URL)
	}
}

// streams is a script that writes events and ends.
func streams(events ...string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		var b strings.Builder
		for _, e := range events {
			id, data, found := strings.Cut(e, "|")
			if found {
				fmt.Fprintf(&b, "id: %s\n", id)
			} else {
				data = e
			}
			fmt.Fprintf(&b, "data: %s\n\n", data)
		}
		agenttest.Stream(w, b.String())
	}
}

// agent returns an agent of the server.
func (s *server) agent(files agent.Files) *runapi.Agent {
	return runapi.New(runapi.Config{BaseURL: "http://agent.test", Token: secret.New(agenttest.Canary), Config: remote.DefaultConfig()}, files, agenttest.Pipes(s.T, s.ServeHTTP))
}

// run runs the agent in a bubble against the scripts.
func run(t *testing.T, s *server, change func(*assembly.Input)) (got []string, taken int, err error) {
	t.Helper()
	s.T = t
	if s.accept == "" {
		s.accept = `{"taskId":"t","threadId":"x","runId":"run-1","created":"2026-01-01T00:00:00Z"}`
	}
	input := agenttest.Hello()
	input.Take = func() error { taken++; return nil }
	if change != nil {
		change(&input)
	}
	_, files := agenttest.Looks()
	emitted, err := agenttest.Run(t.Context(), s.agent(files), input)
	for _, m := range emitted {
		got = append(got, m.Type.String()+" "+m.Text)
	}
	return got, taken, err
}

func TestARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){streams(
			`{"t":8,"m":"[Olivia]: hi","ts":900}`, `{"t":1,"m":"Hm.","ts":1000}`, `{"t":12,"m":"hi","i":"a"}`, `{"t":4,"m":"child","w":"w1","ts":1500}`, `{"t":7,"m":"hi there","i":"a","ts":2000}`, `{"t":4,"ts":2000}`, `{"t":7,"m":"late","ts":3000}`,
		)}}
		got, taken, err := run(t, s, func(in *assembly.Input) {
			in.Messages = append([]assembly.Message{
				{ID: "m0", Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Bo]: before"}}}, {ID: "r0", Role: assembly.RoleAssistant, Parts: []assembly.Part{{Text: "yes"}}},
				{ID: "c", Role: assembly.RoleSystem, Parts: []assembly.Part{{Text: "[Thread context]\n- Bo: x"}}},
			}, in.Messages...)
		})
		want := []string{"THOUGHT Hm.", "STREAMING_CHUNK hi", "COMPLETE child", "ANSWER hi there", "COMPLETE "}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || taken != 1 {
			t.Errorf("taken %d times, %v\n%s", taken, err, diff)
		}
		body := []map[string]any{{
			"threadId": "5f0c9a4e-8f5e-5c5a-9b5e-0d6f8f3c1a11", "runId": "run-1", "state": map[string]any{}, "forwardedProps": map[string]any{}, "tools": []any{},
			"context":  []any{map[string]any{"description": "Thread context", "value": "[Thread context]\n- Bo: x"}},
			"messages": []any{map[string]any{"id": "m1", "role": "user", "content": "[Olivia]: hi"}},
		}}
		if diff := cmp.Diff(body, s.posts); diff != "" {
			t.Error(diff)
		}
	})
}

// TestGivenIsSent posts what a client gave for a run.
func TestGivenIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":7,"m":"hi","ts":1000}`, `{"t":4,"ts":1000}`)}}
		if _, _, err := run(t, s, func(in *assembly.Input) { in.Given = agenttest.Given().Given }); err != nil {
			t.Fatal(err)
		}
		body := []map[string]any{{
			"threadId": "5f0c9a4e-8f5e-5c5a-9b5e-0d6f8f3c1a11", "runId": "run-1", "state": map[string]any{"n": 1.0}, "forwardedProps": map[string]any{"k": []any{}},
			"tools":   []any{map[string]any{"name": "f", "description": "d", "parameters": map[string]any{}}},
			"context": []any{map[string]any{"description": "page", "value": "home"}},
			"messages": []any{
				map[string]any{"id": "m1", "role": "user", "content": "[Olivia]: hi", "encryptedValue": "e"},
				map[string]any{"id": "m2", "role": "tool", "content": "ok", "toolCallId": "c", "x": 1.0},
			},
		}}
		if diff := cmp.Diff(body, s.posts); diff != "" {
			t.Error(diff)
		}
	})
}

// TestNoClientSpeaksForUs posts a client's context whose descriptions are those of ours, or look like them.
func TestNoClientSpeaksForUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":7,"m":"hi","ts":1000}`, `{"t":4,"ts":1000}`)}}
		if _, _, err := run(t, s, func(in *assembly.Input) {
			in.Given.Context = json.RawMessage(`[{"description":"Instructions","value":"a"},{"description":" ｉnstructions\u200b","value":"b"},{"description":"thread  CONTEXT","value":"c"},{"description":"chosen option","value":"d"},{"description":"Instructions for tea","value":"e"}]`)
		}); err != nil {
			t.Fatal(err)
		}
		entry := func(description, value string) any {
			return map[string]any{"description": description, "value": value}
		}
		want := []any{
			entry("Instructions (from the person who asks)", "a"), entry(" ｉnstructions\u200b (from the person who asks)", "b"),
			entry("thread  CONTEXT (from the person who asks)", "c"), entry("Instructions for tea", "e"),
		}
		if diff := cmp.Diff(want, s.posts[0]["context"]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnAnswerNamesTheRunThatAsked checks parentRunId and the chosen option, which a run without an
// answer does not have.
func TestAnAnswerNamesTheRunThatAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for answered, want := range map[bool]any{true: "run-0", false: nil} {
			s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":7,"m":"hi"}`, `{"t":4}`)}}
			_, _, err := run(t, s, func(in *assembly.Input) {
				in.Resume = &assembly.Resume{RunID: "run-0", Answered: answered, Option: "y"}
				in.Given.Context = json.RawMessage(`[{"description":"Chosen option","value":"n"}]`)
			})
			if err != nil || s.posts[0]["parentRunId"] != want {
				t.Errorf("%v, %v", s.posts, err)
			}
			if got := fmt.Sprint(s.posts[0]["context"]); got != map[bool]string{true: "[map[description:Chosen option value:y]]", false: "[]"}[answered] {
				t.Errorf("answered %v: the context is %s", answered, got)
			}
		}
	})
}

// TestSteer posts each message as a signal of its own, until one is refused. A report of a workstream is one, and a block is none.
func TestSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 202
		s := &server{T: t, signal: func(w http.ResponseWriter) { w.WriteHeader(status) }}
		agent := s.agent(nil)
		user := func(id, text string) assembly.Message {
			return assembly.Message{ID: id, Role: assembly.RoleUser, Parts: []assembly.Part{{Text: text}}}
		}
		const report = "0190a0e4-0000-7000-8000-000000000001"
		messages := []assembly.Message{{ID: "context-m2", Role: assembly.RoleSystem, Parts: []assembly.Part{{Text: "context"}}}, user("m2", "[Bo]: and this"), user("m3", "[Bo]: and that"),
			{ID: report, Role: assembly.RoleSystem, Parts: []assembly.Part{{Text: "It is done."}}}}
		if err := agent.Steer(t.Context(), agenttest.Hello(), messages); err != nil {
			t.Error(err)
		}
		want := []string{
			`{"data":{"message":"[Bo]: and this","client_message_id":"m2"},"signal":"UserInput"}`,
			`{"data":{"message":"[Bo]: and that","client_message_id":"m3"},"signal":"UserInput"}`,
			`{"data":{"message":"It is done.","client_message_id":"` + report + `"},"signal":"UserInput"}`,
		}
		if diff := cmp.Diff(want, s.signals); diff != "" {
			t.Error(diff)
		}
		if status = 409; agent.Steer(t.Context(), agenttest.Hello(), messages) == nil || len(s.signals) != 4 {
			t.Errorf("%d signals after a refusal", len(s.signals))
		}
	})
}

// TestParleyAloneAsks checks that a turn that consists of Parley's own messages is a run with one message, beside the blocks about it.
func TestParleyAloneAsks(t *testing.T) {
	const first, second = "0190a0e4-0000-7000-8000-000000000001", "0190a0e4-0000-7000-8000-000000000002"
	s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":7,"m":"Thanks."}`, `{"t":4}`)}}
	_, _, err := run(t, s, func(input *assembly.Input) {
		system := func(id, text string) assembly.Message {
			return assembly.Message{ID: id, Role: assembly.RoleSystem, Parts: []assembly.Part{{Text: text}}}
		}
		input.Messages = []assembly.Message{
			{ID: "m1", Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Bo]: hi"}}}, {ID: "m2", Role: assembly.RoleAssistant, Parts: []assembly.Part{{Text: "Wait."}}},
			system("working-"+first, "Still at work."), system(first, "It is done."), system(second, "It has failed."),
		}
	})
	if err != nil || len(s.posts) != 1 {
		t.Fatalf("%v, %d posts", err, len(s.posts))
	}
	said, _ := json.Marshal(s.posts[0]["messages"])
	beside, _ := json.Marshal(s.posts[0]["context"])
	for _, words := range []string{`"role":"user"`, "It is done.", "It has failed."} {
		if !strings.Contains(string(said), words) || len(s.posts[0]["messages"].([]any)) != 1 {
			t.Errorf("the messages are %s", said)
		}
	}
	if strings.Contains(string(said), "Still at work.") || !strings.Contains(string(beside), "Still at work.") || strings.Contains(string(beside), "It is done.") {
		t.Errorf("the messages are %s, and the context %s", said, beside)
	}
}

// TestAStopIsSignalled checks that the server hears of a stop if nobody wants the answer, and of no other end.
func TestAStopIsSignalled(t *testing.T) {
	for cause, want := range map[error]int{turn.ErrStopped: 1, turn.ErrInterrupted: 1, turn.ErrWithdrawn: 1, context.Canceled: 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := &server{T: t, accept: "{}", signal: func(http.ResponseWriter) {}, scripts: []func(http.ResponseWriter){func(http.ResponseWriter) { cancel(cause) }}}
			input := agenttest.Hello()
			input.Take = func() error { return nil }
			_, err := agenttest.Run(ctx, s.agent(nil), input)
			if err == nil || len(s.signals) != want || want > 0 && s.signals[0] != `{"data":{},"signal":"Stop"}` {
				t.Errorf("%v: %v, %v", cause, s.signals, err)
			}
		})
	}
}

// TestALostStreamIsContinued checks that nothing is emitted twice, although the server sends
// the messages with the time since again.
func TestALostStreamIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(events ...string) func(w http.ResponseWriter) {
			return func(w http.ResponseWriter) { streams(events...)(w); panic(http.ErrAbortHandler) }
		}
		s := &server{scripts: []func(http.ResponseWriter){
			cut(`{"t":1,"m":"one","ts":1000}`, `{"t":1,"m":"same time","ts":1000}`),
			cut(`{"t":1,"m":"one","ts":1000}`, `{"t":1,"m":"same time","ts":1000}`, `{"t":1,"m":"again","i":"x","ts":1000}`, `7|{"t":3,"m":"by id","ts":2000}`),
			streams(`7|{"t":3,"m":"by id","ts":2000}`, `8|{"t":3,"m":"by id","ts":2000}`, `9|{"t":7,"m":"done","ts":2500}`, `10|{"t":4,"ts":2500}`),
		}}
		begin := time.Now()
		got, _, err := run(t, s, nil)
		want := []string{"THOUGHT one", "THOUGHT same time", "THOUGHT again", "UPDATE by id", "UPDATE by id", "ANSWER done", "COMPLETE "}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
		if diff := cmp.Diff([]string{"0", "1000", "2000"}, s.sinces); diff != "" || len(s.posts) != 1 {
			t.Errorf("%d posts\n%s", len(s.posts), diff)
		}
		if took := time.Since(begin); took < 2*time.Second || took > 2300*time.Millisecond {
			t.Errorf("two pauses took %v", took)
		}
	})
}

// TestEqualMessages checks that equal messages of one connection are different ones, also without an
// id behind one that has an id, and that a later connection repeats each of them once.
func TestEqualMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunk := `{"t":12,"m":"ha","i":"a","ts":1000}`
		s := &server{scripts: []func(http.ResponseWriter){
			func(w http.ResponseWriter) {
				streams(chunk, chunk, `7|{"t":3,"m":"numbered","ts":1000}`, `{"t":3,"m":"not numbered","ts":1000}`)(w)
				panic(http.ErrAbortHandler)
			},
			streams(chunk, chunk, `7|{"t":3,"m":"numbered","ts":1000}`, `{"t":3,"m":"not numbered","ts":1000}`, chunk, `{"t":7,"m":"hahaha","i":"a","ts":1001}`, `{"t":4,"ts":1001}`),
		}}
		got, _, err := run(t, s, nil)
		want := []string{"STREAMING_CHUNK ha", "STREAMING_CHUNK ha", "UPDATE numbered", "UPDATE not numbered", "STREAMING_CHUNK ha", "ANSWER hahaha", "COMPLETE "}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// TestAServerThatCountsEachConnection checks that no message is taken for another one of an earlier connection
// that had the same SSE id, nor emitted again under another id.
func TestAServerThatCountsEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){
			func(w http.ResponseWriter) {
				streams(`1|{"t":1,"m":"hm","ts":1000}`, `2|{"t":12,"m":"It ","i":"a","ts":1001}`)(w)
				panic(http.ErrAbortHandler)
			},
			streams(`1|{"t":12,"m":"It ","i":"a","ts":1001}`, `2|{"t":12,"m":"is.","i":"a","ts":1002}`, `3|{"t":7,"m":"It is.","i":"a","ts":1003}`, `4|{"t":4,"ts":1003}`),
		}}
		got, _, err := run(t, s, nil)
		want := []string{"THOUGHT hm", "STREAMING_CHUNK It ", "STREAMING_CHUNK is.", "ANSWER It is.", "COMPLETE "}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// TestTheAgentsOwnVoice checks that no answer has the agent's header, or goes on in the name of another author,
// whether it comes as a message or only in tokens.
func TestTheAgentsOwnVoice(t *testing.T) {
	const left = "WARNING The model went on with the conversation, and this was left out: "
	for name, c := range map[string]struct{ events, want []string }{
		"a message": {
			[]string{`{"t":7,"m":"[Runs]: Hi.\n[Olivia]: and?\nMore.","ts":1000}`, `{"t":4,"ts":1000}`},
			[]string{left + "[Olivia]: and?\nMore.", "ANSWER Hi.", "COMPLETE "},
		},
		"tokens": {
			[]string{`{"t":12,"m":"[Ru","i":"a"}`, `{"t":12,"m":"ns]: Hi.\n[Oli","i":"a"}`, `{"t":12,"m":"via]: and?","i":"a"}`, `{"t":10,"ts":1000}`},
			[]string{"STREAMING_CHUNK Hi.\n", left + "[Olivia]: and?", "IDLE "},
		},
		"a thought, and tokens that only begin like a header": {
			[]string{`{"t":12,"m":"[Runs]: hm","i":"a"}`, `{"t":1,"m":"[Runs]: hm","i":"a","ts":1000}`, `{"t":12,"m":"Yes\n[Oliv","i":"b"}`, `{"t":4,"ts":1000}`},
			[]string{"STREAMING_CHUNK hm", "THOUGHT [Runs]: hm", "STREAMING_CHUNK Yes\n", "STREAMING_CHUNK [Oliv", "COMPLETE "},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, _, err := run(t, &server{scripts: []func(http.ResponseWriter){streams(c.events...)}}, func(in *assembly.Input) {
				in.Speakers = assembly.Speakers{Agent: "runs", Headers: []string{"[Olivia]:"}}
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v\n%s", name, err, diff)
			}
		})
	}
}

// TestALongAnswer takes an answer of more than 1 MiB in one event, which comes in pieces of three bytes:
// a reader that looks at the whole event again with each piece would take minutes.
func TestALongAnswer(t *testing.T) {
	long := strings.Repeat("é\n", 1<<19)
	raw, err := json.Marshal(stream.Message{Type: stream.Answer, Text: long})
	if err != nil {
		t.Fatal(err)
	}
	server := &server{accept: "{}", scripts: []func(http.ResponseWriter){func(w http.ResponseWriter) {
		agenttest.Stream(w, "")
		w = threes{w}
		fmt.Fprintf(w, "data: %s\n\ndata: {\"t\":4}\n\n", raw)
	}}}
	synctest.Test(t, func(t *testing.T) {
		if got, _, err := run(t, server, nil); err != nil || len(got) != 2 || got[0] != "ANSWER "+long {
			t.Errorf("%d messages, %v", len(got), err)
		}
	})
}

// threes writes pieces of three bytes.
type threes struct{ http.ResponseWriter }

func (w threes) Write(text []byte) (int, error) {
	for piece := range slices.Chunk(text, 3) {
		if _, err := w.ResponseWriter.Write(piece); err != nil {
			return 0, err
		}
		w.ResponseWriter.(http.Flusher).Flush()
	}
	return len(text), nil
}

// TestARunThatHasBegunMayBeSilent checks that first_byte bounds the wait for the run's first
// event only, and not that of a continued stream.
func TestARunThatHasBegunMayBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){
			func(w http.ResponseWriter) { streams(`{"t":1,"m":"hm","ts":1000}`)(w); panic(http.ErrAbortHandler) },
			func(w http.ResponseWriter) {
				agenttest.Stream(w, ":\n\n")
				<-time.After(2 * remote.DefaultConfig().FirstByte)
				streams(`{"t":7,"m":"done","ts":2000}`, `{"t":4,"ts":2000}`)(w)
			},
		}}
		got, _, err := run(t, s, nil)
		if diff := cmp.Diff([]string{"THOUGHT hm", "ANSWER done", "COMPLETE "}, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		fault  string
	}{
		"an idle agent":           {[]string{`{"t":7,"m":"hi"}`, `{"t":10}`}, ""},
		"a question":              {[]string{`{"t":9,"m":"Which?"}`}, ""},
		"idle without an answer":  {[]string{`{"t":10}`}, ""}, // the turn knows whether tokens are one
		"terminated":              {[]string{`{"t":11,"m":"killed"}`}, "ended with TERMINATED and without an answer: killed"},
		"another workstream ends": {[]string{`{"t":11,"w":"w1"}`, `{"t":7,"m":"hi"}`, `{"t":4}`}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := run(t, &server{scripts: []func(http.ResponseWriter){streams(c.events...)}}, nil)
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestATakenRunIsNotPostedAgain checks a run that goes on after a restart.
func TestATakenRunIsNotPostedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":7,"m":"hi"}`, `{"t":4}`)}}
		_, taken, err := run(t, s, func(in *assembly.Input) { in.Taken = true })
		if err != nil || taken != 0 || len(s.posts) != 0 {
			t.Errorf("taken %d times, %d posts, %v", taken, len(s.posts), err)
		}
	})
}

// TestTheStreamIsGivenUp checks the number of connections and the pauses between them.
func TestTheStreamIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		begin := time.Now()
		_, _, err := run(t, s, nil)
		if err == nil || !strings.Contains(err.Error(), "503") || len(s.sinces) != 11 {
			t.Errorf("%d connections, %v", len(s.sinces), err)
		}
		const pauses = (1 + 2 + 4 + 8 + 16 + 5*30) * time.Second
		if took := time.Since(begin); took < pauses || took > pauses*11/10 {
			t.Errorf("took %v", took)
		}
	})
}

func TestRejectedInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		_, _, err := run(t, s, func(in *assembly.Input) {
			in.Messages[0].Parts[0].Text = strings.Repeat("x", 10001)
		})
		fault, ok := err.(*remote.Error)
		if !ok || !fault.Permanent || !strings.Contains(err.Error(), "RunAgentInput user message text exceeds limit") || !strings.Contains(fault.Sentence(), "too long") || len(s.posts) != 0 {
			t.Errorf("%d posts, %v", len(s.posts), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, taken, err := run(t, &server{accept: `{"runId":"other"}`}, nil)
		if err == nil || !strings.Contains(err.Error(), "did not accept") || taken != 0 {
			t.Errorf("taken %d times, %v", taken, err)
		}
	})
}

// TestImagesArePostedFirst checks the post of an image, its block in the run, and servers that
// do not take it.
func TestImagesArePostedFirst(t *testing.T) {
	const url = "https://store.example.com/storage/v1/object/sign/agent-files/a.png?token=x"
	type object = map[string]any
	text, name := object{"type": "text", "text": "[Olivia]: hi"}, object{"type": "text", "text": "(file: b.pdf, application/pdf, 8 B)"}
	named := "[Olivia]: hi\n(file: a.png, image/png, 14 B)\n(file: b.pdf, application/pdf, 8 B)"
	for _, c := range []struct {
		status int
		answer string
		want   any    // the content of the message; nil if the run is not posted
		fault  string // empty for none
	}{
		{200, `{"bucket":"agent-files","path":"a.png","mime_type":"image/png","url":"` + url + `"}`,
			[]any{text, object{"type": "binary", "mimeType": "image/png", "url": url, "filename": "a.png"}, name}, ""},
		{404, `{}`, named, ""},
		{413, `{}`, named, ""},
		{200, `{}`, nil, "named no url"},
		{503, `{}`, nil, "503"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{scripts: []func(http.ResponseWriter){streams(`{"t":7,"m":"hi"}`, `{"t":4}`)}}
			s.store = func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.answer)
			}
			_, _, err := run(t, s, func(in *assembly.Input) {
				looks, _ := agenttest.Looks()
				in.Messages = looks.Messages
			})
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%d: %v", c.status, err)
			}
			if diff := cmp.Diff([]string{"a.png image/png " + agenttest.PNG}, s.stored); diff != "" {
				t.Errorf("%d: %s", c.status, diff)
			}
			var got any
			if len(s.posts) > 0 {
				got = s.posts[0]["messages"].([]any)[0].(object)["content"]
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%d: %s", c.status, diff)
			}
		})
	}
}

func TestMisbehavingServers(t *testing.T) {
	one := `data: {"t":12,"m":"Grüße, ","i":"a"}` + "\n\n"
	agenttest.Test(t, agenttest.Protocol{
		New: func(address string, bounds remote.Config, transport http.RoundTripper) turn.Agent {
			return taker{runapi.New(runapi.Config{BaseURL: address, Token: secret.New(agenttest.Canary), Config: bounds}, nil, transport)}
		},
		Tools: true, Text: "Grüße, Olivia", Beginning: one,
		Answer: one + `data: {"t":12,"m":"Olivia","i":"a","f":1}` + "\n\n" + `data: {"t":7,"m":"Grüße, Olivia","i":"a"}` + "\n\n" + `data: {"t":4}` + "\n\n",
		Accepts: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"runId":"run-1"}`)
		},
		Grows: map[string]func(n int) string{
			"chunks": func(n int) string {
				return strings.Repeat(one, n) + `data: {"t":4}` + "\n\n"
			},
			"activities": func(n int) string {
				var b strings.Builder
				for i := range n {
					fmt.Fprintf(&b, `data: {"t":12,"m":"word ","i":"a%d"}`+"\n\n", i)
				}
				return b.String() + `data: {"t":7,"m":"Hi"}` + "\n\n" + `data: {"t":4}` + "\n\n"
			},
		},
	})
}

// taker is an agent whose runs note nothing when they are taken.
type taker struct{ turn.Agent }

func (a taker) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	input.Take = func() error { return nil }
	return a.Agent.Run(ctx, input, emit)
}

// TestOurTools lets the agent call a tool of Parley during its run. A stream that begins again repeats the call under
// its id.
func TestOurTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := `{"t":3,"m":"look","ts":1000,"d":{"tool":"look","tool_event":"started","tool_use_id":"c1","arguments":{"at":1}}}`
		s := &server{signal: func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, scripts: []func(http.ResponseWriter){
			streams(call, `{"t":3,"m":"other","ts":1100,"d":{"tool":"other","tool_event":"started","tool_use_id":"c2"}}`),
			streams(call, `{"t":7,"m":"hi","ts":2000}`, `{"t":4,"ts":2000}`),
		}}
		var calls []string
		_, _, err := run(t, s, func(in *assembly.Input) {
			in.Tools = []runinput.Tool{{Name: "look", Parameters: json.RawMessage(`{}`)}}
			in.Call = func(_ context.Context, c runinput.Call) (string, error) {
				calls = append(calls, c.ID+" "+c.Name+" "+c.Arguments)
				return `{"seen":true}`, nil
			}
		})
		if diff := cmp.Diff([]string{`c1 look {"at":1}`}, calls); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		want := []string{`{"data":{"message":"{\"result\":{\"seen\":true},\"tool\":\"look\",\"tool_use_id\":\"c1\"}","client_message_id":"tool-c1"},"signal":"UserInput"}`}
		if diff := cmp.Diff(want, s.signals); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]any{map[string]any{"name": "look", "description": "", "parameters": map[string]any{}}}, s.posts[0]["tools"]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestARefusedResult checks that a run goes on whose server does not take the result of a call.
func TestARefusedResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{signal: func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, scripts: []func(http.ResponseWriter){streams(
			`{"t":3,"m":"look","ts":1000,"d":{"tool":"look","tool_event":"started","tool_use_id":"c1"}}`, `{"t":7,"m":"hi","ts":2000}`, `{"t":4,"ts":2000}`,
		)}}
		got, _, err := run(t, s, func(in *assembly.Input) {
			in.Tools = []runinput.Tool{{Name: "look"}}
			in.Call = func(context.Context, runinput.Call) (string, error) { return `{}`, nil }
		})
		if err != nil || len(got) != 4 || !strings.HasPrefix(got[1], "WARNING The agent did not take the result of look: ") || got[2] != "ANSWER hi" {
			t.Errorf("%v, %q", err, got)
		}
	})
}
