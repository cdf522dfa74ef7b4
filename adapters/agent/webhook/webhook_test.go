package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/adapters/agent/webhook"
	"parley/adapters/httpcall"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/stream"
)

var _, files = agenttest.Looks()

func newAgent(address string, config remote.Config, transport http.RoundTripper) turn.Agent {
	now := func() time.Time { return time.Unix(1700000000, 0) }
	return webhook.New(webhook.Config{URL: address + "/hook", Secret: secret.New(agenttest.Canary), Config: config, Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures()}, files, transport, now)
}

const answer = "data: {\"content\":\"Grüße, \",\"error\":null}\n\ndata: {\"content\":\"Olivia\"}\n\ndata: [DONE]\n\n"

func TestMisbehavingServers(t *testing.T) {
	agenttest.Test(t, agenttest.Protocol{
		Tools: true, New: newAgent, Text: "Grüße, Olivia", Answer: answer, Beginning: "data: {\"content\":\"Grüße, \"}\n\n", Signs: true,
		Say: func(pieces ...string) string {
			var b strings.Builder
			for _, piece := range pieces {
				quoted, _ := json.Marshal(piece)
				b.WriteString(`data: {"content":` + string(quoted) + "}\n\n")
			}
			return b.String() + "data: [DONE]\n\n"
		},
	})
}

