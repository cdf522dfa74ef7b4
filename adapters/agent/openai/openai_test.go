package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/stream"
)

func TestAnswerFollowsChunks(t *testing.T) {
	agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
		speak(w).raw(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}` + "\n\n").
			delta("Grüße, ").delta("Olivia").delta("! 🙂").finish("stop").
			raw(`data: {"choices":[],"usage":{"total_tokens":12}}` + "\n\n").done()
	})
	emitted, err := run(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	const whole = "Grüße, Olivia! 🙂"
	chunks := of(emitted, stream.StreamingChunk)
	if got := strings.Join(texts(chunks), ""); got != whole {
		t.Errorf("the text of the chunks is %q", got)
	}
	for i, m := range emitted {
		if m.ActivityID != "run-1/answer" || m.Time.IsZero() {
			t.Errorf("message %d has activity %q, time %v", i, m.ActivityID, m.Time)
		}
		if last := i == len(chunks)-1; m.Final != last {
			t.Errorf("message %d of %d: Final is %v", i, len(emitted), m.Final)
		}
	}
	want := []stream.Message{{Type: stream.Answer, Text: whole, ActivityID: "run-1/answer", Details: []byte(`{"usage":{"total_tokens":12}}`)}}
	if diff := cmp.Diff(want, emitted[len(chunks):], cmpopts.IgnoreFields(stream.Message{}, "Time")); diff != "" {
		t.Error(diff)
	}
}

// TestCharactersInHalves checks characters whose UTF-16 halves come in two events.
func TestCharactersInHalves(t *testing.T) {
	agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
		s := speak(w)
		for _, content := range []string{`a\ud83d`, `\ude42b\\`, `ud83d\ud83d`, `c`, `\uD83D`} {
			s.raw(`data: {"choices":[{"delta":{"content":"` + content + `"}}]}` + "\n\n")
		}
		s.done()
	})
	emitted, err := run(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a🙂b\\ud83d\uFFFDc"}, texts(of(emitted, stream.Answer))); diff != "" {
		t.Error(diff)
	}
}

// TestReasoningAndToolCalls checks the messages beside the answer.
func TestReasoningAndToolCalls(t *testing.T) {
	agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
		s := speak(w)
		for _, delta := range []string{
			`{"reasoning_content":"The user "}`, `{"reasoning":"greets."}`, `{"content":"hi"}`,
			`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"find","arguments":"{\"q\":"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`,
		} {
			s.raw(`data: {"choices":[{"delta":` + delta + `}]}` + "\n\n")
		}
		s.finish("tool_calls").done()
	})
	emitted, err := run(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	want := []stream.Message{
		{Type: stream.Thought, Text: "The user greets.", ActivityID: "run-1/thought-1"},
		{Type: stream.StreamingChunk, Text: "hi", ActivityID: "run-1/answer"},
		{Type: stream.Update, Text: "find", Details: []byte(`{"arguments":"{\"q\":1}","tool":"find","tool_event":"started","tool_use_id":"c1"}`)},
		{Type: stream.StreamingChunk, Final: true, ActivityID: "run-1/answer"},
		{Type: stream.Answer, Text: "hi", ActivityID: "run-1/answer"},
	}
	if diff := cmp.Diff(want, emitted, cmpopts.IgnoreFields(stream.Message{}, "Time")); diff != "" {
		t.Error(diff)
	}
}

// TestStreamFormats checks the variants that the event stream format allows, and the variants
// that servers write.
func TestStreamFormats(t *testing.T) {
	const hi, stop = `{"choices":[{"delta":{"content":"hi"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for name, body := range map[string]string{
		"no space":           "data:" + hi + "\n\ndata:[DONE]\n\n",
		"CRLF":               "data: " + hi + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"comments":           ": PROCESSING\n\n: x\ndata: " + hi + "\n\n:\n\ndata: [DONE]\n\n",
		"other fields":       "event: chunk\nid: 1\nretry: 5\ndata: " + hi + "\n\nevent: x\n\ndata: [DONE]\n\n",
		"several data lines": "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n",
		"byte order mark":    "\ufeffdata: " + hi + "\n\ndata: [DONE]\n\n",
		"empty data":         "data\n\ndata:\n\ndata: " + hi + "\n\ndata: [DONE]\n\n",
		"no last line end":   "data: " + hi + "\n\ndata: [DONE]",
		"no DONE":            "data: " + hi + "\n\ndata: " + stop + "\n\n",
		"no finish_reason":   "data: " + hi + "\n\ndata: [DONE]\n\n",
		"noise after DONE":   "data: " + hi + "\n\ndata: [DONE]\n\ndata: noise\n\n",
		"all in one":         `data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"error":null}` + "\n\n",
		"two choices":        `data: {"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"hi"}}]}` + "\n\ndata: [DONE]\n\n",
		"reasoning":          `data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}` + "\n\ndata: " + hi + "\n\ndata: [DONE]\n\n",
		"two objects in one": "data: " + hi + "\ndata: " + stop + "\ndata: [DONE]\n\n",
		"no error":           `data: {"error":{},"choices":[{"delta":{"content":"hi"}}]}` + "\n\ndata: [DONE]\n\n",
		"a list":             `data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"h"},{"type":"text","text":"i"}]}}]}` + "\n\ndata: [DONE]\n\n",
		"a refusal":          `data: {"choices":[{"delta":{"content":null,"refusal":"hi"}}]}` + "\n\ndata: [DONE]\n\n",
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) { speak(w).raw(body) })
		emitted, err := run(t.Context(), agent)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]string{"hi"}, texts(of(emitted, stream.Answer))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestServersThatDoNotStream checks servers that answer with one completion.
func TestServersThatDoNotStream(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json":  `{"choices":[{"message":{"content":"<think>Hm.</think>hi","tool_calls":[{"id":"c1","function":{"name":"find","arguments":"{}"}},{"id":"c2","function":{"name":"look","arguments":{}}}]},"finish_reason":"stop"}],"usage":{"total_tokens":7}}`,
		"text/event-stream": `{"choices":[{"message":{"reasoning":"Hm.","content":"hi","tool_calls":[{"function":{"name":"find"}},{"function":{"name":"look"}}]}}],"usage":{"total_tokens":7}}`,
		"text/plain":        "\n" + `{"choices":[{"message":{"reasoning_content":"Hm.","content":[{"type":"text","text":"hi"}],"tool_calls":[{"function":{"name":"find"}},{"function":{"name":"look"}}]}}],"usage":{"total_tokens":7},"error":null}`,
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			speaker{w}.raw(body)
		})
		emitted, err := run(t.Context(), agent)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		got := append(texts(of(emitted, stream.Thought)), texts(of(emitted, stream.Update))...)
		if diff := cmp.Diff([]string{"Hm.", "find", "look", "hi"}, append(got, texts(of(emitted, stream.Answer))...)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		if details := emitted[len(emitted)-1].Details; string(details) != `{"usage":{"total_tokens":7}}` {
			t.Errorf("%s: %s", kind, details)
		}
	}
}

// TestToolCallsAreBounded checks that the arguments of a tool call in many parts are bounded.
func TestToolCallsAreBounded(t *testing.T) {
	settings := config("http://model.test")
	settings.MaxBytes = 1000
	part := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"find","arguments":"` + strings.Repeat("x", 100) + `"}}]}}]}` + "\n\n"
	_, err := run(t.Context(), openai.New(settings, nil, roundTripper(func(*http.Request) (*http.Response, error) {
		return agenttest.Response("text/event-stream", strings.Repeat(part, 20)), nil
	})))
	if f := fault(t, err); !f.Flood() {
		t.Error(err)
	}
}

func TestTextIsSanitized(t *testing.T) {
	agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
		speak(w).raw("data: {\"choices\":[{\"delta\":{\"content\":\"a\\u0000b\xff\\ud83d\"}}]}\n\n").done()
	})
	emitted, err := run(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a\uFFFDb\uFFFD"}, texts(of(emitted, stream.Answer))); diff != "" {
		t.Error(diff)
	}
}

func TestIncompleteAnswerHasWarning(t *testing.T) {
	for _, reason := range []string{"length", "content_filter"} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) { speak(w).delta("It was a").finish(reason).done() })
		emitted, err := run(t.Context(), agent)
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		answer := emitted[len(emitted)-1]
		if len(of(emitted, stream.Warning)) != 1 || answer.Type != stream.Answer || !strings.HasPrefix(answer.Text, "It was a\n\n(The answer ends here") {
			t.Errorf("%s: %v", reason, emitted)
		}
	}
}

func TestRunEndsWhenEmitFails(t *testing.T) {
	gone := make(chan struct{})
	agent := model(t, func(w http.ResponseWriter, r *http.Request) {
		speak(w).delta("one")
		<-r.Context().Done()
		close(gone)
	})
	full := errors.New("no room")
	calls := 0
	err := agent.Run(t.Context(), hello(), func(stream.Message) error { calls++; return full })
	if err != full || calls != 1 {
		t.Errorf("Run() = %v after %d calls of emit", err, calls)
	}
	<-gone
}

func TestConnectionsAreReused(t *testing.T) {
	peers := map[string]bool{}
	agent := model(t, func(w http.ResponseWriter, r *http.Request) {
		peers[r.RemoteAddr] = true
		speak(w).delta("hi").finish("stop").done()
	})
	for range 3 {
		if _, err := run(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
	}
	if len(peers) != 1 {
		t.Errorf("three runs used %d connections", len(peers))
	}
}

func fault(t *testing.T, err error) *remote.Error {
	t.Helper()
	found, ok := errors.AsType[*remote.Error](err)
	if !ok {
		t.Fatalf("the error is not an *remote.Error: %v", err)
	}
	if found.Temporary() == found.Permanent {
		t.Errorf("Temporary and Permanent agree: %v", err)
	}
	return found
}

func TestMisbehavingServers(t *testing.T) {
	one, two := `data: {"choices":[{"delta":{"content":"Grüße, "}}]}`+"\n\n", `data: {"choices":[{"delta":{"content":"Olivia"}}]}`+"\n\n"
	agenttest.Test(t, agenttest.Protocol{
		New: func(address string, bounds remote.Config, transport http.RoundTripper) turn.Agent {
			settings := config(address)
			settings.Config, settings.APIKey = bounds, secret.New(agenttest.Canary)
			return openai.New(settings, nil, transport)
		},
		Text: "Grüße, Olivia", Answer: one + two + "data: [DONE]\n\n", Beginning: one,
		Say: func(pieces ...string) string {
			var b strings.Builder
			for _, piece := range pieces {
				quoted, _ := json.Marshal(piece)
				fmt.Fprintf(&b, `data: {"choices":[{"delta":{"content":%s}}]}`+"\n\n", quoted)
			}
			return b.String() + "data: [DONE]\n\n"
		},
		Grows: map[string]func(n int) string{
			"arguments of a call": func(n int) string {
				part := `{"index":0,"function":{"arguments":"` + strings.Repeat("x", 100) + `"}}`
				return `data: {"choices":[{"delta":{"tool_calls":[` + strings.TrimSuffix(strings.Repeat(part+",", n), ",") + `]}}]}` + "\n\n" + one + "data: [DONE]\n\n"
			},
			"calls": func(n int) string {
				var b strings.Builder
				for i := range n {
					fmt.Fprintf(&b, `data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"c%[1]d","function":{"name":"f","arguments":"{}"}}]}}]}`+"\n\n", i)
				}
				return b.String() + one + "data: [DONE]\n\n"
			},
		},
	})
}

// TestUsageIsMeasured checks that the daemon learns the counts and the reason of the end.
func TestUsageIsMeasured(t *testing.T) {
	for usage, want := range map[string]assembly.Usage{
		`{"prompt_tokens":130,"completion_tokens":45,"total_tokens":175}`:                {Finish: "stop", TokensIn: 130, TokensOut: 45},
		`{"prompt_tokens":10,"completion_tokens":2,"input_tokens":10,"output_tokens":2}`: {Finish: "stop", TokensIn: 10, TokensOut: 2}, // new-api
		`{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2}`:              {Finish: "stop", TokensIn: 15, TokensOut: 2},
		`{"prompt_tokens":"many","completion_tokens":-1}`:                                {Finish: "stop"},
		`[1]`: {Finish: "stop"},
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
			speak(w).delta("hi").finish("stop").raw(`data: {"choices":[],"usage":` + usage + `}` + "\n\n").done()
		})
		var got assembly.Usage
		input := hello()
		input.Measure = func(u assembly.Usage) { got = u }
		if err := agent.Run(t.Context(), input, func(stream.Message) error { return nil }); err != nil || got != want {
			t.Errorf("%s: measured %v with error %v, want %v", usage, got, err, want)
		}
	}
}
