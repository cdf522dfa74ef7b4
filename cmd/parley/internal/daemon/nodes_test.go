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

// guild is a workspace of the gateway, which answers every message to the bot
// with the message.
func guild() config.Workspace {
	w := config.NewWorkspace("guild", event.Discord, config.KindEcho)
	w.Discord, w.Turns.Coalesce = new(discord.DefaultConfig()), 0
	return w
}

// clusterLease is shorter than usual, so that a node which is cut off is soon followed.
const clusterLease = 3 * time.Second

// node is one of several daemons on a store.
type node struct {
	*house
	name string

	mu     sync.Mutex
	config *config.Config
}

// cluster is a store for several nodes, with the gateway that they serve.
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &cluster{t: t, ctx: ctx, store: store, gateway: newGateway(t)}
}

// start starts a node that reaches the store by a URL.
func (c *cluster) start(name, store string) *node {
	c.t.Helper()
	n := &node{name: name, house: &house{t: c.t, ctx: c.ctx, log: new(log), client: &http.Client{Transport: new(http.Transport)}}}
	n.configure(guild())
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
	c.t.Cleanup(func() { _ = n.stop() }) // what is wrong with it the tests see
	return n
}

// configure gives the node some workspaces, from the next reload on.
func (n *node) configure(list ...config.Workspace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := config.Default()
	if n.config != nil {
		c.Store, c.Attachments = n.config.Store, n.config.Attachments
	}
	c.Listen, c.Workspaces = "127.0.0.1:0", list
	n.config = c
}

// is waits until the node says of its workspace that it is in a state.
func (n *node) is(state string) {
	n.t.Helper()
	for {
		ready := n.get("/readyz").body
		if decode[struct {
			Workspaces map[string]struct{ State string }
		}](n.t, ready).Workspaces["guild"].State == state {
			break
		}
		if !n.again() {
			n.t.Fatalf("%s is not %s but %s\n%s", n.name, state, ready, n.log)
		}
	}
	up := map[bool]float64{true: 1}[state == "up"]
	if got := n.metric(`parley_workspace_up{workspace="guild"}`); got != up {
		n.t.Errorf("%s is %s, and up is %v", n.name, state, got)
	}
}

// say says so many things to the bot.
func (c *cluster) say(n int) {
	for range n {
		c.said++
		c.gateway.say(fmt.Sprintf("message %d", c.said))
	}
}

// answered waits until there are as many answers as were messages said.
func (c *cluster) answered(log ...*node) {
	c.t.Helper()
	if !c.gateway.await(c.ctx, func() bool { return len(c.gateway.posts) >= c.said }) {
		for _, n := range log {
			c.t.Logf("%s:\n%s", n.name, n.log)
		}
		c.t.Fatalf("%d of %d answers", len(c.gateway.posts), c.said)
	}
}

// once fails the test where a message was not answered once, or the nodes had
// other sessions than these, in their order and never two at a time.
func (c *cluster) once(sessions ...string) {
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
		c.t.Errorf("%d messages, and answers to %d", c.said, len(texts))
	}
	if len(g.violations) != 0 {
		c.t.Errorf("sessions side by side: %v", g.violations)
	}
	if !slices.Equal(g.sessions, sessions) {
		c.t.Errorf("the sessions were of %v, want %v", g.sessions, sessions)
	}
}

// holder waits for the nth session, and returns whose it is.
func (c *cluster) holder(n int, nodes ...*node) *node {
	c.t.Helper()
	g := c.gateway
	if !g.await(c.ctx, func() bool { return len(g.sessions) >= n }) {
		c.t.Fatalf("there were %v, and no session %d\n%s", g.sessions, n, nodes[0].log)
	}
	return nodes[slices.IndexFunc(nodes, func(n2 *node) bool { return n2.name == g.sessions[n-1] })]
}

// TestANodeThatStopsHandsItsConnectionOver, and so does one whose account there
// is changed or taken away: all that is said meanwhile is answered once.
func TestANodeThatStopsHandsItsConnectionOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := c.start("first", c.store)
	first.is("up")
	second, third := c.start("second", c.store), c.start("third", c.store)
	second.is("standby")
	third.is("standby")
	c.say(20)
	if err := first.stop(); err != nil {
		t.Errorf("%v\n%s", err, first.log)
	}
	c.say(20)
	heir := c.holder(2, second, third)
	heir.is("up")

	changed := guild()
	changed.Discord.Timeout++
	heir.configure(changed)
	heir.reload()
	c.say(20)
	last := c.holder(3, second, third)
	last.is("up")
	c.answered(second, third)

	other := map[*node]*node{second: third, third: second}[last]
	other.is("standby")
	last.configure()
	last.reload()
	other.is("up")
	c.once("first", heir.name, last.name, other.name)
}

// TestANodeWithoutTheStoreLetsItsConnectionGo before another takes it, and does
// not come back to it. What it could not take custody of the other is sent, and
// what it could not finish the other does.
func TestANodeWithoutTheStoreLetsItsConnectionGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	wire, store := newWire(t, c.store)
	first := c.start("first", store)
	first.is("up")
	second := c.start("second", c.store)
	second.is("standby")
	c.say(40)
	c.gateway.await(c.ctx, func() bool { return len(c.gateway.posts) > 5 })
	wire.cut()
	c.say(20)
	second.is("up")
	first.is("standby")
	wire.mend()
	c.say(20)
	c.answered(first, second)
	first.is("standby")
	c.once("first", "second")
}

// wire leads to a store, until it is cut.
type wire struct {
	net.Listener
	to     string
	mu     sync.Mutex
	broken bool
	ends   []net.Conn
	pumps  sync.WaitGroup
}

// newWire returns a wire to the store of a URL, and the URL of its other end.
func newWire(t *testing.T, store string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: u.Host}
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

func (w *wire) serve() {
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

func (w *wire) hangUp() {
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.ends = nil
}

// cut ends every connection, and those to come.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = true
	w.hangUp()
}

// mend lets new connections through.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = false
}
