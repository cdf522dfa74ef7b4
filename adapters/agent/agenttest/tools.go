package agenttest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/stream"
)

// Talks returns the input of a run whose client gave tools, and behind the user's message a call and its
// result, as an agent gets it.
func Talks(t testing.TB, agent turn.TakesGiven, more string) assembly.Input {
	t.Helper()
	input := Hello()
	given, err := runinput.ReadRest([]byte(`{"tools":[{"name":"get weather","description":"d","parameters":{"type":"object","properties":{"city":{}}}},{"name":"f","description":"","parameters":{}}],
		"messages":[{"id":"u","role":"user"},{"id":"a","role":"assistant","content":"Let me see.","toolCalls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
		{"id":"t","role":"tool","content":"ok","toolCallId":"c1"}` + more + `]}`))
	if err == nil {
		input.Given = given
		input.Messages, err = assembly.AddGiven(input.Messages, &given, agent.TakesGiven())
	}
	if err != nil {
		t.Fatal(err)
	}
	return input
}

// Sent returns the JSON of the body of an agent's request, which gets the answer.
func Sent(t testing.TB, create func(address string) turn.Agent, input func(agent turn.Agent) assembly.Input, answer string) (body map[string]any) {
	t.Helper()
	address := Serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		if err != nil {
			t.Error(err)
		}
		Stream(w, answer)
	})
	agent := create(address)
	if _, err := Run(t.Context(), agent, input(agent)); err != nil {
		t.Fatal(err)
	}
	return body
}

// ClientTools are the settings with which a model may call a client's tools.
var ClientTools = remote.ClientTools{ClientTools: remote.FunctionsTools}

// RunToken is the token of the run of Hello.
const RunToken = "parley-run-0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b-c4e1"

// runToken checks that each request has the token of the run, if the agent gets one, and that no error repeats it.
func (p Protocol) runToken(t *testing.T) {
	accepts := p.Accepts
	want := map[bool]string{true: RunToken}[p.Tools]
	check := func(r *http.Request) {
		if got := r.Header.Get(remote.RunTokenHeader); got != want {
			t.Errorf("%s %s has the token %q", r.Method, r.URL.Path, got)
		}
	}
	if accepts != nil {
		p.Accepts = func(w http.ResponseWriter, r *http.Request) { check(r); accepts(w, r) }
	}
	_, _, err := p.run(t, remote.DefaultConfig(), func(w http.ResponseWriter, r *http.Request) {
		check(r)
		http.Error(w, "no "+RunToken, http.StatusForbidden)
	})
	if err == nil || strings.Contains(err.Error(), RunToken) {
		t.Error(err)
	}
}

// Loops lets an agent call Parley's tool look, with the answer called as the server's first, and gives it the result. It
// checks that the words before the call are the last THOUGHT and no answer, and that the second request has an id of its own.
// It returns the bodies of both requests, the second of which gets the answer ended.
func Loops(t testing.TB, create func(address string) turn.Agent, called, ended string) (bodies []map[string]any) {
	t.Helper()
	var keys []string
	address := Serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		bodies, keys = append(bodies, body), append(keys, r.Header.Get("Idempotency-Key"))
		Stream(w, []string{called, ended}[len(bodies)-1])
	})
	agent, input := create(address), Hello()
	input.Tools = []runinput.Tool{{Name: "look", Description: "Looks.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}
	step := assembly.Step{Results: []string{"seen"}}
	input.Called = func(text string, calls []runinput.Call, kept json.RawMessage) {
		step.Text, step.Calls, step.Kept = text, calls, kept
	}
	for ; input.Step < 2; input.Step++ {
		emitted, err := Run(t.Context(), agent, input)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, m := range emitted {
			if m.Type == stream.Thought || m.Type == stream.Answer {
				words = append(words, m.Type.String()+" "+m.Text)
			}
		}
		if want := []string{"THOUGHT Let me look.", "ANSWER hi"}[input.Step]; len(words) == 0 || words[len(words)-1] != want {
			t.Errorf("step %d says %q", input.Step, words)
		}
		if input.Step == 0 {
			if len(step.Calls) != 1 || step.Calls[0].Name != "look" || string(step.Calls[0].Object()) != `{"at":1}` || step.Text != "Let me look." {
				t.Fatalf("called %+v", step)
			}
			input.Messages = assembly.AddStep(input.Messages, 0, step)
		}
	}
	if len(keys) != 2 || keys[0] != "run-1" || keys[1] == keys[0] {
		t.Errorf("the requests have the keys %q", keys)
	}
	return bodies
}
