package supervise_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley/adapters"
	"parley/adapters/supervise"
	"parley/ingest/event"
)

// store is the store that the nodes of a test share. It also records the nodes that run.
type store struct {
	mu    sync.Mutex
	owner string
	until time.Time
	users []string // the nodes that run now
	most  int      // the greatest number of nodes that ran concurrently
	begun []string

	landing sync.WaitGroup // calls that take effect late
}

// node is a node with its own connection to the store.
type node struct {
	*store
	name string
	skew time.Duration // of its clock against the store's
	stop func()        // begins a graceful stop and returns at once

	linger time.Duration // how long the work takes to end after its ctx
	fault  fault
	states []string
	asked  time.Time // when the node made its last successful call
	dead   bool      // the node was killed
}

// fault is a fault of a node's connection to the store.
type fault int

const (
	fine    fault = iota
	cut           // each call fails at once
	hanging       // each call fails at its timeout
	unclear       // each call takes effect, and fails
	late          // each call takes effect a second after it was made, even if its caller has gone
)

var errCut = errors.New("connection reset")

// AcquireLease implements supervise.LeaseStore.
func (n *node) AcquireLease(ctx context.Context, _ string, lease time.Duration) (bool, error) {
	now := time.Now()
	switch n.state() {
	case cut:
		return false, errCut
	case hanging:
		<-ctx.Done()
		return false, ctx.Err()
	case late:
		var acquired bool
		var err error
		landed := make(chan struct{})
		n.landing.Go(func() {
			advance(time.Second)
			acquired, err = n.acquire(now, lease)
			close(landed)
		})
		select {
		case <-landed:
			return acquired, err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return n.acquire(now, lease)
}

func (n *node) acquire(asked time.Time, lease time.Duration) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := asked.Add(n.skew)
	if n.owner != "" && n.owner != n.name && n.until.After(now) {
		return false, nil
	}
	n.owner, n.until = n.name, now.Add(lease)
	if n.fault == unclear {
		return false, errCut
	}
	n.asked = asked
	return true, nil
}

// ReleaseLease implements supervise.LeaseStore.
func (n *node) ReleaseLease(ctx context.Context, _ string) error {
	switch n.state() {
	case cut:
		return errCut
	case hanging:
		<-ctx.Done()
		return ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.owner == n.name {
		n.owner = ""
	}
	return nil
}

func (n *node) state() fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fault
}

func (n *node) setFault(f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = f
}

// use is the work under the lease.
func (n *node) use(ctx context.Context) error {
	n.mu.Lock()
	n.users, n.begun = append(n.users, n.name), append(n.begun, n.name)
	n.most = max(n.most, len(n.users))
	n.mu.Unlock()
	<-ctx.Done()
	n.mu.Lock()
	dead := n.dead
	n.mu.Unlock()
	if !dead {
		advance(n.linger)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users = slices.DeleteFunc(n.users, func(name string) bool { return name == n.name })
	return nil
}

// kill ends a node without a release of its lease.
func (n *node) kill() {
	n.mu.Lock()
	n.fault, n.dead = cut, true
	n.mu.Unlock()
	n.stop()
}

func (n *node) run(ctx context.Context, running *sync.WaitGroup) *node {
	ctx, n.stop = context.WithCancel(ctx)
	lease := supervise.Lease{Store: n, Name: "connection", Log: slog.New(slog.DiscardHandler), Report: func(state adapters.ConnectionState) {
		n.states = append(n.states, string(state))
	}}
	running.Go(func() { _ = lease.While(ctx, n.use) })
	return n
}

// running lists the nodes that run, after every goroutine of the bubble is blocked.
func (s *store) running() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users)
}

// inBubble runs a test and stops its nodes at the end. It checks that no two nodes ever
// ran concurrently.
func inBubble(t *testing.T, test func(s *store, start func(*node) *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		s := &store{}
		test(s, func(n *node) *node {
			n.store = s
			return n.run(ctx, &running)
		})
		cancel()
		running.Wait()
		s.landing.Wait()
		if s.most != 1 {
			t.Errorf("%d nodes ran concurrently", s.most)
		}
		if len(s.users) != 0 || s.owner != "" {
			t.Errorf("at the end, %v run and %q has the lease", s.users, s.owner)
		}
	})
}

// takeover returns how long the second node waits until it runs alone.
func takeover(t *testing.T, s *store, second string) time.Duration {
	t.Helper()
	begun := time.Now()
	for !slices.Equal(s.running(), []string{second}) {
		if advance(100 * time.Millisecond); time.Since(begun) > time.Minute {
			t.Fatalf("%v run", s.running())
		}
	}
	return time.Since(begun)
}

