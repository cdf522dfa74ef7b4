// Package web has the scenario that plays clients of the HTTP API.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley/adapters/sse"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/stream"
	"parley/ingest/wake"
)

// Follow lets many clients follow runs while a node is killed, and compares what each heard
// with the agent's answers.
type Follow struct {
	streams, runs, tokens int
	every, wait           time.Duration

	nodes   *rig.Nodes
	model   *trial.Model
	answers sync.Map // those of the last attempts so far, by question

	mu     sync.Mutex
	delays []time.Duration // of tokens, from the agent to a client
	faults []string
	again  int // connections after the first ones
}

func (s *Follow) Define(f *rig.FlagSet) {
	f.Number(&s.streams, "streams", 500, 1, "open streams, spread over the daemons and the runs")
	f.Number(&s.runs, "runs", 50, 1, "runs that work at the same time")
	f.Number(&s.tokens, "tokens", 60, 1, "tokens of an answer")
	f.Duration(&s.every, "every", 200*time.Millisecond, 0, "time between two tokens")
	f.Duration(&s.wait, "wait", time.Minute, 0, "time limit from the first token to the last stream's end")
}

// Check refuses one daemon: a killed one must leave another.
func (s *Follow) Check(b *rig.Bench) error {
	if b.Daemons < 2 {
		return errors.New("follow needs several -daemons")
	}
	return nil
}

// clientToken is the token of all clients.
const clientToken = "parley-bench-follows-every-run"

func (s *Follow) Run(ctx context.Context, b *rig.Bench) (err error) {
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	defer begin() // no answer waits any more
	s.model = trial.StartModel(b, ledger.New(), trial.Behaviour{
		Pieces: s.tokens, Piece: s.token,
		Duration:     func(int) time.Duration { return time.Duration(s.tokens) * s.every },
		OnFirstToken: func(int) { <-begun },
	})
	if s.nodes, err = b.StartNodes(ctx, "parley", func(name string, d *rig.Database) (*rig.Child, error) { return s.newDaemon(b, name, d) }); err != nil {
		return err
	}
	if err := s.ask(ctx); err != nil {
		return err
	}
	before := s.nodes.Memory().Now
	var listening, opened sync.WaitGroup
	for i := range s.streams {
		opened.Add(1)
		c := &listener{Follow: s, id: i % s.runs, node: i / s.runs, opened: sync.OnceFunc(opened.Done)}
		listening.Go(func() { c.listen(ctx) })
	}
	opened.Wait()
	after := s.nodes.Memory().Now
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	begin()
	wake.After(ctx, time.Duration(s.tokens)*s.every/3)
	if err := s.nodes.All[0].Kill(); err != nil {
		return err
	}
	listening.Wait()
	b.Printf("from the agent's token to the client's ear: %v (%d tokens heard)\n", figure.Summarize(s.delays), len(s.delays))
	b.Printf("memory for each stream: %.0f KB; %d times a client connected again\n", float64(after-before)/1e3/float64(s.streams), s.again)
	b.Printf("%d streams: %d faults\n", s.streams, len(s.faults))
	for _, fault := range s.faults[:min(len(s.faults), 10)] {
		b.Printf("  %s\n", fault)
	}
	if len(s.faults) > 0 {
		return errors.Join(rig.ErrViolated, errors.New(s.nodes.LogTail()))
	}
	return nil
}

// newDaemon prepares a daemon with one web workspace.
func (s *Follow) newDaemon(b *rig.Bench, name string, d *rig.Database) (*rig.Child, error) {
	return b.NewDaemon(name, d, s.model.Agent(name, ""), fmt.Sprintf(`id: bench
platform: web
agent: model
web: {tokens: [{id: client, token: %s, name: Client}]}
turns: {coalesce: 0s}
`, clientToken))
}

// threadOf returns the id of the thread of the nth run.
func threadOf(n int) string {
	return uuid.NewMD5(uuid.NameSpaceURL, []byte("parley-bench:"+strconv.Itoa(n))).String()
}