func TestRequest(t *testing.T) {
	var got map[string]any
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		want, err := httpcall.Sign(agenttest.Canary, r.Header.Get("X-Parley-Timestamp"), bytes.NewReader(body))
		if err != nil || r.Header.Get("X-Parley-Timestamp") != "1700000000" || r.Header.Get("X-Parley-Signature") != want {
			t.Errorf("headers %v", r.Header)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		agenttest.Stream(w, answer)
	})
	config := remote.DefaultConfig()
	config.SystemPrompt = "Be brief."
	input, _ := agenttest.Looks()
	if _, err := agenttest.Run(t.Context(), newAgent(address, config, http.DefaultTransport), input); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"run_id": "run-1", "thread_id": "5f0c9a4e-8f5e-5c5a-9b5e-0d6f8f3c1a11", "workspace": "acme", "platform": "slack",
		"messages": []any{map[string]any{"role": "system", "content": "Be brief."}, map[string]any{"role": "user", "content": "[Olivia]: hi\n(file: a.png, image/png, 14 B)\n(file: b.pdf, application/pdf, 8 B)"}},
		"message": map[string]any{"id": "m1", "content": "hi", "metadata": map[string]any{"sender_id": "slack:U1"}, "attachments": []any{
			map[string]any{"name": "a.png", "mime_type": "image/png", "size": 14.0, "data": base64.StdEncoding.EncodeToString([]byte(agenttest.PNG))},
			map[string]any{"name": "b.pdf", "mime_type": "application/pdf", "size": 8.0},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestGivenIsSent posts what a client of the run protocol gave for a run.
func TestGivenIsSent(t *testing.T) {
	body := agenttest.Sent(t, func(address string) turn.Agent {
		return newAgent(address, remote.DefaultConfig(), http.DefaultTransport)
	}, func(turn.Agent) assembly.Input {
		input := agenttest.Given()
		input.Given.ParentRunID = "run-0"
		input.Given.More = append(input.Given.More, []byte(`{"id":"s","role":"system","content":"stands before the message"}`), []byte(`{"id":"m3","role":"reasoning","content":"hm"}`))
		return input
	}, answer)
	want := map[string]any{
		"state": map[string]any{"n": 1.0}, "tools": []any{map[string]any{"name": "f", "description": "d", "parameters": map[string]any{}}},
		"context": []any{map[string]any{"description": "page", "value": "home"}}, "forwardedProps": map[string]any{"k": []any{}}, "parentRunId": "run-0",
		"messages": []any{
			map[string]any{"role": "user", "content": "[Olivia]: hi"}, map[string]any{"id": "m2", "role": "tool", "content": "ok", "toolCallId": "c", "x": 1.0},
			map[string]any{"id": "m3", "role": "reasoning", "content": "hm"},
		},
	}
	for key := range want {
		if diff := cmp.Diff(want[key], body[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

// TestShortSecret checks that the length of the secret is counted in characters.
func TestShortSecret(t *testing.T) {
	for length, isShort := range map[int]bool{23: true, 24: false} {
		config := webhook.Config{URL: "https://example.com", Secret: secret.New("e" + strings.Repeat("é", length-1)), Config: remote.DefaultConfig(), Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures()}
		if faults := config.Validate(); isShort != (len(faults) == 1) {
			t.Errorf("%d characters: %v", length, faults)
		}
	}
}

// TestSignature checks the signature of a fixed request.
func TestSignature(t *testing.T) {
	// printf 'v1:1700000000:{}' | openssl dgst -sha256 -hmac 0123456789abcdef01234567
	const want = "v1=ce8734aaedad6e1fc7332a6dafb938f991cada8dbc85ec09be32116e035a2e13"
	if got, err := httpcall.Sign("0123456789abcdef01234567", "1700000000", strings.NewReader("{}")); err != nil || got != want {
		t.Errorf("signature %s, %v; want %s", got, err, want)
	}
}

func TestWholeAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   []stream.Message
		fault  string
	}{
		{200, `{"content":"hi"}`, []stream.Message{{Type: stream.Answer, Text: "hi"}}, ""},
		{201, `{"content":"hi","mood":{"n":null}}`, []stream.Message{{Type: stream.Answer, Text: "hi", Details: []byte(`{"mood":{"n":null}}`)}}, ""},
		{200, `{"content":""}`, []stream.Message{{Type: stream.Answer}}, ""},
		{200, `{"content":null}`, nil, `no text "content"`},
		{200, `{"text":"hi"}`, nil, `no text "content"`},
		{200, `{"content":5}`, nil, `no text "content"`},
		{200, `"hi"`, nil, "not a JSON object"},
		{200, `{"content":"` + strings.Repeat("x", 5<<20) + `"}`, nil, "max_bytes"},
		{202, ``, nil, turn.ErrLater.Error()},
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			agenttest.Write(w, c.body)
		})
		emitted, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Hello())
		var got []stream.Message
		for _, m := range emitted {
			if m.Type != stream.StreamingChunk {
				got = append(got, m)
			}
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(stream.Message{}, "Time", "ActivityID")); diff != "" {
			t.Errorf("%.40s: %s", c.body, diff)
		}
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) || errors.Is(err, turn.ErrLater) != (c.status == 202) {
			t.Errorf("%.40s: %v", c.body, err)
		}
	}
}

// TestThinkingOfALaterAnswer checks an answer that came over the API.
func TestThinkingOfALaterAnswer(t *testing.T) {
	var got []stream.Message
	agent := newAgent("http://agent.test", remote.DefaultConfig(), nil).(turn.AnswersLater)
	err := agent.Later(agenttest.Hello(), stream.Message{Type: stream.Answer, Text: "<think>Hm.</think>\nHi", Details: []byte(`{"mood":1}`)}, func(m stream.Message) error {
		if m.Type != stream.StreamingChunk {
			got = append(got, m)
		}
		return nil
	})
	want := []stream.Message{{Type: stream.Thought, Text: "Hm."}, {Type: stream.Answer, Text: "Hi", Details: []byte(`{"mood":1}`)}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(stream.Message{}, "Time", "ActivityID")); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestStreamedFailures(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"no model"}`:                                "the stream reports: no model",
		`{"error":{"message":"no model","code":400}}`:         "the stream reports: no model",
		`{"content":1}`:                                       `without a text "content"`,
		`{"content":"a"}` + "\n\ndata: {\"content\":\"\\ud83": `without a text "content"`,
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, "data: "+body+"\n\n") })
		_, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Hello())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
