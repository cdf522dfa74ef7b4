package trial

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/agui"
	"parley/adapters/agent/anthropic"
	"parley/adapters/agent/openai"
	"parley/adapters/agent/remote"
	"parley/adapters/agent/runapi"
	"parley/adapters/agent/webhook"
	agent "parley/assembly/turn"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rigtest"
	"parley/config/secret"
	"parley/ingest/stream"
)

// TestEachKindUnderstandsItsDialect asks the fake server of each kind once.
func TestEachKindUnderstandsItsDialect(t *testing.T) {
	config, key := remote.DefaultConfig(), secret.New("bench")
	agents := map[string]func(url string) agent.Agent{
		"openai": func(url string) agent.Agent {
			return openai.New(openai.Config{BaseURL: url + "/v1", Model: "fake", Config: config}, nil, http.DefaultTransport)
		},
		"anthropic": func(url string) agent.Agent {
			return anthropic.New(anthropic.Config{BaseURL: url, APIKey: key, Model: "fake", MaxTokens: 1, Config: config}, nil, http.DefaultTransport)
		},
		"agui": func(url string) agent.Agent {
			return agui.New(agui.Config{URL: url + "/agent", Config: config}, nil, http.DefaultTransport)
		},
		"webhook": func(url string) agent.Agent {
			return webhook.New(webhook.Config{URL: url + "/hook", Secret: key, Config: config}, nil, http.DefaultTransport, time.Now)
		},
		"run-api": func(url string) agent.Agent {
			return runapi.New(runapi.Config{BaseURL: url, Token: key, Config: config}, nil, http.DefaultTransport)
		},
	}
	for _, d := range Dialects() {
		answers := ShortAnswers(0)
		answers.Dialect = d
		l := ledger.New()
		b := rigtest.NewBench(t)
		m := StartModel(b, l, answers)
		input := agenttest.Hello()
		input.Take = func() error { return nil }
		input.Messages[0].Parts[0].Text = "[Olivia]: " + ledger.Mark(7, 1, 1)
		emitted, err := agenttest.Run(t.Context(), agents[d.Kind](m.url+"/parley-0"), input)
		if err != nil {
			t.Errorf("%s: %v", d.Kind, err)
		}
		want := strings.Join(answers.Answer(7, 1), "")
		if diff := cmp.Diff([]string{want}, agenttest.Texts(emitted, stream.Answer)); diff != "" {
			t.Errorf("%s: %s", d.Kind, diff)
		}
		if err := b.Close(); err != nil { // it waits for the server
			t.Error(err)
		}
		if len(l.Requests) != 1 || l.Requests[0].ID != 7 || l.Requests[0].Run != input.RunID {
			t.Errorf("%s: recorded %+v", d.Kind, l.Requests)
		}
	}
}
