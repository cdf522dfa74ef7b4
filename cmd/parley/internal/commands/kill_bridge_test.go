package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/adapters/httpcall"
)

// The load of TestKilledUnderABridge.
const (
	bridgeThreads  = 40
	bridgeMessages = 6
	bridgeKills    = 4
)

// bridgeProgram is the program of a bridge workspace, which does each post once and fails often.
type bridgeProgram struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests int
	repeats  int
	did      map[string]string          // the posts by their ids
	shown    map[string][]string        // the contents by channel and thread, in order
	waits    map[string]chan<- struct{} // for the answer to a message, by its id
	failed   map[string]int             // the faults of a post, by its id
	answered int
	at       map[int]chan struct{} // closed at a number of answers
}

// mostFaults bounds the faults of one post, whose pauses grow up to a minute.
const mostFaults = 3

// ServeHTTP loses every fifth answer and refuses every seventh request after the effect, and every eleventh before it.
func (p *bridgeProgram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the daemon was killed
	}
	if want, _ := httpcall.Sign(webToken, r.Header.Get("X-Parley-Timestamp"), bytes.NewReader(raw)); r.Header.Get("X-Parley-Signature") != want {
		p.t.Errorf("a request has the signature %q", r.Header.Get("X-Parley-Signature"))
	}
	var post struct {
		ID, Channel, Thread, Content string
		InReplyTo                    string `json:"in_reply_to"`
	}
	if err := json.Unmarshal(raw, &post); err != nil || post.ID == "" {
		p.t.Errorf("%v: %s", err, raw)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	fails := func(each int) bool {
		if p.requests%each != 0 || p.failed[post.ID] == mostFaults {
			return false
		}
		p.failed[post.ID]++
		return true
	}
	if fails(11) {
		panic(http.ErrAbortHandler) // closes the connection
	}
	place := post.Channel + " " + post.Thread
	if known, again := p.did[post.ID]; again {
		if p.repeats++; known != string(raw) {
			p.t.Errorf("the post %s was %s, and is %s", post.ID, known, raw)
		}
	} else {
		p.did[post.ID] = string(raw)
		p.shown[place] = append(p.shown[place], post.Content+" "+post.InReplyTo)
		if wait := p.waits[post.InReplyTo]; wait != nil {
			close(wait)
			delete(p.waits, post.InReplyTo)
		}
		p.answered++
		if at := p.at[p.answered]; at != nil {
			close(at)
		}
	}
	switch {
	case fails(5):
		panic(http.ErrAbortHandler)
	case fails(7):
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// say posts a message until it is accepted, and waits for its answer.
func (p *bridgeProgram) say(hook, channel, thread, id string) {
	answer := make(chan struct{})
	p.mu.Lock()
	p.waits[id] = answer
	p.mu.Unlock()
	body, _ := json.Marshal(map[string]any{
		"id": id, "channel": map[string]string{"id": channel, "type": "room"}, "thread": thread, "content": "question " + id, "mentioned": true,
		"metadata": map[string]string{"sender_id": "nora", "sender_display_name": "Nora", "sender_type": "human"},
	})
	for times := 0; times < 2; { // each message comes twice
		request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, hook, bytes.NewReader(body))
		if err != nil {
			p.t.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+webToken)
		response, err := http.DefaultClient.Do(request)
		switch {
		case err == nil && response.StatusCode/100 == 2:
			times++
		case p.t.Context().Err() != nil:
			return
		default:
			<-time.After(20 * time.Millisecond) // the daemon starts
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
	select {
	case <-answer:
	case <-p.t.Context().Done():
	}
}

// TestKilledUnderABridge kills the daemon several times while people talk in many threads, and their program loses requests and
// answers. Each message has one answer, in its thread and in order.
func TestKilledUnderABridge(t *testing.T) {
	t.Parallel()
	p := &bridgeProgram{t: t, failed: map[string]int{}, did: map[string]string{}, shown: map[string][]string{}, waits: map[string]chan<- struct{}{}, at: map[int]chan struct{}{}}
	var kills []chan struct{}
	for n := range bridgeKills {
		kills = append(kills, make(chan struct{}))
		p.at[(n+1)*bridgeThreads*bridgeMessages/(bridgeKills+1)] = kills[n]
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	dir, address := t.TempDir(), freeAddress(t)
	write(t, dir, "parley.yaml", "listen: "+address+"\nconsole: {listen: \"\"}\nlocal: false\nagents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/irc.yaml", "id: irc\nplatform: bridge\nagent: echo\nturns: {coalesce: 0s}\nbridge: {token: "+webToken+", timeout: 2s, deliver: {url: \""+p.URL+"\", secret: "+webToken+"}}\n")
	var people sync.WaitGroup
	for n := range bridgeThreads {
		people.Go(func() {
			for i := range bridgeMessages {
				p.say("http://"+address+"/hooks/bridge/irc", fmt.Sprintf("#room%d", n%4), fmt.Sprint("t", n), fmt.Sprintf("m%d-%d", n, i))
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		people.Wait()
		close(ended)
	}()
	daemon := start(t, dir, os.Args[0], "run")
	for _, kill := range kills {
		<-kill
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
		daemon = start(t, dir, os.Args[0], "run")
	}
	select {
	case <-ended:
	case <-time.After(3 * time.Minute):
		t.Error("some messages have no answer")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lost, doubled, misplaced := 0, 0, 0
	for n := range bridgeThreads {
		place := fmt.Sprintf("#room%d t%d", n%4, n)
		for i := range bridgeMessages {
			id := fmt.Sprintf("m%d-%d", n, i)
			want := "question " + id + " " + id
			switch got := strings.Count(strings.Join(p.shown[place], "\n")+"\n", want+"\n"); {
			case got == 0:
				lost++
			case got > 1:
				doubled++
			case p.shown[place][i] != want:
				misplaced++
			}
		}
	}
	t.Logf("%d messages in %d threads, %d kills: %d requests, %d of them repeated; %d lost, %d doubled, %d in another place or order",
		bridgeThreads*bridgeMessages, bridgeThreads, bridgeKills, p.requests, p.repeats, lost, doubled, misplaced)
	if lost+doubled+misplaced > 0 || len(p.shown) != bridgeThreads || len(p.did) != bridgeThreads*bridgeMessages || p.repeats == 0 {
		t.Errorf("%d posts in %d places: %v", len(p.did), len(p.shown), p.shown)
	}
}
