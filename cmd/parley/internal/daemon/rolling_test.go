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

// pair is two nodes on one store, and the people who talk to whichever is up.
type pair struct {
	t      *testing.T
	ctx    context.Context
	store  string // its URL
	client *http.Client

	mu      sync.Mutex
	nodes   [2]*house
	taken   [2]int        // messages, by the node that stands there now
	changed chan struct{} // closed when a message is taken
}

func newPair(t *testing.T) *pair {
	t.Helper()
	store := postgrestest.URL(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	p := &pair{t: t, ctx: ctx, store: store, client: &http.Client{Transport: new(http.Transport)}, changed: make(chan struct{})}
	t.Cleanup(p.client.CloseIdleConnections)
	p.start(0)
	p.start(1)
	return p
}

// start puts a new node in a place. It has the built-in workspace, where each
// message is a turn that echoes it.
func (p *pair) start(place int) {
	p.t.Helper()
	c := config.Default()
	c.Listen, c.Attachments.Dir, c.Workspaces[0].Turns.Coalesce = "127.0.0.1:0", p.t.TempDir(), 0
	if err := c.Store.UnmarshalText([]byte(p.store)); err != nil {
		p.t.Fatal(err)
	}
	h := &house{t: p.t, ctx: p.ctx, log: new(log), client: p.client}
	if err := h.run(daemon.Options{Config: c, Load: func() (*config.Config, error) { return c, nil }}); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = h.stop() }) // what is wrong with it the test sees
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[place], p.taken[place] = h, 0
}

// stop stops the node in a place, which its callers have to find out.
func (p *pair) stop(place int) {
	p.t.Helper()
	if err := p.nodes[place].stop(); err != nil {
		p.t.Errorf("%v\n%s", err, p.nodes[place].log)
	}
}

// takes waits until the node in a place has taken so many messages more.
func (p *pair) takes(place, more int) {
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
			p.t.Fatalf("node %d took %d messages\n%s", place, got, p.nodes[place].log)
		}
	}
}

// takenBy is how many it has taken.
func (p *pair) takenBy(place int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[place]
}

// talk says one thing after the other in a thread, each until a node has taken it,
// and returns how many there were.
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

// say is one try to have a message taken by the node in a place.
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
		return false // it is down, or has just gone
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

// answers waits until a thread has so many, and returns what was said in it, by
// whom.
func (p *pair) answers(thread string, count int) map[string][]string {
	p.t.Helper()
	h, said := p.nodes[0], map[string][]string{}
	for after := int64(0); len(said["assistant"]) < count; {
		got := h.web(http.MethodGet, fmt.Sprintf("local/threads/%s/messages?after=%d", thread, after), "", "")
		page := decode[struct{ Messages []listed }](p.t, got.body).Messages
		for _, m := range page {
			said[m.Role], after = append(said[m.Role], m.Content), m.ThreadSeq
		}
		if len(page) == 0 && !h.again() {
			p.t.Fatalf("%d of %d answers\n%s", len(said["assistant"]), count, h.log)
		}
	}
	return said
}

// TestNobodyNoticesARollingRestart: while one node after the other is stopped and
// started, whatever either takes is answered once, and in order within its thread.
func TestNobodyNoticesARollingRestart(t *testing.T) {
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
		p.takes(place, some)
		p.stop(place)
		p.takes(1-place, some)
		p.start(place)
		p.takes(place, some)
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
