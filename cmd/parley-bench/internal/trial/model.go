package trial

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/ingest/wake"
)

// Model is a fake of an agent's server, by default behind an OpenAI-compatible API. Its answer
// depends only on the last mark in the last user message.
type Model struct {
	Behaviour
	Ledger *ledger.Ledger
	failed sync.Map // the runs whose first answer broke off
	url    string
}

// Behaviour is the way in which a model answers.
type Behaviour struct {
	Dialect Dialect // the zero dialect is the first of dialects
	// Duration returns the time that the answer to a message takes.
	Duration func(id int) time.Duration
	// First returns the time until the first token; nil for an equal part of the duration.
	First func(id int) time.Duration
	// Answer returns the paragraphs of an answer, one for each post.
	Answer func(id, revision int) []string
	// Pieces is the number of pieces of the stream, and piece returns each; nil for equal parts
	// of the answer.
	Pieces int
	Piece  func(id, revision, n int) string
	// failing is the share of runs whose first answer breaks off.
	failing float64
	// OnFirstToken is called just before the first token of an answer, which waits for its
	// return; may be nil.
	OnFirstToken func(id int)
	// RecordInput says that every turn is a single message, and that the ledger records
	// all messages of a request's input.
	RecordInput bool
}

// LongAnswers come in three paragraphs of one post each, and take 50 to 300 ms.
func LongAnswers() Behaviour {
	return Behaviour{Duration: func(id int) time.Duration { return time.Duration(50+id*37%251) * time.Millisecond }, Answer: longAnswer}
}

// SlowAnswers are long answers that take one or two seconds. One in ten breaks off.
func SlowAnswers() Behaviour {
	b := LongAnswers()
	b.Duration = func(id int) time.Duration { return time.Duration(600+id*37%1500) * time.Millisecond }
	b.failing = 0.1
	return b
}

// ShortAnswers are one sentence and all take the same time.
func ShortAnswers(duration time.Duration) Behaviour {
	return Behaviour{
		Duration: func(int) time.Duration { return duration },
		Answer: func(id, revision int) []string {
			return []string{ledger.Mark(id, revision, 1) + " is as good as settled."}
		},
	}
}

// Tokens are answers of n tokens, which come one by one at a rate per second.
func Tokens(n int, rate float64) Behaviour {
	piece := func(id, revision, i int) string {
		switch {
		case i == 0:
			return ledger.Mark(id, revision, 1) + ":"
		case i%60 == 0 && i < n-1:
			return ".\n\nAnd"
		}
		return tokenWords[(id+i)%len(tokenWords)]
	}
	return Behaviour{
		Duration: func(int) time.Duration { return time.Duration(float64(n) / rate * float64(time.Second)) },
		Answer: func(id, revision int) []string {
			var all strings.Builder
			for i := range n {
				all.WriteString(piece(id, revision, i))
			}
			return []string{all.String()}
		},
		Pieces: n, Piece: piece,
	}
}

// tokenWords are tokens of an English text, in their usual lengths.
var tokenWords = strings.Split(" the| deploy| of|,| and| which| took| about| nine| minutes| because| cache| warm|ing| had| to| run| first| so| please| check| logs| before| you| restart| it| again", "|")

// The shape of a long answer. A post of Slack's ends after a paragraph of this length.
const (
	paragraphs     = 3
	paragraphChars = 9000
	deltas         = 8 // the pieces of the stream
)

// StartModel serves until the bench's close. From now on the ledger expects the model's answers.
func StartModel(b *rig.Bench, l *ledger.Ledger, answers Behaviour) *Model {
	l.Model = true
	l.Expect = func(m *ledger.Message, revision int) []string { return answers.Answer(m.ID, revision) }
	if answers.Dialect.Kind == "" {
		answers.Dialect = Dialects()[0]
	}
	if answers.Piece == nil {
		answers.Pieces, answers.Piece = deltas, func(id, revision, n int) string {
			whole := strings.Join(answers.Answer(id, revision), "")
			return whole[n*len(whole)/deltas : (n+1)*len(whole)/deltas]
		}
	}
	m := &Model{Behaviour: answers, Ledger: l}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{daemon}/", m.complete)
	mux.HandleFunc("GET /{daemon}/api/v1/agent/runs/{run}/stream", m.follow)
	m.url = b.Serve(mux)
	return m
}

