package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// dialect is the protocol of a kind of agent, as its server speaks it. In the texts, %s is the
// place of a value.
type dialect struct {
	kind     string
	settings string // beside id and kind; %s is the server's address
	begin    string // the beginning of an answer's event stream
	delta    string // the event of one piece, a JSON string
	end      string // the end of the stream; %s is the whole text as a JSON string, if it occurs
	later    bool   // the answer comes by a GET after the POST
}

// dialects are the protocols of all kinds that have a server. The first is the default.
func dialects() []dialect {
	event := func(body string) string { return "data: " + body + "\n\n" }
	return []dialect{{
		kind: "openai", settings: `base_url: "%s/v1", model: fake`,
		delta: event(`{"choices":[{"index":0,"delta":{"content":%s}}]}`),
		end:   event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) + event("[DONE]"),
	}, {
		kind: "anthropic", settings: `base_url: "%s", api_key: bench, model: fake`,
		begin: event(`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`) + event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
		delta: event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`),
		end:   event(`{"type":"content_block_stop","index":0}`) + event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`) + event(`{"type":"message_stop"}`),
	}, {
		kind: "agui", settings: `url: "%s/agent"`,
		begin: event(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`) + event(`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`),
		delta: event(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":%s}`),
		end:   event(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`) + event(`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`),
	}, {
		kind: "webhook", settings: `url: "%s/hook", secret: a-secret-of-the-bench-itself`,
		delta: event(`{"content":%s}`),
		end:   event("[DONE]"),
	}, {
		kind: "run-api", settings: `base_url: "%s", token: bench, preview: tokens`, later: true,
		delta: event(`{"t":12,"m":%s,"i":"answer"}`),
		end:   event(`{"t":7,"m":%s,"i":"answer"}`) + event(`{"t":4}`),
	}}
}

// with puts a value into a text.
func with(text, value string) string { return strings.ReplaceAll(text, "%s", value) }

// quote returns a text as a JSON string.
func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return string(quoted)
}

// follow answers the GET of a run's stream.
func (m *model) follow(w http.ResponseWriter, r *http.Request) {
	run := r.PathValue("run")
	last := m.ledger.lastRequest(func(r *request) bool { return r.run == run })
	if last == nil {
		http.Error(w, "no such run", http.StatusNotFound)
		return
	}
	m.ledger.change(func() {
		if last.followed.IsZero() {
			last.followed = time.Now()
		}
	})
	m.stream(w, r, last)
}

// death is the time between the decision to kill a daemon and its next start. A request that
// arrives meanwhile is one of the old process.
type death struct{ from, to time.Time }

// askedTwice describes the runs that were asked again without a reason: in the time between
// two POSTs of a run the daemon must have died, and after the run's stream was asked for there
// must be no second POST. A message must have one run.
func (l *ledger) askedTwice(deaths []death) (faults []string, repeated int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs, last := map[int]string{}, map[string]*request{}
	for _, a := range l.requests {
		if run, ok := runs[a.id]; ok && run != a.run {
			faults = append(faults, fmt.Sprintf("m%d was asked in the runs %s and %s", a.id, run, a.run))
		}
		runs[a.id] = a.run
		if before := last[a.run]; before != nil {
			repeated++
			died := func(d death) bool { return before.arrived.Before(d.to) && a.arrived.After(d.from) }
			if !slices.ContainsFunc(deaths, died) || !before.followed.IsZero() && before.followed.Before(a.arrived) {
				faults = append(faults, fmt.Sprintf("the run %s was asked again %v later", a.run, a.arrived.Sub(before.arrived)))
			}
		}
		last[a.run] = a
	}
	return faults, repeated
}
