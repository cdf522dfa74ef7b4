package trial

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"parley/cmd/parley-bench/internal/ledger"
)

// Dialect is the protocol of a kind of agent, as its server speaks it. In the texts, %s is the
// place of a value.
type Dialect struct {
	Kind     string
	settings string // beside id and kind; %s is the server's address
	begin    string // the beginning of an answer's event stream
	delta    string // the event of one piece, a JSON string
	end      string // the end of the stream; %s is the whole text as a JSON string, if it occurs
	later    bool   // the answer comes by a GET after the POST
}

// Dialects are the protocols of all kinds that have a server. The first is the default.
func Dialects() []Dialect {
	event := func(body string) string { return "data: " + body + "\n\n" }
	return []Dialect{{
		Kind: "openai", settings: `base_url: "%s/v1", model: fake`,
		// The members beside the text are those of OpenAI's own server.
		delta: event(`{"id":"chatcmpl-CzV8Yd1lX2mQk7pTn4rJw9sBfGh","object":"chat.completion.chunk","created":1764547200,"model":"fake","service_tier":"default","system_fingerprint":"fp_3c5a1e9d27","choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"kZ4v9Qx"}`),
		end: event(`{"id":"chatcmpl-CzV8Yd1lX2mQk7pTn4rJw9sBfGh","object":"chat.completion.chunk","created":1764547200,"model":"fake","service_tier":"default","system_fingerprint":"fp_3c5a1e9d27","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null,"obfuscation":"q7"}`) +
			event("[DONE]"),
	}, {
		Kind: "anthropic", settings: `base_url: "%s", api_key: bench, model: fake`,
		begin: event(`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`) + event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
		delta: "event: content_block_delta\n" + event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`),
		end:   event(`{"type":"content_block_stop","index":0}`) + event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`) + event(`{"type":"message_stop"}`),
	}, {
		Kind: "agui", settings: `url: "%s/agent"`,
		begin: event(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`) + event(`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`),
		delta: event(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":%s}`),
		end:   event(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`) + event(`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`),
	}, {
		Kind: "webhook", settings: `url: "%s/hook", secret: a-secret-of-the-bench-itself`,
		delta: event(`{"content":%s}`),
		end:   event("[DONE]"),
	}, {
		Kind: "run-api", settings: `base_url: "%s", token: bench, preview: tokens`, later: true,
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
func (m *Model) follow(w http.ResponseWriter, r *http.Request) {
	run := r.PathValue("run")
	last := m.Ledger.LastRequest(func(r *ledger.Request) bool { return r.Run == run })
	if last == nil {
		http.Error(w, "no such run", http.StatusNotFound)
		return
	}
	m.Ledger.Change(func() {
		if last.Followed.IsZero() {
			last.Followed = time.Now()
		}
	})
	m.stream(w, r, last)
}