// ask posts a message to each run's thread, and waits until the agent has all runs.
func (s *Follow) ask(ctx context.Context) error {
	for n := range s.runs {
		body, _ := json.Marshal(map[string]string{"thread_id": threadOf(n), "content": ledger.Mark(n, 0, 1)}) // texts always encode
		response, err := s.nodes.All[n%len(s.nodes.All)].Request(ctx, http.MethodPost, "/api/v1/workspaces/bench/messages",
			http.Header{"Authorization": {"Bearer " + clientToken}, "Content-Type": {"application/json"}}, string(body))
		if err != nil {
			return fmt.Errorf("post a message: %w", err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusAccepted {
			return fmt.Errorf("post a message: %s", response.Status)
		}
		if err := rig.Await(ctx, func() bool { return s.request(n) != nil }); err != nil {
			return err
		}
	}
	return nil
}

// request returns the last request of a question's run; nil if there is none.
func (s *Follow) request(id int) *ledger.Request {
	return s.model.Ledger.LastRequest(func(r *ledger.Request) bool { return r.ID == id })
}

// token returns the nth token of an answer: its number and its time.
func (s *Follow) token(id, _, n int) string {
	token := fmt.Sprintf("%d@%d ", n, time.Now().UnixNano())
	said, _ := s.answers.Load(id)
	if n == 0 {
		said = ""
	}
	s.answers.Store(id, said.(string)+token)
	return token
}

// listener is one client.
type listener struct {
	*Follow
	id     int // of the question
	node   int // of the next connection
	opened func()

	last     int64 // the id of the last message; 0 for none
	asked    bool  // the question was heard
	chunks   map[string]string
	answered bool
	ended    bool
}

// listen follows the run, over as many connections as it takes.
func (l *listener) listen(ctx context.Context) {
	defer l.opened()
	l.chunks = map[string]string{}
	for connections := 0; !l.ended; connections++ {
		if connections > 0 {
			l.note(func() { l.again++ })
			if !wake.After(ctx, 50*time.Millisecond) {
				break
			}
			l.node++
		}
		_ = l.connect(ctx) // a broken stream is opened again
		if ctx.Err() != nil {
			break
		}
	}
	if !l.ended || !l.answered || !l.asked {
		l.fault("the question was heard: %v, the answer: %v, the end: %v", l.asked, l.answered, l.ended)
	}
}

func (l *listener) connect(ctx context.Context) error {
	header := http.Header{"Authorization": {"Bearer " + clientToken}, "Connection": {"close"}}
	if l.asked {
		header.Set("Last-Event-ID", strconv.FormatInt(l.last, 10))
	}
	path := fmt.Sprintf("/runs/%s/%s/stream", threadOf(l.id), l.request(l.id).Run)
	response, err := l.nodes.All[l.node%len(l.nodes.All)].Request(ctx, http.MethodGet, path, header, "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return l.read(response.Body)
}

// read takes the events of one connection.
func (l *listener) read(body io.Reader) error {
	for events := sse.NewReader(body, 1<<20); ; {
		e, err := events.Next()
		if err != nil {
			return err
		}
		var m stream.Message
		if err := json.Unmarshal(e.Data, &m); err != nil {
			l.fault("an unreadable message: %v", err)
			return err
		}
		id, _ := strconv.ParseInt(e.ID, 10, 64)
		l.take(id, m)
		l.opened()
	}
}

// take checks one message.
func (l *listener) take(id int64, m stream.Message) {
	if id <= l.last && l.asked {
		l.fault("message %d came after %d", id, l.last)
	}
	l.last = id
	switch m.Type {
	case stream.Question:
		if l.asked {
			l.fault("the question came twice")
		}
		l.asked = true
	case stream.StreamingChunk:
		l.chunks[m.ActivityID] += m.Text
		l.measure(m.Text)
	case stream.Thought: // a further attempt replaces the tokens of the one before
		delete(l.chunks, m.ActivityID)
	case stream.Answer:
		if want, _ := l.answers.Load(l.id); m.Text != want || l.answered {
			l.fault("another answer, or a second one: %q, want %q", m.Text, want)
		}
		if heard := l.chunks[m.ActivityID]; !strings.HasPrefix(m.Text, heard) {
			l.fault("the tokens were %q, the answer is %q", heard, m.Text)
		}
		l.answered = true
	case stream.Complete:
		l.ended = true
	default:
		l.fault("an unexpected message of type %s", m.Type)
	}
}

// measure notes the delays of the tokens in a chunk.
func (l *listener) measure(text string) {
	now := time.Now()
	for token := range strings.FieldsSeq(text) {
		_, at, _ := strings.Cut(token, "@")
		if ns, err := strconv.ParseInt(at, 10, 64); err == nil {
			l.note(func() { l.delays = append(l.delays, now.Sub(time.Unix(0, ns))) })
		}
	}
}

func (l *listener) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *listener) fault(format string, args ...any) {
	l.note(func() { l.faults = append(l.faults, threadOf(l.id)+": "+fmt.Sprintf(format, args...)) })
}
