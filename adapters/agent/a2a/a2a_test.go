package a2a_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/agent/a2a"
	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/assembly/turn"
	"parley/config/secret"
)

func newAgent(address string, config remote.Config, transport http.RoundTripper) turn.Agent {
	return a2a.New(a2a.Config{Card: address + "/card", Token: secret.New(agenttest.Canary), Config: config, Reading: remote.DefaultReading()}, nil, transport)
}

// events returns an event stream of results.
func events(results ...string) string {
	var b strings.Builder
	for _, result := range results {
		fmt.Fprintf(&b, "data: {\"jsonrpc\":\"2.0\",\"id\":\"run-1\",\"result\":%s}\n\n", result)
	}
	return b.String()
}

// status returns a change of the status of task t1, with words if they are not empty.
func status(state, words string) string {
	said := ""
	if words != "" {
		said = `,"message":{"kind":"message","role":"agent","messageId":"s-` + state + `","parts":[{"kind":"text","text":` + quoted(words) + `}]}`
	}
	return fmt.Sprintf(`{"kind":"status-update","taskId":"t1","contextId":"c1","final":%v,"status":{"state":%q%s}}`, state != "working" && state != "submitted", state, said)
}

// piece returns a part of an artifact of task t1.
func piece(artifact, parts string, appends bool) string {
	return fmt.Sprintf(`{"kind":"artifact-update","taskId":"t1","contextId":"c1","append":%v,"artifact":{"artifactId":%q,"parts":[%s]}}`, appends, artifact, parts)
}

func text(s string) string { return `{"kind":"text","text":` + quoted(s) + `}` }

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a text
	return string(raw)
}

const begun = `{"kind":"task","id":"t1","contextId":"c1","status":{"state":"submitted"}}`

// cardOf answers a request for a card of a service beside it.
func cardOf(more string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		address := "http://" + r.Host + strings.TrimSuffix(r.URL.Path, "/card") + "/rpc"
		fmt.Fprintf(w, `{"name":"Fake","protocolVersion":"0.3.0","url":%q,"securitySchemes":{"b":{"type":"http","scheme":"bearer"}},"security":[{"b":[]}]%s}`, address, more)
	}
}

const streaming = `,"capabilities":{"streaming":true}`

func TestMisbehavingServers(t *testing.T) {
	agenttest.Test(t, agenttest.Protocol{
		Tools: true, New: newAgent, Text: "Grüße, Olivia", Card: cardOf(streaming),
		Answer:    events(begun, status("working", ""), piece("a", text("Grüße, "), false), piece("a", text("Olivia"), true), status("completed", "")),
		Beginning: events(begun, piece("a", text("Grüße, "), false)),
		Say: func(pieces ...string) string {
			results := []string{begun}
			for i, p := range pieces {
				results = append(results, piece("a", text(p), i > 0))
			}
			return events(append(results, status("completed", ""))...)
		},
		Grows: map[string]func(n int) string{
			"artifacts": func(n int) string {
				results := []string{begun}
				for i := range n {
					results = append(results, piece(fmt.Sprint(i), text("word"), false))
				}
				return events(append(results, status("completed", ""))...)
			},
			"replacements": func(n int) string {
				results := []string{begun}
				for range n {
					results = append(results, piece("a", text("word"), false))
				}
				return events(append(results, status("completed", ""))...)
			},
			"status messages": func(n int) string {
				results := []string{begun}
				for i := range n {
					results = append(results, status("working", fmt.Sprint("step ", i)))
				}
				return events(append(results, status("completed", "Done."))...)
			},
		},
	})
}
