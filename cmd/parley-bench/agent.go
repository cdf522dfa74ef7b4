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

// model is a fake behind an OpenAI-compatible API. Its answer follows from what
// it was asked: it repeats the mark of the last user message.
type model struct {
	manner
	ledger *ledger
	failed sync.Map // by run: the model fails some of the runs once
	// begins hears of an answer just before its first token is written; nil for nobody.
	begins func(id int)
	// alone says that every message is a turn of its own, and that each ask keeps the
	// messages of its input.
	alone  bool
	url    string
	http   *http.Server
	served sync.WaitGroup
}

// manner is how a model answers.
type manner struct {
	// thinking is how long the answer to a message takes.
	thinking func(id int) time.Duration
	// answer is its paragraphs, each a post.
	answer func(id, revision int) []string
	// fails is the share of runs whose first answer breaks off.
	fails float64
}

// atLength answers in three paragraphs, which are too long for fewer than three
// posts, and takes 50 to 300 ms for it.
func atLength() manner {
	return manner{thinking: func(id int) time.Duration { return time.Duration(50+id*37%251) * time.Millisecond }, answer: answerOf}
}

// atEase answers like atLength, and takes a second or two; now and then it breaks off.
func atEase() manner {
	how := atLength()
	how.thinking = func(id int) time.Duration { return time.Duration(600+id*37%1500) * time.Millisecond }
	how.fails = 0.1
	return how
}

// briefly answers in one sentence, and takes a while for it.
func briefly(thinking time.Duration) manner {
	return manner{thinking: func(int) time.Duration { return thinking }, answer: func(id, revision int) []string {
		return []string{mark(id, revision, 1) + " is as good as settled."}
	}}
}

// The shape of a long answer: with a paragraph of this many characters a post of
// Slack's ends.
const (
	paragraphs     = 3
	paragraphChars = 9000
	deltas         = 8 // pieces in which an answer comes
)

// startModel serves until close. The ledger expects its answers.
func startModel(l *ledger, how manner) (*model, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fake model: %w", err)
	}
	l.agent = true
	l.expect = func(m *message, revision int) []string { return how.answer(m.id, revision) }
	m := &model{manner: how, ledger: l, url: "http://" + listener.Addr().String() + "/v1"}
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

// complete answers one chat completion as a stream, and puts it on record.
func (m *model) complete(w http.ResponseWriter, r *http.Request) {
	asked := ask{arrived: time.Now(), run: r.Header.Get("Idempotency-Key")}
	var request struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	last := request.Messages[len(request.Messages)-1]
	id, revision, _, ok := readMark(last.Content)
	if !ok || last.Role != "user" {
		http.Error(w, "the last message is no user's with a mark", http.StatusBadRequest)
		return
	}
	asked.id, asked.revision = id, revision
	for _, message := range request.Messages {
		if m.alone {
			asked.input = append(asked.input, readMarks(message.Content)...)
		}
	}
	for i := len(request.Messages) - 2; !m.alone && i >= 0 && request.Messages[i].Role == "user"; i-- {
		if id, _, _, ok := readMark(request.Messages[i].Content); ok {
			asked.with = append(asked.with, id)
		}
	}
	if m.fails > 0 && rand.Float64() < m.fails {
		if _, again := m.failed.LoadOrStore(asked.run, true); !again {
			m.breaks(w, strings.Join(m.answer(id, revision), ""))
			return
		}
	}
	defer func() { m.ledger.asked(asked) }()
	w.Header().Set("Content-Type", "text/event-stream")
	answer := strings.Join(m.answer(id, revision), "")
	for i := range deltas {
		if !pause(r.Context(), m.thinking(id)/deltas) {
			return
		}
		if i == 0 && m.begins != nil {
			m.begins(id)
		}
		piece := answer[i*len(answer)/deltas : (i+1)*len(answer)/deltas]
		if err := writeDelta(w, piece); err != nil {
			return
		}
	}
	asked.ended = time.Now()
	_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "\n\ndata: [DONE]\n\n")
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

// breaks begins an answer, and breaks off in the middle.
func (m *model) breaks(w http.ResponseWriter, answer string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = writeDelta(w, answer[:len(answer)/3])
	panic(http.ErrAbortHandler)
}

// answerOf is the long answer, by the posts that it will be: each but the last ends
// with the empty line behind its paragraph.
func answerOf(id, revision int) []string {
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
