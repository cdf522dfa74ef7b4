package daemon_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/adapters/discord"
	"parley/cmd/parley/internal/daemon"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/postgres/postgrestest"
)

// gatewayWorkspace is a workspace of the gateway, which echoes every message to the bot.
func gatewayWorkspace() config.Workspace {
	w := config.NewWorkspace("guild", event.Discord, "echo")
	w.Config, w.Turns.Coalesce = new(discord.DefaultConfig()), 0
	return w
}

// clusterLease is shorter than the default, so that another node soon takes over from a node
// without the store.
const clusterLease = 3 * time.Second

// node is one of several daemons on a store.
type node struct {
	*harness
	name string

	mu     sync.Mutex
	config *config.Config
}

// cluster is a store for several nodes, with their gateway.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	store   string // its URL
	gateway *gateway
	said    int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	store := postgrestest.URL(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return &cluster{t: t, ctx: ctx, store: store, gateway: newGateway(t)}
}

// start starts a node that uses the store at a URL.
func (c *cluster) start(name, store string) *node {
	c.t.Helper()
	n := &node{name: name, harness: &harness{t: c.t, ctx: c.ctx, log: new(log), client: &http.Client{Transport: new(http.Transport)}}}
	n.configure(gatewayWorkspace())
	if err := n.config.Store.UnmarshalText([]byte(store)); err != nil {
		c.t.Fatal(err)
	}
	n.config.Attachments.Dir = c.t.TempDir()
	load := func() (*config.Config, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.config, nil
	}
	if err := n.run(daemon.Options{Config: n.config, Load: load, Lease: clusterLease, Platforms: c.gateway.platforms(name)}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = n.stop() }) // the test checks the nodes themselves
	return n
}

// configure sets the node's workspaces for its next reload.
func (n *node) configure(list ...config.Workspace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := config.Default()
	if n.config != nil {
		c.Store, c.Attachments = n.config.Store, n.config.Attachments
	}
	c.Listen, c.Shutdown, c.Workspaces = "127.0.0.1:0", shutdown, list
	n.config = c
}

// awaitState waits until the node reports a state of its workspace.
func (n *node) awaitState(state string) {
	n.t.Helper()
	for {
		ready := n.get("/readyz").body
		if decode[struct {
			Workspaces map[string]struct{ State string }
		}](n.t, ready).Workspaces["guild"].State == state {
			break
		}
		if !n.poll() {
			n.t.Fatalf("%s is not %s: %s\n%s", n.name, state, ready, n.log)
		}
	}
	up := map[bool]float64{true: 1}[state == "up"]
	if got := n.metric(`parley_workspace_up{workspace="guild"}`); got != up {
		n.t.Errorf("%s is %s, and the metric is %v", n.name, state, got)
	}
}

// say sends a number of messages to the bot.
func (c *cluster) say(n int) {
	for range n {
		c.said++
		c.gateway.say(fmt.Sprintf("message %d", c.said))
	}
}

// awaitAnswers waits until there are as many answers as messages.
func (c *cluster) awaitAnswers(log ...*node) {
	c.t.Helper()
	if !c.gateway.await(c.ctx, func() bool { return len(c.gateway.posts) >= c.said }) {
		for _, n := range log {
			c.t.Logf("%s:\n%s", n.name, n.log)
		}
		c.t.Fatalf("%d of %d answers", len(c.gateway.posts), c.said)
	}
}

// checkOnce fails the test unless each message has one answer, and the nodes had exactly
// these sessions, in this order and never two at the same time.
func (c *cluster) checkOnce(sessions ...string) {
	c.t.Helper()
	g := c.gateway
	g.mu.Lock()
	defer g.mu.Unlock()
	texts := map[string]int{}
	for _, p := range g.posts {
		texts[p.Text]++
	}
	for i := range c.said {
		if text := fmt.Sprintf("<@%s> message %d", guildBot, i+1); texts[text] != 1 {
			c.t.Errorf("%q was answered %d times", text, texts[text])
		}
	}
	if len(texts) != c.said {
		c.t.Errorf("%d messages, and answers to %d of them", c.said, len(texts))
	}
	if len(g.violations) != 0 {
		c.t.Errorf("sessions at the same time: %v", g.violations)
	}
	if !slices.Equal(g.sessions, sessions) {
		c.t.Errorf("the sessions of the nodes are %v, want %v", g.sessions, sessions)
	}
}