// TestAStoppedNodeReleasesItsLease proves that the next node need not wait for the end of
// the lease.
func TestAStoppedNodeReleasesItsLease(t *testing.T) {
	inBubble(t, func(s *store, start func(*node) *node) {
		first := start(&node{name: "a", linger: 500 * time.Millisecond})
		s.running()
		second := start(&node{name: "b"})
		advance(time.Hour)
		if diff := cmp.Diff([]string{"a"}, s.running()); diff != "" {
			t.Error(diff)
		}
		first.stop()
		if took := takeover(t, s, "b"); took > 1500*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
		if diff := cmp.Diff([]string{"standby", "starting"}, second.states); diff != "" || len(first.states) != 0 {
			t.Errorf("states of the first: %v, of the second (-want +got):\n%s", first.states, diff)
		}
	})
}

// TestALeaseOfADeadNodePasses proves that the next node runs within ten seconds, and not
// before the lease ends.
func TestALeaseOfADeadNodePasses(t *testing.T) {
	inBubble(t, func(s *store, start func(*node) *node) {
		first := start(&node{name: "a"})
		s.running()
		start(&node{name: "b"})
		advance(time.Hour + 500*time.Millisecond)
		s.running()
		asked := first.asked
		first.kill()
		takeover(t, s, "b")
		if took := time.Since(asked); took < 8*time.Second || took > 10*time.Second {
			t.Errorf("taken over %v after the last renewal", took)
		}
	})
}

// TestANodeWithoutAStoreStops proves that a node stops before another may acquire the
// lease, and acquires it again if no other node has.
func TestANodeWithoutAStoreStops(t *testing.T) {
	for name, f := range map[string]fault{"cut": cut, "hanging": hanging} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a", linger: time.Second})
				advance(time.Hour + 500*time.Millisecond)
				s.running()
				n.setFault(f)
				advance(6*time.Second - time.Since(n.asked) - time.Millisecond)
				if diff := cmp.Diff([]string{"a"}, s.running()); diff != "" {
					t.Errorf("too early (-want +got):\n%s", diff)
				}
				advance(time.Millisecond + n.linger)
				if still := s.running(); len(still) != 0 {
					t.Errorf("%v still run a second after the limit", still)
				}
				n.setFault(fine)
				advance(3 * time.Second)
				s.running()
				if diff := cmp.Diff([]string{"a", "a"}, s.begun); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"standby", "starting"}, n.states); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestALeaseCountsFromItsCall proves that a lease counts from the call that acquired or
// renewed it, not from the answer.
func TestALeaseCountsFromItsCall(t *testing.T) {
	for name, before := range map[string]time.Duration{"taken": 1500 * time.Millisecond, "renewed": time.Hour + 1500*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a", fault: late})
				advance(before)
				s.running()
				n.setFault(cut)
				for len(s.running()) > 0 {
					advance(100 * time.Millisecond)
				}
				if used := time.Since(n.asked); used > 6*time.Second {
					t.Errorf("the lease was used until %v after the call", used)
				}
				n.setFault(fine)
				advance(2 * time.Second)
			})
		})
	}
}

// TestAStopAwaitsItsCall proves that a stop awaits a call in progress. If such a call
// took effect after the stop, the other nodes would wait for the whole lease.
func TestAStopAwaitsItsCall(t *testing.T) {
	for name, before := range map[string]time.Duration{"take": 500 * time.Millisecond, "renewal": 3500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a", fault: late})
				advance(before)
				n.stop()
				advance(2 * time.Second)
				if s.running(); s.owner != "" {
					t.Errorf("%q still has the lease", s.owner)
				}
			})
		})
	}
}

// TestALeaseSurvivesAShortFault proves that two renewals may fail.
func TestALeaseSurvivesAShortFault(t *testing.T) {
	for name, f := range map[string]fault{"cut": cut, "unclear": unclear, "late": late} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a"})
				advance(time.Hour + 500*time.Millisecond)
				n.setFault(f)
				advance(4 * time.Second)
				n.setFault(fine)
				advance(time.Minute)
				s.running()
				if diff := cmp.Diff([]string{"a"}, s.begun); diff != "" || len(n.states) != 0 {
					t.Errorf("states %v, runs (-want +got):\n%s", n.states, diff)
				}
			})
		})
	}
}

// TestAtMostOneNodeRuns starts, stops and kills nodes, and interrupts their connections,
// with clocks that differ. No two nodes ever run concurrently, and ten seconds after the
// last step one node runs.
func TestAtMostOneNodeRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := rapid.SliceOfN(rapid.Custom(drawStep), 5, 40).Draw(rt, "plan")
		var most, left int
		synctest.Test(t, func(t *testing.T) { most, left = happens(t.Context(), plan) })
		if most > 1 || left > 1 || left < 0 {
			rt.Fatalf("%d nodes ran concurrently, and %d at the end", most, left)
		}
	})
}

