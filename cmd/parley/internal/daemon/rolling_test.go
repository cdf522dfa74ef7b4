package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley/cmd/parley/internal/daemon"
	"parley/config"
	"parley/ingest/journal/postgres/postgrestest"
)

// pair is two nodes on one store, and the clients that write to the node that is up.
type pair struct {
	t      *testing.T
	ctx    context.Context
	store  string // its URL
	client *http.Client

	mu      sync.Mutex
	nodes   [2]*harness
	taken   [2]int        // accepted messages of the present node at each place
	changed chan struct{} // closed when a message is accepted
}

func newPair(t *testing.T) *pair {
	t.Helper()
	store := postgrestest.URL(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*testTimeout)
	t.Cleanup(cancel)
	p := &pair{t: t, ctx: ctx, store: store, client: &http.Client{Transport: new(http.Transport)}, changed: make(chan struct{})}
	t.Cleanup(p.client.CloseIdleConnections)
	p.start(0)
	p.start(1)
	return p
}

// start starts a new node at a place. It has the built-in workspace, and each message is a
// turn, which the echo agent answers.
func (p *pair) start(place int) {
	p.t.Helper()
	c := config.Default()
	c.Listen, c.Attachments.Dir, c.Workspaces[0].Turns.Coalesce = "127.0.0.1:0", p.t.TempDir(), 0
	if err := c.Store.UnmarshalText([]byte(p.store)); err != nil {
		p.t.Fatal(err)
	}
	h := &harness{t: p.t, ctx: p.ctx, log: new(log), client: p.client}
	if err := h.run(daemon.Options{Config: c, Load: func() (*config.Config, error) { return c, nil }}); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = h.stop() }) // the test checks the node itself
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[place], p.taken[place] = h, 0
}

// stop stops the node at a place. The clients are not told.
func (p *pair) stop(place int) {
	p.t.Helper()
	if err := p.nodes[place].stop(); err != nil {
		p.t.Errorf("%v\n%s", err, p.nodes[place].log)
	}
}

// awaitTaken waits until the node at a place has accepted a number of further messages.
func (p *pair) awaitTaken(place, more int) {
	p.t.Helper()
	for count := p.takenBy(place) + more; ; {
		p.mu.Lock()
		got, changed := p.taken[place], p.changed
		p.mu.Unlock()
		if got >= count {
			return
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			p.t.Fatalf("node %d accepted %d messages\n%s", place, got, p.nodes[place].log)
		}
	}
}

// takenBy returns the number of messages that the node at a place has accepted.
func (p *pair) takenBy(place int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[place]
}

// talk writes messages to a thread, each until a node has accepted it, and returns their
// number. It ends when quiet is closed.
func (p *pair) talk(thread string, quiet <-chan struct{}) (said int) {
	for place := 0; ; place = 1 - place {
		select {
		case <-quiet:
			return said
		case <-p.ctx.Done():
			return said
		case <-time.After(5 * time.Millisecond):
		}
		if p.say(place, fmt.Sprintf(`{"thread_id":%q,"client_message_id":"%s/%d","content":"message %d"}`, thread, thread, said, said)) {
			said++
		}
	}
}

// say posts a message to the node at a place, once. It reports whether the node has accepted
// it.
func (p *pair) say(place int, body string) bool {
	p.mu.Lock()
	url := p.nodes[place].url
	p.mu.Unlock()
	request, err := http.NewRequestWithContext(p.ctx, http.MethodPost, url+"/api/v1/workspaces/local/messages", strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return false // the node is down
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusAccepted && response.StatusCode != http.StatusOK {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[place]++
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

// answers waits until a thread has a number of answers, and returns the contents of its
// messages by role.
func (p *pair) answers(thread string, count int) map[string][]string {
	p.t.Helper()
	h, said := p.nodes[0], map[string][]string{}
	for after := int64(0); len(said["assistant"]) < count; {
		got := h.web(http.MethodGet, fmt.Sprintf("local/threads/%s/messages?after=%d", thread, after), "", "")
		page := decode[struct{ Messages []listed }](p.t, got.body).Messages
		for _, m := range page {
			said[m.Role], after = append(said[m.Role], m.Content), m.ThreadSeq
		}
		if len(page) == 0 && !h.poll() {
			p.t.Fatalf("%d of %d answers\n%s", len(said["assistant"]), count, h.log)
		}
	}
	return said
}

// TestRollingRestart stops and starts one node after the other. Every accepted message must
// be answered once, and in order within its thread.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	const some = 12
	quiet := make(chan struct{})
	var talking sync.WaitGroup
	t.Cleanup(talking.Wait)
	threads, said := make([]string, 4), make([]int, 4)
	for i := range threads {
		threads[i] = uuid.NewString()
		talking.Go(func() { said[i] = p.talk(threads[i], quiet) })
	}
	for place := range 2 {
		p.awaitTaken(place, some)
		p.stop(place)
		p.awaitTaken(1-place, some)
		p.start(place)
		p.awaitTaken(place, some)
	}
	close(quiet)
	talking.Wait()
	for i, thread := range threads {
		var want []string
		for n := range said[i] {
			want = append(want, fmt.Sprintf("message %d", n))
		}
		got := p.answers(thread, said[i])
		for _, role := range []string{"user", "assistant"} {
			if !slices.Equal(got[role], want) {
				t.Errorf("thread %d, %s: %q", i, role, got[role])
			}
		}
	}
}
