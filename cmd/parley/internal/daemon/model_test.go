package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// model is an agent with OpenAI's API for chat completions. Each answer comes from the test. After
// the test, the model refuses every request, so that the daemon can stop.
type model struct {
	*httptest.Server
	key   atomic.Pointer[string] // the Authorization that is accepted
	asked chan *modelRequest
	ended <-chan struct{} // closed when the test ends
}

// modelRequest is one request to the model.
type modelRequest struct {
	run      string // the Idempotency-Key
	place    string // in a trace: the Traceparent
	messages []chatMessage
	tools    []string        // their names
	gone     <-chan struct{} // closed when the daemon hangs up
	reply    chan func(http.ResponseWriter)
}

// chatMessage is one message of a request.
type chatMessage struct{ Role, Content string }

func newModel(t *testing.T) *model {
	m := &model{asked: make(chan *modelRequest, 16), ended: t.Context().Done()}
	m.key.Store(new("Bearer " + apiKey))
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// ServeHTTP passes the request to the test and sends the test's answer.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the server notices a hang-up only after this
	var request struct {
		Messages []chatMessage
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != *m.key.Load() {
		http.Error(w, "not a chat completion", http.StatusBadRequest)
		return
	}
	a := &modelRequest{run: r.Header.Get("Idempotency-Key"), place: r.Header.Get("Traceparent"), messages: request.Messages, gone: r.Context().Done(), reply: make(chan func(http.ResponseWriter))}
	for _, tool := range request.Tools {
		a.tools = append(a.tools, tool.Function.Name)
	}
	select {
	case m.asked <- a:
	case <-a.gone:
	case <-m.ended:
	}
	select {
	case reply := <-a.reply:
		reply(w)
	case <-a.gone:
	case <-m.ended:
		http.Error(w, "the test has ended", http.StatusBadRequest)
	}
}

// nextRequest waits for the next request to the model.
func (h *harness) nextRequest() *modelRequest {
	h.t.Helper()
	select {
	case a := <-h.model.asked:
		return a
	case <-h.ctx.Done():
		h.t.Fatalf("the agent was not asked\n%s%s", h.state(), h.log)
		return nil
	}
}

// answerNext answers the next request to the model.
func (h *harness) answerNext(reply func(http.ResponseWriter)) *modelRequest {
	h.t.Helper()
	a := h.nextRequest()
	h.answer(a, reply)
	return a
}

// answer answers a request to the model.
func (h *harness) answer(a *modelRequest, reply func(http.ResponseWriter)) {
	h.t.Helper()
	select {
	case a.reply <- reply:
	case <-a.gone:
		h.t.Fatalf("the daemon hung up on the agent\n%s", h.log)
	case <-h.ctx.Done():
		h.t.Fatal("the model did not send its answer in time")
	}
}

// awaitHangup waits until the daemon has closed a request.
func (h *harness) awaitHangup(a *modelRequest) {
	h.t.Helper()
	select {
	case <-a.gone:
	case <-h.ctx.Done():
		h.t.Fatalf("the daemon still waits for the agent\n%s", h.log)
	}
}

// replyWith streams a complete text.
func replyWith(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for word := range strings.SplitAfterSeq(text, " ") {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", quoted(word))
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// callTool streams a call of a tool, after words.
func callTool(words, name, arguments string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":%s,"tool_calls":[{"index":0,"id":"c","function":{"name":%q,"arguments":%s}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n", quoted(words), name, quoted(arguments))
	}
}

// failWith answers with a status.
func failWith(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		http.Error(w, `{"error":{"message":"no"}}`, status)
	}
}

// breakStream starts a stream and ends it within an event.
func breakStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half of\"}}]}\n\ndata: {\"choices\":\n\n")
}
