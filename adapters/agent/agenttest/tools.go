package agenttest

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
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