// sessionOwner waits for the nth session, and returns its node.
func (c *cluster) sessionOwner(n int, nodes ...*node) *node {
	c.t.Helper()
	g := c.gateway
	if !g.await(c.ctx, func() bool { return len(g.sessions) >= n }) {
		c.t.Fatalf("the sessions are %v, and there is no session %d\n%s", g.sessions, n, nodes[0].log)
	}
	return nodes[slices.IndexFunc(nodes, func(n2 *node) bool { return n2.name == g.sessions[n-1] })]
}

// TestStoppedNodeHandsOverConnection, and so does a node whose workspace is changed or
// removed. Every message meanwhile is answered once.
func TestStoppedNodeHandsOverConnection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := c.start("first", c.store)
	first.awaitState("up")
	second, third := c.start("second", c.store), c.start("third", c.store)
	second.awaitState("standby")
	third.awaitState("standby")
	c.say(20)
	if err := first.stop(); err != nil {
		t.Errorf("%v\n%s", err, first.log)
	}
	c.say(20)
	heir := c.sessionOwner(2, second, third)
	heir.awaitState("up")

	changed := gatewayWorkspace()
	changed.Config.(*discord.Config).Timeout++
	heir.configure(changed)
	heir.reload()
	c.say(20)
	last := c.sessionOwner(3, second, third)
	last.awaitState("up")
	c.awaitAnswers(second, third)

	other := map[*node]*node{second: third, third: second}[last]
	other.awaitState("standby")
	last.configure()
	last.reload()
	other.awaitState("up")
	c.checkOnce("first", heir.name, last.name, other.name)
}

// TestNodeWithoutStoreReleasesConnection before another node opens one, and does not open it
// again. The other node gets the messages that the first one could not accept, and completes
// its unfinished work.
func TestNodeWithoutStoreReleasesConnection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	proxy, store := newProxy(t, c.store)
	first := c.start("first", store)
	first.awaitState("up")
	second := c.start("second", c.store)
	second.awaitState("standby")
	c.say(40)
	c.gateway.await(c.ctx, func() bool { return len(c.gateway.posts) > 5 })
	proxy.cut()
	c.say(20)
	second.awaitState("up")
	first.awaitState("standby")
	proxy.mend()
	c.say(20)
	c.awaitAnswers(first, second)
	first.awaitState("standby")
	c.checkOnce("first", "second")
}

// proxy forwards connections to a store, until it is cut.
type proxy struct {
	net.Listener
	to     string
	mu     sync.Mutex
	broken bool
	ends   []net.Conn
	pumps  sync.WaitGroup
}

// newProxy returns a proxy to the store at a URL, and the URL of the proxy.
func newProxy(t *testing.T, store string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	w := &proxy{to: u.Host}
	if w.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	w.pumps.Go(w.serve)
	t.Cleanup(func() {
		_ = w.Close()
		w.cut()
		w.pumps.Wait()
	})
	u.Host = w.Addr().String()
	return w, u.String()
}

func (w *proxy) serve() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		if w.ends = append(w.ends, near, far); w.broken {
			w.hangUp()
		}
		w.mu.Unlock()
		for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
			w.pumps.Go(func() {
				_, _ = io.Copy(ends[0], ends[1])
				_, _ = ends[0].Close(), ends[1].Close()
			})
		}
	}
}

func (w *proxy) hangUp() {
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.ends = nil
}

// cut closes every connection, and every new one.
func (w *proxy) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	w.hangUp()
}

// mend forwards new connections again.
func (w *proxy) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = false
}
