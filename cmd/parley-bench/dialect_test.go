package main

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
	"parley/assembly/stream"
	agent "parley/assembly/turn"
	"parley/config/secret"
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
	for _, d := range dialects() {
		answers := shortAnswers(0)
		answers.dialect = d
		l := newLedger()
		b := newTestBench(t)
		m := b.startModel(l, answers)
		input := agenttest.Hello()
		input.Take = func() error { return nil }
		input.Messages[0].Parts[0].Text = "[Olivia]: " + mark(7, 1, 1)
		emitted, err := agenttest.Run(t.Context(), agents[d.kind](m.url+"/parley-0"), input)
		if err != nil {
			t.Errorf("%s: %v", d.kind, err)
		}
		want := strings.Join(answers.answer(7, 1), "")
		if diff := cmp.Diff([]string{want}, agenttest.Texts(emitted, stream.Answer)); diff != "" {
			t.Errorf("%s: %s", d.kind, diff)
		}
		if err := b.close(); err != nil { // it waits for the server
			t.Error(err)
		}
		if len(l.requests) != 1 || l.requests[0].id != 7 || l.requests[0].run != input.RunID {
			t.Errorf("%s: recorded %+v", d.kind, l.requests)
		}
	}
}

// TestAskedTwice checks which repeated requests have a reason.
func TestAskedTwice(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	ask := func(id int, run string, arrived, followed int64) *request {
		a := &request{id: id, run: run, arrived: at(arrived)}
		if followed > 0 {
			a.followed = at(followed)
		}
		return a
	}
	deaths := []death{{at(10), at(12)}}
	for name, c := range map[string]struct {
		asks []*request
		want int
	}{
		"once each":            {[]*request{ask(1, "a", 1, 0), ask(2, "b", 2, 0)}, 0},
		"over a death":         {[]*request{ask(1, "a", 9, 0), ask(1, "a", 13, 0)}, 0},
		"during a death":       {[]*request{ask(1, "a", 11, 0), ask(1, "a", 13, 0)}, 0},
		"without a death":      {[]*request{ask(1, "a", 13, 0), ask(1, "a", 14, 0)}, 1},
		"in two runs":          {[]*request{ask(1, "a", 9, 0), ask(1, "b", 13, 0)}, 1},
		"after its stream":     {[]*request{ask(1, "a", 8, 9), ask(1, "a", 13, 0)}, 1},
		"three times, wrongly": {[]*request{ask(1, "a", 9, 0), ask(1, "a", 13, 0), ask(1, "a", 14, 0)}, 1},
	} {
		l := newLedger()
		l.requests = c.asks
		if faults, _ := l.askedTwice(deaths); len(faults) != c.want {
			t.Errorf("%s: %q", name, faults)
		}
	}
}
