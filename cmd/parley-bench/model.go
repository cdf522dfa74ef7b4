package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// model is a fake behind an OpenAI-compatible API. Its answer depends only on the mark
// of the last user message.
type model struct {
	behaviour
	ledger *ledger
	failed sync.Map // the runs whose first answer broke off
	url    string
	http   *http.Server
	served sync.WaitGroup
}

// behaviour is the way in which a model answers.
type behaviour struct {
	// duration returns the time that the answer to a message takes.
	duration func(id int) time.Duration
	// answer returns the paragraphs of an answer, one for each post.
	answer func(id, revision int) []string
	// failing is the share of runs whose first answer breaks off.
	failing float64
	// onFirstToken is called just before the first token of an answer; may be nil.
	onFirstToken func(id int)
	// recordInput says that every turn is a single message, and that the ledger records
	// all messages of a request's input.
	recordInput bool
}

// longAnswers come in three paragraphs of one post each, and take 50 to 300 ms.
func longAnswers() behaviour {
	return behaviour{duration: func(id int) time.Duration { return time.Duration(50+id*37%251) * time.Millisecond }, answer: longAnswer}
}

// slowAnswers are long answers that take one or two seconds. One in ten breaks off.
func slowAnswers() behaviour {
	b := longAnswers()
	b.duration = func(id int) time.Duration { return time.Duration(600+id*37%1500) * time.Millisecond }
	b.failing = 0.1
	return b
}

// shortAnswers are one sentence and all take the same time.
func shortAnswers(duration time.Duration) behaviour {
	return behaviour{
		duration: func(int) time.Duration { return duration },
		answer:   func(id, revision int) []string { return []string{mark(id, revision, 1) + " is as good as settled."} },
	}
}

// The shape of a long answer. A post of Slack's ends after a paragraph of this length.
const (
	paragraphs     = 3
	paragraphChars = 9000
	deltas         = 8 // the pieces of the stream
)

// startModel serves until close. From then on the ledger expects the model's answers.
func startModel(l *ledger, b behaviour) (*model, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fake model: %w", err)
	}
	l.model = true
	l.expect = func(m *message, revision int) []string { return b.answer(m.id, revision) }
	m := &model{behaviour: b, ledger: l, url: "http://" + listener.Addr().String() + "/v1"}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	m.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	m.served.Go(func() { _ = m.http.Serve(listener) })
	return m, nil
}

func (m *model) close() error {
	err := m.http.Close()
	m.served.Wait()
	return err
}

// turn is one message of a request's input.
type turn struct{ Role, Content string }

// complete answers one chat completion as a stream, and records it in the ledger.
func (m *model) complete(w http.ResponseWriter, r *http.Request) {
	asked := request{arrived: time.Now(), run: r.Header.Get("Idempotency-Key")}
	var body struct{ Messages []turn }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	last := body.Messages[len(body.Messages)-1]
	var ok bool
	asked.id, asked.revision, _, ok = readMark(last.Content)
	if !ok || last.Role != "user" {
		http.Error(w, "the last message is not a user's message with a mark", http.StatusBadRequest)
		return
	}
	m.readInput(&asked, body.Messages)
	answer := strings.Join(m.answer(asked.id, asked.revision), "")
	w.Header().Set("Content-Type", "text/event-stream")
	if m.breaksOff(asked.run) {
		_ = writeDelta(w, answer[:len(answer)/3])
		panic(http.ErrAbortHandler)
	}
	defer func() { m.ledger.addRequest(asked) }()
	for i := range deltas {
		if !pause(r.Context(), m.duration(asked.id)/deltas) {
			return
		}
		if i == 0 && m.onFirstToken != nil {
			m.onFirstToken(asked.id)
		}
		if err := writeDelta(w, answer[i*len(answer)/deltas:(i+1)*len(answer)/deltas]); err != nil {
			return
		}
	}
	asked.ended = time.Now()
	_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "\n\ndata: [DONE]\n\n")
}

// readInput notes the messages of a request that came before the last one.
func (m *model) readInput(asked *request, turns []turn) {
	if m.recordInput {
		for _, t := range turns {
			asked.input = append(asked.input, readMarks(t.Content)...)
		}
		return
	}
	for i := len(turns) - 2; i >= 0 && turns[i].Role == "user"; i-- {
		if id, _, _, ok := readMark(turns[i].Content); ok {
			asked.with = append(asked.with, id)
		}
	}
}

// breaksOff decides whether the answer to a run breaks off. It does so at most once for
// each run.
func (m *model) breaksOff(run string) bool {
	if rand.Float64() >= m.failing {
		return false
	}
	_, again := m.failed.LoadOrStore(run, true)
	return !again
}

func writeDelta(w http.ResponseWriter, text string) error {
	quoted, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", quoted); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// longAnswer returns the posts of the long answer. Each post but the last ends with the
// empty line after its paragraph.
func longAnswer(id, revision int) []string {
	texts := make([]string, paragraphs)
	for i := range texts {
		sentence := mark(id, revision, i+1) + " is all that I can say of it. "
		texts[i] = strings.TrimSpace(strings.Repeat(sentence, paragraphChars/len(sentence)+1))
		if i < paragraphs-1 {
			texts[i] += "\n\n"
		}
	}
	return texts
}