// step is something that happens to the nodes, and the pause after it.
type step struct {
	What         string // start, stop, kill, fault
	Which        int    // index into the nodes of that moment
	Fault        fault
	Skew, Linger time.Duration
	Pause        time.Duration
}

func drawStep(t *rapid.T) step {
	milliseconds := func(from, to int, what string) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(t, what)) * time.Millisecond
	}
	return step{
		What:  rapid.SampledFrom([]string{"start", "start", "stop", "kill", "fault", "fault"}).Draw(t, "what"),
		Which: rapid.IntRange(0, 9).Draw(t, "which"), Fault: fault(rapid.IntRange(int(fine), int(late)).Draw(t, "fault")),
		Skew: milliseconds(-200, 200, "skew"), Linger: milliseconds(0, 1000, "linger"), Pause: milliseconds(0, 9000, "pause"),
	}
}

// happens returns the greatest number of nodes that ran concurrently, and the number that
// ran ten seconds after the last step. left is -1 if no node ran though one could.
func happens(ctx context.Context, plan []step) (most, left int) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	s := &store{}
	var nodes []*node
	for i, step := range plan {
		if step.What == "start" {
			n := &node{store: s, name: strconv.Itoa(i), skew: step.Skew, linger: step.Linger}
			nodes = append(nodes, n.run(ctx, &running))
		} else if len(nodes) > 0 {
			at := step.Which % len(nodes)
			switch step.What {
			case "fault":
				nodes[at].setFault(step.Fault)
			case "stop":
				nodes[at].stop()
				nodes = slices.Delete(nodes, at, at+1)
			case "kill":
				nodes[at].kill()
				nodes = slices.Delete(nodes, at, at+1)
			}
		}
		advance(step.Pause)
	}
	for _, n := range nodes {
		n.setFault(fine)
	}
	advance(10*time.Second + 400*time.Millisecond) // the greatest difference of the clocks
	left = len(s.running())
	if left == 0 && len(nodes) > 0 {
		left = -1
	}
	cancel()
	running.Wait()
	s.landing.Wait()
	return s.most, left
}

// TestAnExclusiveAdapterStandsBy proves that an exclusive adapter waits while another
// node has the lease. An adapter whose configuration makes it not exclusive runs at once.
func TestAnExclusiveAdapterStandsBy(t *testing.T) {
	for name, c := range map[string]struct {
		exclusive bool
		states    []adapters.ConnectionState
	}{
		"exclusive": {true, []adapters.ConnectionState{adapters.Starting, adapters.Standby, adapters.Starting, adapters.Up}},
		"not":       {false, []adapters.ConnectionState{adapters.Starting, adapters.Up}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var states []adapters.ConnectionState
				s := &store{owner: "another", until: time.Now().Add(5 * time.Second)}
				r := &runner{start: time.Now()}
				supervise.Run(ctx, supervise.Connection{
					Connection: adapters.Connection{Exclusive: c.exclusive, Run: r.Run}, Lease: supervise.Lease{Store: &node{store: s, name: "this"}},
					Link: adapters.Link{Up: func(event.Self) {}, Log: slog.New(slog.DiscardHandler)}, Report: func(s adapters.Status) { states = append(states, s.State) },
				})
				if diff := cmp.Diff(c.states, states); diff != "" {
					t.Error(diff)
				}
				if waited := r.begun[0] >= 5*time.Second; len(r.begun) != 1 || waited != c.exclusive {
					t.Errorf("the runner began after %v", r.begun)
				}
			})
		})
	}
}

// TestAFailedAdapterReleasesItsLease proves that the lease is free while a failed adapter
// waits for its restart, and after the platform has refused it.
func TestAFailedAdapterReleasesItsLease(t *testing.T) {
	for name, end := range map[string]func(context.Context, adapters.Link) error{
		"failed": fails,
		"panic":  func(context.Context, adapters.Link) error { panic("a bug") },
		"refused": func(context.Context, adapters.Link) error {
			return &adapters.RefusedError{Err: errors.New("invalid_auth")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := &store{}
				held := ""
				r := &runner{does: []func(context.Context, adapters.Link) error{func(ctx context.Context, link adapters.Link) error {
					held = s.owner
					return end(ctx, link)
				}}}
				var running sync.WaitGroup
				running.Go(func() {
					supervise.Run(ctx, supervise.Connection{
						Connection: adapters.Connection{Exclusive: true, Run: r.Run}, Lease: supervise.Lease{Store: &node{store: s, name: "this"}},
						Link: adapters.Link{Up: func(event.Self) {}, Log: slog.New(slog.DiscardHandler)}, Report: func(adapters.Status) {},
					})
				})
				synctest.Wait()
				if held != "this" || s.owner != "" {
					t.Errorf("%q had the lease in the run, %q after it", held, s.owner)
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// advance moves the bubble's clock on by d.
func advance(d time.Duration) { <-time.After(d) }
