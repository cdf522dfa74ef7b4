package testapp

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/guard"
	"parley/ingest/event"
)

// Node is an adapter with its hook and its poller.
type Node struct {
	*Server
	Inbox *Inbox
	State adapters.State
	Hook  *httptest.Server
	Ups   chan event.Self // the poller is up
	Downs chan error      // the poller has failed
	Wants adapters.Wants
	Log   *Log
	Stop  func() // stops the poller

	t *testing.T
}

// Log is a log in memory.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// NewNode returns a node whose poller does not run yet. Its webhook is registered by hand.
func NewNode(t *testing.T, options bluebubblestest.Options, change ...func(*bluebubbles.Config)) *Node {
	t.Helper()
	n := &Node{
		Server: Start(t, options), Inbox: newInbox(), State: adaptertest.NewState(), Ups: make(chan event.Self, 100), Downs: make(chan error, 100),
		Log: new(Log), Stop: func() {}, t: t,
	}
	c := Config(n.URL())
	for _, f := range change {
		f(&c)
	}
	n.Adapter = bluebubbles.New("home", c)
	n.Adapter.UseState(n.State)
	n.Hook = httptest.NewServer(n.Adapter.Handler(n.Inbox, guard.New(func(string) {})))
	t.Cleanup(n.Hook.Close)
	n.Register(n.Hook.URL+"/hooks/bluebubbles/home/"+CanaryWebhook, "new-message", "updated-message")
	return n
}

// Start runs the poller until its first read has ended.
func (n *Node) Start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	var running sync.WaitGroup
	link := adapters.Link{
		Up: func(self event.Self) { n.Ups <- self }, Down: func(err error) { n.Downs <- err }, State: n.State,
		Log: slog.New(slog.NewTextHandler(n.Log, nil)), Wants: func() adapters.Wants { return n.Wants },
	}
	running.Go(func() {
		for ctx.Err() == nil { // as the supervisor does, without its waits
			if err := n.Adapter.Connections()[0].Run(ctx, n.Inbox, link); err != nil {
				n.Downs <- err
			}
		}
	})
	n.Stop = func() {
		cancel()
		running.Wait()
	}
	n.t.Cleanup(n.Stop)
	<-n.Ups
}

// Hears makes the server receive a text of Nora's.
func (n *Node) Hears(text string) bluebubblestest.Message {
	m, _ := n.Say(bluebubblestest.Message{Chat: Direct, From: Nora, Text: text})
	return m
}

// Reply sends a text by an adapter.
func Reply(t *testing.T, a *bluebubbles.Adapter, chat, place, text string) {
	t.Helper()
	if _, err := a.Send(t.Context(), adapters.Post{Key: "k1", To: adapters.Address{Channel: chat, Place: place}, Text: text}); err != nil {
		t.Fatal(err)
	}
}

// Reply sends a text by the node's adapter.
func (n *Node) Reply(chat, place, text string) {
	n.t.Helper()
	Reply(n.t, n.Adapter, chat, place, text)
}
