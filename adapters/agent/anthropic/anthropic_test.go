package anthropic_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/anthropic"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/stream"
)

func newAgent(address string, config remote.Config, transport http.RoundTripper) turn.Agent {
	return anthropic.New(anthropic.Config{
		BaseURL: address, APIKey: secret.New(agenttest.Canary), Model: "claude", MaxTokens: 100, Config: config, Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures(),
	}, nil, transport)
}

// events returns an event stream.
func events(bodies ...string) string {
	var b strings.Builder
	for _, body := range bodies {
		b.WriteString("data: " + body + "\n\n")
	}
	return b.String()
}

const (
	start = `{"type":"message_start","message":{"id":"x","usage":{"input_tokens":3,"output_tokens":1}}}`
	block = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	one   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße, "}}`
	two   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Olivia"}}`
	end   = `{"type":"content_block_stop","index":0}`
	delta = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`
	stop  = `{"type":"message_stop"}`
)

func TestMisbehavingServers(t *testing.T) {
	agenttest.Test(t, agenttest.Protocol{
		New: newAgent, Text: "Grüße, Olivia",
		Answer:    events(start, `{"type":"ping"}`, block, one, two, end, delta, stop),
		Beginning: events(start, block, one),
		Say: func(pieces ...string) string {
			bodies := []string{start, block}
			for _, piece := range pieces {
				quoted, _ := json.Marshal(piece)
				bodies = append(bodies, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(quoted)+`}}`)
			}
			return events(append(bodies, end, delta, stop)...)
		},
		Grows: map[string]func(n int) string{
			"blocks": func(n int) string {
				return events(append(append([]string{start}, slices.Repeat([]string{block, one, end}, n)...), delta, stop)...)
			},
			"parts of a thought": func(n int) string {
				bodies := []string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`}
				bodies = append(bodies, slices.Repeat([]string{`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"` + strings.Repeat("x", 100) + `"}}`}, n)...)
				return events(append(bodies, end, block, one, end, delta, stop)...)
			},
		},
	})
}

func run(t *testing.T, bodies ...string) ([]stream.Message, error) {
	t.Helper()
	address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(bodies...)) })
	return agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Hello())
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []string
		want []stream.Message // without chunks and usage
	}{
		{"two blocks", []string{block, one, end, `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Bye"}}`, end},
			[]stream.Message{{Type: stream.Answer, Text: "Grüße, Bye"}}},
		{"another block between them", []string{block, one, end, `{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","content":[]}}`, end, block, two, end},
			[]stream.Message{{Type: stream.Answer, Text: "Grüße, \n\nOlivia"}}},
		{"thinking", []string{`{"type":"content_block_start","content_block":{"type":"thinking"}}`, `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"Hm."}}`, `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"s"}}`, end, block, two, end},
			[]stream.Message{{Type: stream.Thought, Text: "Hm."}, {Type: stream.Answer, Text: "Olivia"}}},
		{"a tool call", []string{block, one, end, `{"type":"content_block_start","content_block":{"type":"tool_use","id":"c","name":"find"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}`, end},
			[]stream.Message{{Type: stream.Update, Text: "find"}, {Type: stream.Answer, Text: "Grüße, "}}},
		{"an unknown event", []string{`{"type":"sparkle"}`, block, two, end}, []stream.Message{{Type: stream.Answer, Text: "Olivia"}}},
		{"a length limit", []string{block, two, end, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`}, []stream.Message{
			{Type: stream.Warning, Text: "The answer ends here because it reached the model's length limit."},
			{Type: stream.Answer, Text: "Olivia\n\n(The answer ends here because it reached the model's length limit.)"}}},
	} {
		emitted, err := run(t, append(append([]string{start}, c.in...), stop)...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []stream.Message
		for _, m := range emitted {
			if m.Type != stream.StreamingChunk {
				got = append(got, m)
			}
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(stream.Message{}, "Time", "Details", "ActivityID")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		in        []string
		permanent bool
		want      string
	}{
		{[]string{start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, false, "the stream reports: Overloaded"},
		{[]string{start, delta, stop}, false, `no text (stop_reason "end_turn")`},
		{[]string{start, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`, stop}, true, `no text (stop_reason "refusal")`},
		{[]string{start, `{"type":"content_block_start","content_block":{"type":"tool_use","id":"c","name":"find"}}`, end, stop}, false, `the tool "find"`},
		{[]string{start, `{"error":{"message":"gone","code":"400"}}`}, true, "the stream reports: gone"},
		{[]string{`{}`}, false, "without a type"},
	} {
		_, err := run(t, c.in...)
		fault, ok := err.(*remote.Error)
		if !ok || fault.Permanent != c.permanent || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

// TestAMessageInOnePiece checks a server that does not stream.
func TestAMessageInOnePiece(t *testing.T) {
	address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		agenttest.Write(w, `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"One, "},{"type":"text","text":"two."},
			{"type":"server_tool_use","id":"c","name":"find","input":{"q":1}},{"type":"text","text":"Three."}],"stop_reason":"max_tokens","usage":{"output_tokens":9}}`)
	})
	emitted, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Hello())
	if err != nil {
		t.Fatal(err)
	}
	const early = "The answer ends here because it reached the model's length limit."
	want := []stream.Message{
		{Type: stream.Thought, Text: "Hm."},
		{Type: stream.Update, Text: "find", Details: []byte(`{"arguments":"{\"q\":1}","tool":"find","tool_event":"started","tool_use_id":"c"}`)},
		{Type: stream.Warning, Text: early},
		{Type: stream.Answer, Text: "One, two.\n\nThree.\n\n(" + early + ")", Details: []byte(`{"usage":{"output_tokens":9}}`)},
	}
	got := slices.DeleteFunc(emitted, func(m stream.Message) bool { return m.Type == stream.StreamingChunk })
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(stream.Message{}, "Time", "ActivityID")); diff != "" {
		t.Error(diff)
	}
}