// URL returns the address that a program's requests go to.
func (m *Model) URL(program string) string { return m.url + "/" + program }

// Agent returns the entry of the agent in a daemon's configuration. The daemon's name is part of
// the agent's address.
func (m *Model) Agent(daemon, more string) string {
	return fmt.Sprintf("  - {id: model, kind: %s, %s%s}\n", m.Dialect.Kind, with(m.Dialect.settings, m.URL(daemon)), more)
}

// turn is one message of a request's input.
type turn struct{ Role, Content string }

// complete answers the POST of a run, or accepts it.
func (m *Model) complete(w http.ResponseWriter, r *http.Request) {
	given := &ledger.Request{Arrived: time.Now(), Daemon: r.PathValue("daemon"), Run: r.Header.Get("Idempotency-Key")}
	var body struct{ Messages []turn }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	last := body.Messages[len(body.Messages)-1]
	id, revision, ok := ledger.LastMark(last.Content) // of several messages, if the agent gets them in one
	if !ok || last.Role != "user" {
		http.Error(w, "the last message is not a user's message with a mark", http.StatusBadRequest)
		return
	}
	given.ID, given.Revision = id, revision
	m.readInput(given, body.Messages)
	m.Ledger.AddRequest(given)
	if m.Dialect.later {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"taskId":"t","threadId":"t","runId":%s,"created":"2026-01-01T00:00:00Z"}`, quote(given.Run))
		return
	}
	m.stream(w, r, given)
}

// stream writes the answer to a request. The ledger records when the answer is complete.
func (m *Model) stream(w http.ResponseWriter, r *http.Request, given *ledger.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = write(w, m.Dialect.begin)
	if m.breaksOff(given.Run) {
		_ = write(w, with(m.Dialect.delta, quote(m.Piece(given.ID, given.Revision, 0))))
		panic(http.ErrAbortHandler)
	}
	var said strings.Builder
	at := time.Now()
	for i := range m.Pieces {
		wait := m.Duration(given.ID) / time.Duration(m.Pieces)
		if i == 0 && m.First != nil {
			wait = m.First(given.ID)
		}
		if at = at.Add(wait); !wake.After(r.Context(), time.Until(at)) {
			return
		}
		if i == 0 && m.OnFirstToken != nil {
			m.OnFirstToken(given.ID)
		}
		piece := m.Piece(given.ID, given.Revision, i)
		said.WriteString(piece)
		if err := write(w, with(m.Dialect.delta, quote(piece))); err != nil {
			return
		}
	}
	m.Ledger.Change(func() { given.Ended = time.Now() })
	_ = write(w, with(m.Dialect.end, quote(said.String())))
}

// write writes and flushes.
func write(w http.ResponseWriter, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// readInput notes the messages of a request that came before the last one.
func (m *Model) readInput(asked *ledger.Request, turns []turn) {
	if m.RecordInput {
		for _, t := range turns {
			asked.Input = append(asked.Input, ledger.ReadMarks(t.Content)...)
		}
		return
	}
	for i := len(turns) - 2; i >= 0 && turns[i].Role == "user"; i-- {
		if id, _, _, ok := ledger.ReadMark(turns[i].Content); ok {
			asked.With = append(asked.With, id)
		}
	}
}

// breaksOff decides whether the answer to a run breaks off. It does so at most once for
// each run.
func (m *Model) breaksOff(run string) bool {
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
		sentence := ledger.Mark(id, revision, i+1) + " is all that I can say of it. "
		texts[i] = strings.TrimSpace(strings.Repeat(sentence, paragraphChars/len(sentence)+1))
		if i < paragraphs-1 {
			texts[i] += "\n\n"
		}
	}
	return texts
}
