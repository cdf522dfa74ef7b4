package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// model is an agent that speaks OpenAI's chat completions and answers when its
// test says so.
type model struct {
	*httptest.Server
	asked chan *ask
}

// ask is one request to the model.
type ask struct {
	run      string // the Idempotency-Key
	messages []spoken
	gone     <-chan struct{} // closed when the daemon has hung up
	reply    chan func(http.ResponseWriter)
}

// spoken is one message of a request.
type spoken struct{ Role, Content string }

func newModel(t *testing.T) *model {
	m := &model{asked: make(chan *ask, 16)}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// ServeHTTP hands the request to the test and answers as it says.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // only then the server notices that the daemon hangs up
	var request struct{ Messages []spoken }
	if err := json.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+apiKey {
		http.Error(w, "not a chat completion", http.StatusBadRequest)
		return
	}
	a := &ask{run: r.Header.Get("Idempotency-Key"), messages: request.Messages, gone: r.Context().Done(), reply: make(chan func(http.ResponseWriter))}
	select {
	case m.asked <- a:
	case <-a.gone:
		return
	}
	select {
	case reply := <-a.reply:
		reply(w)
	case <-a.gone:
	}
}

// ask waits for the next request.
func (h *house) ask() *ask {
	h.t.Helper()
	select {
	case a := <-h.model.asked:
		return a
	case <-h.ctx.Done():
		h.t.Fatalf("the agent was not asked\n%s%s", h.state(), h.log)
		return nil
	}
}

// asks lets the model answer the next request.
func (h *house) asks(reply func(http.ResponseWriter)) *ask {
	h.t.Helper()
	a := h.ask()
	h.answer(a, reply)
	return a
}

func (h *house) answer(a *ask, reply func(http.ResponseWriter)) {
	h.t.Helper()
	select {
	case a.reply <- reply:
	case <-a.gone:
		h.t.Fatalf("the daemon hung up on the agent\n%s", h.log)
	case <-h.ctx.Done():
		h.t.Fatal("the agent's answer was not taken")
	}
}

// hangsUp waits until the daemon has given up a request.
func (h *house) hangsUp(a *ask) {
	h.t.Helper()
	select {
	case <-a.gone:
	case <-h.ctx.Done():
		h.t.Fatalf("the daemon still waits for the agent\n%s", h.log)
	}
}

// says streams a text to its end.
func says(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for word := range strings.SplitAfterSeq(text, " ") {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n", quoted(word))
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// fails answers with a status, and tells not to ask again soon.
func fails(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		http.Error(w, `{"error":{"message":"no"}}`, status)
	}
}

// breaks begins a stream that is none.
func breaks(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half of\"}}]}\n\ndata: {\"choices\":\n\n")
}