func TestUsageIsAKeyOfTheReply(t *testing.T) {
	emitted, err := run(t, start, block, one, end, delta, stop)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(emitted[len(emitted)-1].Details), `{"usage":{"input_tokens":3,"output_tokens":9}}`; got != want {
		t.Errorf("details %s, want %s", got, want)
	}
}

func TestRolesAlternate(t *testing.T) {
	var got struct {
		Model, System string
		MaxTokens     int `json:"max_tokens"`
		Messages      []struct{ Role, Content string }
	}
	var header http.Header
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		agenttest.Stream(w, events(start, block, one, end, stop))
	})
	message := func(role assembly.Role, text string) assembly.Message {
		return assembly.Message{Role: role, Parts: []assembly.Part{{Text: text}}}
	}
	input := agenttest.Hello()
	input.Messages = []assembly.Message{
		message("assistant", "before all"), message("user", "[A]: one"), message("assistant", " \n"), message("system", "- context"),
		message("user", "[B]: two"), message("assistant", "first"), message("assistant", "second"), message("user", "[A]: three"),
	}
	config := remote.DefaultConfig()
	config.SystemPrompt = "Be brief."
	if _, err := agenttest.Run(t.Context(), newAgent(address, config, http.DefaultTransport), input); err != nil {
		t.Fatal(err)
	}
	want := []struct{ Role, Content string }{
		{"user", "[A]: one\n- context\n[B]: two"}, {"assistant", "first\n\nsecond"}, {"user", "[A]: three"},
	}
	if diff := cmp.Diff(want, got.Messages); diff != "" || got.System != "Be brief." || got.Model != "claude" || got.MaxTokens != 100 {
		t.Errorf("%+v\n%s", got, diff)
	}
	if header.Get("X-Api-Key") != agenttest.Canary || header.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("headers %v", header)
	}
}

// TestImagesAreBlocks checks a message with an image, and that other files are named.
func TestImagesAreBlocks(t *testing.T) {
	var got struct{ Messages []any }
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		agenttest.Stream(w, events(start, block, one, end, stop))
	})
	input, files := agenttest.Looks()
	type object = map[string]any
	for _, c := range []struct {
		documents []string
		want      object
	}{
		{nil, object{"type": "text", "text": "(file: b.pdf, application/pdf, 8 B)"}},
		{[]string{"pdf"}, object{"type": "document", "title": "b.pdf", "source": object{"type": "base64", "media_type": "application/pdf", "data": base64.StdEncoding.EncodeToString([]byte("%PDF-1.7"))}}},
	} {
		config := anthropic.DefaultConfig()
		config.BaseURL, config.Model, config.Types = address, "claude", c.documents
		if _, err := agenttest.Run(t.Context(), anthropic.New(config, files, http.DefaultTransport), input); err != nil {
			t.Fatal(err)
		}
		want := []any{object{"role": "user", "content": []any{
			object{"type": "text", "text": "[Olivia]: hi"},
			object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString([]byte(agenttest.PNG))}},
			c.want,
		}}}
		if diff := cmp.Diff(want, got.Messages); diff != "" {
			t.Error(diff)
		}
	}
}

// TestUsageIsMeasured checks that the daemon learns the counts and the reason of the end, also of an empty answer.
func TestUsageIsMeasured(t *testing.T) {
	const cached = `{"type":"message_start","message":{"id":"x","usage":{"input_tokens":3,"cache_read_input_tokens":40,"output_tokens":1}}}`
	for _, bodies := range [][]string{{cached, block, one, end, delta, stop}, {cached, delta, stop}} {
		var got []assembly.Usage
		input := agenttest.Hello()
		input.Measure = func(u assembly.Usage) { got = append(got, u) }
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(bodies...)) })
		_, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), input)
		if want := []assembly.Usage{{Finish: "end_turn", TokensIn: 43, TokensOut: 9}}; !cmp.Equal(got, want) {
			t.Errorf("measured %v with error %v, want %v", got, err, want)
		}
	}
}
