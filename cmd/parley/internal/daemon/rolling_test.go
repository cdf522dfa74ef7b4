package daemon_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

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
	total   int           // accepted messages of every node
	most    int           // the clients are silent at this total
	changed chan struct{} // closed when a field above changes
}

// some is a number of messages that a node accepts before the test goes on. The clients write as
// many while a node stops or starts.
const some = 12

func newPair(t *testing.T) *pair {
	t.Helper()
	store := postgrestest.URL(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
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
	c.Listen, c.Shutdown, c.Attachments.Dir, c.Workspaces[0].Turns.Coalesce = "127.0.0.1:0", shutdown, p.t.TempDir(), 0
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

// awaitTaken waits until the node at a place has accepted some further messages.
func (p *pair) awaitTaken(place int) {
	p.t.Helper()
	count := 0
	p.change(func() { p.most, count = math.MaxInt, p.taken[place]+some })
	if !p.await(p.ctx, func() bool { return p.taken[place] >= count }) {
		p.t.Fatalf("node %d does not accept %d messages\n%s", place, count, p.nodes[place].log)
	}
	p.change(func() { p.most = p.total + some })
}

// change changes fields and wakes the goroutines that wait.
func (p *pair) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until a condition holds. It returns false if ctx ends first.
func (p *pair) await(ctx context.Context, holds func() bool) bool {
	for {
		p.mu.Lock()
		done, changed := holds(), p.changed
		p.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// talk writes messages to a thread, each until a node has accepted it, and returns their
// number. It ends with talking.
func (p *pair) talk(talking context.Context, thread string) (said int) {
	for place := 0; talking.Err() == nil; place = 1 - place {
		if !p.await(talking, func() bool { return p.total < p.most }) {
			break
		}
		if p.say(place, fmt.Sprintf(`{"thread_id":%q,"client_message_id":"%s/%d","content":"message %d"}`, thread, thread, said, said)) {
			said++
		}
	}
	return said
}

// say posts a message to the node at a place, once. It reports whether the node has accepted
// it.
func (p *pair) say(place int, body string) bool {
	p.mu.Lock()
	node := p.nodes[place]
	url := node.url
	p.mu.Unlock()
	request, err := http.NewRequestWithContext(p.ctx, http.MethodPost, url+"/api/v1/workspaces/local/messages", strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+node.local())
	response, err := p.client.Do(request)
	if err != nil {
		return false // the node is down
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusAccepted && response.StatusCode != http.StatusOK {
		return false
	}
	p.change(func() {
		p.taken[place]++
		p.total++
	})
	return true
}

// answers waits until a thread has a number of answers, and returns the contents of its
// messages by role.
func (p *pair) answers(thread string, count int) map[string][]string {
	p.t.Helper()
	h, said := p.nodes[0], map[string][]string{}
	for after := int64(0); len(said["assistant"]) < count; {
		got := h.web(http.MethodGet, fmt.Sprintf("local/threads/%s/messages?after=%d", thread, after), h.local(), "")
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
	talking, quiet := context.WithCancel(p.ctx)
	var clients sync.WaitGroup
	t.Cleanup(clients.Wait)
	t.Cleanup(quiet)
	threads, said := make([]string, 4), make([]int, 4)
	for i := range threads {
		threads[i] = uuid.NewString()
		clients.Go(func() { said[i] = p.talk(talking, threads[i]) })
	}
	for place := range 2 {
		p.awaitTaken(place)
		p.stop(place)
		p.awaitTaken(1 - place)
		p.start(place)
		p.awaitTaken(place)
	}
	quiet()
	clients.Wait()
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
