package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/ingest/wake"
)

// model is a fake of an agent's server, by default behind an OpenAI-compatible API. Its answer
// depends only on the last mark in the last user message.
type model struct {
	behaviour
	ledger *ledger
	failed sync.Map // the runs whose first answer broke off
	url    string
}

// behaviour is the way in which a model answers.
type behaviour struct {
	dialect dialect // the zero dialect is the first of dialects
	// duration returns the time that the answer to a message takes.
	duration func(id int) time.Duration
	// first returns the time until the first token; nil for an equal part of the duration.
	first func(id int) time.Duration
	// answer returns the paragraphs of an answer, one for each post.
	answer func(id, revision int) []string
	// pieces is the number of pieces of the stream, and piece returns each; nil for equal parts
	// of the answer.
	pieces int
	piece  func(id, revision, n int) string
	// failing is the share of runs whose first answer breaks off.
	failing float64
	// onFirstToken is called just before the first token of an answer, which waits for its
	// return; may be nil.
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

// startModel serves until the bench's close. From now on the ledger expects the model's answers.
func (b *bench) startModel(l *ledger, answers behaviour) *model {
	l.model = true
	l.expect = func(m *message, revision int) []string { return answers.answer(m.id, revision) }
	if answers.dialect.kind == "" {
		answers.dialect = dialects()[0]
	}
	if answers.piece == nil {
		answers.pieces, answers.piece = deltas, func(id, revision, n int) string {
			whole := strings.Join(answers.answer(id, revision), "")
			return whole[n*len(whole)/deltas : (n+1)*len(whole)/deltas]
		}
	}
	m := &model{behaviour: answers, ledger: l}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{daemon}/", m.complete)
	mux.HandleFunc("GET /{daemon}/api/v1/agent/runs/{run}/stream", m.follow)
	m.url = b.serve(mux)
	return m
}

// agent returns the entry of the agent in a daemon's configuration. The daemon's name is part of
// the agent's address.
func (m *model) agent(daemon, more string) string {
	return fmt.Sprintf("  - {id: model, kind: %s, %s%s}\n", m.dialect.kind, with(m.dialect.settings, m.url+"/"+daemon), more)
}

// turn is one message of a request's input.
type turn struct{ Role, Content string }

// complete answers the POST of a run, or accepts it.
func (m *model) complete(w http.ResponseWriter, r *http.Request) {
	given := &request{arrived: time.Now(), daemon: r.PathValue("daemon"), run: r.Header.Get("Idempotency-Key")}
	var body struct{ Messages []turn }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	last := body.Messages[len(body.Messages)-1]
	marks := markPattern.FindAllString(last.Content, -1) // of several messages, if the agent gets them in one
	if len(marks) == 0 || last.Role != "user" {
		http.Error(w, "the last message is not a user's message with a mark", http.StatusBadRequest)
		return
	}
	given.id, given.revision, _, _ = readMark(marks[len(marks)-1])
	m.readInput(given, body.Messages)
	m.ledger.addRequest(given)
	if m.dialect.later {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"taskId":"t","threadId":"t","runId":%s,"created":"2026-01-01T00:00:00Z"}`, quote(given.run))
		return
	}
	m.stream(w, r, given)
}

// stream writes the answer to a request. The ledger records when the answer is complete.
func (m *model) stream(w http.ResponseWriter, r *http.Request, given *request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = write(w, m.dialect.begin)
	if m.breaksOff(given.run) {
		_ = write(w, with(m.dialect.delta, quote(m.piece(given.id, given.revision, 0))))
		panic(http.ErrAbortHandler)
	}
	said := ""
	for i := range m.pieces {
		wait := m.duration(given.id) / time.Duration(m.pieces)
		if i == 0 && m.first != nil {
			wait = m.first(given.id)
		}
		if !wake.After(r.Context(), wait) {
			return
		}
		if i == 0 && m.onFirstToken != nil {
			m.onFirstToken(given.id)
		}
		piece := m.piece(given.id, given.revision, i)
		said += piece
		if err := write(w, with(m.dialect.delta, quote(piece))); err != nil {
			return
		}
	}
	m.ledger.change(func() { given.ended = time.Now() })
	_ = write(w, with(m.dialect.end, quote(said)))
}

// write writes and flushes.
func write(w http.ResponseWriter, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
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
