package adapters_test

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
	"parley/ingest/event"
)

// store is where the nodes of a test agree, and who uses what they agree on.
type store struct {
	mu    sync.Mutex
	owner string
	until time.Time
	users []string // who runs now
	most  int      // that were ever running side by side
	begun []string

	landing sync.WaitGroup // calls that take effect late
}

// node is one of them, with its own way to the store.
type node struct {
	*store
	name string
	skew time.Duration // of its clock against the store's
	stop func()        // a drain; it returns at once

	linger time.Duration // how long what it runs takes to end
	fault  fault
	states []string
	asked  time.Time // when it made the last call that succeeded
	dead   bool      // it went without a word
}

// fault is what is wrong with a node's way to the store.
type fault int

const (
	fine    fault = iota
	cut           // a call fails at once
	hanging       // a call fails when its time is over
	unclear       // a call takes effect, and fails
	late          // a call takes effect a second after it was made, whether its caller waits or not
)

var errCut = errors.New("connection reset")

// AcquireLease implements adapters.LeaseStore.
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
			pass(time.Second)
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

// ReleaseLease implements adapters.LeaseStore.
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

func (n *node) suffers(f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = f
}

// use is what the lease is for.
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
		pass(n.linger)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users = slices.DeleteFunc(n.users, func(name string) bool { return name == n.name })
	return nil
}

// kill ends a node that has no time to give anything back.
func (n *node) kill() {
	n.mu.Lock()
	n.fault, n.dead = cut, true
	n.mu.Unlock()
	n.stop()
}

func (n *node) run(ctx context.Context, running *sync.WaitGroup) *node {
	ctx, n.stop = context.WithCancel(ctx)
	lease := adapters.ExclusiveLease{Store: n, Name: "what", Log: slog.New(slog.DiscardHandler), Waiting: func(waits bool) {
		n.states = append(n.states, map[bool]string{true: "waits", false: "has it"}[waits])
	}}
	running.Go(func() { _ = lease.While(ctx, n.use) })
	return n
}

// running lists who runs when all is quiet.
func (s *store) running() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users)
}

// together runs a test on nodes, which are stopped at its end.
func together(t *testing.T, test func(s *store, start func(*node) *node)) {
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
			t.Errorf("%d nodes ran side by side", s.most)
		}
		if len(s.users) != 0 || s.owner != "" {
			t.Errorf("at the end %v are running, and %q has the lease", s.users, s.owner)
		}
	})
}

// takeover is how long the second of two nodes waits once f has happened.
func takeover(t *testing.T, s *store, second string) time.Duration {
	t.Helper()
	begun := time.Now()
	for !slices.Equal(s.running(), []string{second}) {
		if pass(100 * time.Millisecond); time.Since(begun) > time.Minute {
			t.Fatalf("%v are running", s.running())
		}
	}
	return time.Since(begun)
}

// TestAStoppedNodeReleasesItsLease: the next node need not wait for the end of the lease.
func TestAStoppedNodeReleasesItsLease(t *testing.T) {
	together(t, func(s *store, start func(*node) *node) {
		first := start(&node{name: "a", linger: 500 * time.Millisecond})
		s.running()
		second := start(&node{name: "b"})
		pass(time.Hour)
		if diff := cmp.Diff([]string{"a"}, s.running()); diff != "" {
			t.Error(diff)
		}
		first.stop()
		if took := takeover(t, s, "b"); took > 1500*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
		if diff := cmp.Diff([]string{"waits", "has it"}, second.states); diff != "" || len(first.states) != 0 {
			t.Errorf("the first heard %v, the second:\n%s", first.states, diff)
		}
	})
}

// TestANodeThatDiesIsFollowed within ten seconds, and not before its lease ends.
func TestANodeThatDiesIsFollowed(t *testing.T) {
	together(t, func(s *store, start func(*node) *node) {
		first := start(&node{name: "a"})
		s.running()
		start(&node{name: "b"})
		pass(time.Hour + 500*time.Millisecond)
		s.running()
		asked := first.asked
		first.kill()
		takeover(t, s, "b")
		if took := time.Since(asked); took < 8*time.Second || took > 10*time.Second {
			t.Errorf("taken over %v after the last renewal", took)
		}
	})
}

// TestANodeWithoutAStoreLetsGo before another may have the lease, and takes it
// again when nobody else has.
func TestANodeWithoutAStoreLetsGo(t *testing.T) {
	for name, f := range map[string]fault{"cut": cut, "hanging": hanging} {
		t.Run(name, func(t *testing.T) {
			together(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a", linger: time.Second})
				pass(time.Hour + 500*time.Millisecond)
				s.running()
				n.suffers(f)
				pass(6*time.Second - time.Since(n.asked) - time.Millisecond)
				if diff := cmp.Diff([]string{"a"}, s.running()); diff != "" {
					t.Errorf("before its time:\n%s", diff)
				}
				pass(time.Millisecond + n.linger)
				if still := s.running(); len(still) != 0 {
					t.Errorf("%v still have it a second after its time", still)
				}
				n.suffers(fine)
				pass(3 * time.Second)
				s.running()
				if diff := cmp.Diff([]string{"a", "a"}, s.begun); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"waits", "has it"}, n.states); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestTheLeaseCountsFromTheCall that took or renewed it, not from its answer.
func TestTheLeaseCountsFromTheCall(t *testing.T) {
	for name, before := range map[string]time.Duration{"taken": 1500 * time.Millisecond, "renewed": time.Hour + 1500*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			together(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a", fault: late})
				pass(before)
				s.running()
				n.suffers(cut)
				for len(s.running()) > 0 {
					pass(100 * time.Millisecond)
				}
				if used := time.Since(n.asked); used > 6*time.Second {
					t.Errorf("used until %v after the call", used)
				}
				n.suffers(fine)
				pass(2 * time.Second)
			})
		})
	}
}

// TestACallUnderWayIsAwaited: what takes effect after the node has ended would
// keep the others waiting for the whole lease.
func TestACallUnderWayIsAwaited(t *testing.T) {
	for name, before := range map[string]time.Duration{"take": 500 * time.Millisecond, "renewal": 3500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			together(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a", fault: late})
				pass(before)
				n.stop()
				pass(2 * time.Second)
				if s.running(); s.owner != "" {
					t.Errorf("%q still has the lease", s.owner)
				}
			})
		})
	}
}

// TestALeaseOutlivesAShortTrouble: two renewals may fail.
func TestALeaseOutlivesAShortTrouble(t *testing.T) {
	for name, f := range map[string]fault{"cut": cut, "unclear": unclear, "late": late} {
		t.Run(name, func(t *testing.T) {
			together(t, func(s *store, start func(*node) *node) {
				n := start(&node{name: "a"})
				pass(time.Hour + 500*time.Millisecond)
				n.suffers(f)
				pass(4 * time.Second)
				n.suffers(fine)
				pass(time.Minute)
				s.running()
				if diff := cmp.Diff([]string{"a"}, s.begun); diff != "" || len(n.states) != 0 {
					t.Errorf("it heard %v\n%s", n.states, diff)
				}
			})
		})
	}
}

// TestOneAtATimeWhateverHappens: nodes come, stop, die, and lose the store for a
// while, with clocks that differ. Never do two run side by side, and ten seconds
// after the last of it one runs.
func TestOneAtATimeWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := rapid.SliceOfN(rapid.Custom(drawStep), 5, 40).Draw(rt, "plan")
		var most, left int
		synctest.Test(t, func(t *testing.T) { most, left = happens(t.Context(), plan) })
		if most > 1 || left > 1 || left < 0 {
			rt.Fatalf("at most %d nodes ran side by side, and %d at the end", most, left)
		}
	})
}

// step is something that happens to the nodes, and the time that then passes.
type step struct {
	What         string // comes, stops, dies, suffers
	Which        int    // of the nodes that there are
	Fault        fault
	Skew, Linger time.Duration
	Pause        time.Duration
}

func drawStep(t *rapid.T) step {
	milliseconds := func(from, to int, what string) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(t, what)) * time.Millisecond
	}
	return step{
		What:  rapid.SampledFrom([]string{"comes", "comes", "stops", "dies", "suffers", "suffers"}).Draw(t, "what"),
		Which: rapid.IntRange(0, 9).Draw(t, "which"), Fault: fault(rapid.IntRange(int(fine), int(late)).Draw(t, "fault")),
		Skew: milliseconds(-200, 200, "skew"), Linger: milliseconds(0, 1000, "linger"), Pause: milliseconds(0, 9000, "pause"),
	}
}

// happens returns how many nodes ran side by side, and how many did ten seconds
// after the last step; -1 where nobody did though somebody could.
func happens(ctx context.Context, plan []step) (most, left int) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	s := &store{}
	var nodes []*node
	for i, step := range plan {
		if step.What == "comes" {
			n := &node{store: s, name: strconv.Itoa(i), skew: step.Skew, linger: step.Linger}
			nodes = append(nodes, n.run(ctx, &running))
		} else if len(nodes) > 0 {
			at := step.Which % len(nodes)
			switch step.What {
			case "suffers":
				nodes[at].suffers(step.Fault)
			case "stops":
				nodes[at].stop()
				nodes = slices.Delete(nodes, at, at+1)
			case "dies":
				nodes[at].kill()
				nodes = slices.Delete(nodes, at, at+1)
			}
		}
		pass(step.Pause)
	}
	for _, n := range nodes {
		n.suffers(fine)
	}
	pass(10*time.Second + 400*time.Millisecond) // the clocks' difference
	left = len(s.running())
	if left == 0 && len(nodes) > 0 {
		left = -1
	}
	cancel()
	running.Wait()
	s.landing.Wait()
	return s.most, left
}

// alone is a Runner of which there may be one.
type alone struct {
	*runner
	exclusive bool
}

func (a alone) Exclusive() bool { return a.exclusive }

// TestAnExclusiveAdapterStandsBy while another node has the lease; one that is
// not, as it is configured, runs beside it.
func TestAnExclusiveAdapterStandsBy(t *testing.T) {
	for name, c := range map[string]struct {
		exclusive bool
		states    []adapters.State
	}{
		"exclusive": {true, []adapters.State{adapters.Starting, adapters.Standby, adapters.Starting, adapters.Up}},
		"not":       {false, []adapters.State{adapters.Starting, adapters.Up}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var states []adapters.State
				s := &store{owner: "another", until: time.Now().Add(5 * time.Second)}
				r := &runner{start: time.Now()}
				adapters.Supervise(ctx, adapters.Supervised{
					Runner: alone{r, c.exclusive}, Lease: adapters.ExclusiveLease{Store: &node{store: s, name: "this"}}, Log: slog.New(slog.DiscardHandler),
					Up: func(event.Self) {}, Report: func(s adapters.Status) { states = append(states, s.State) },
				})
				if diff := cmp.Diff(c.states, states); diff != "" {
					t.Error(diff)
				}
				if waited := r.begun[0] >= 5*time.Second; len(r.begun) != 1 || waited != c.exclusive {
					t.Errorf("run after %v", r.begun)
				}
			})
		})
	}
}

// TestAFailureIsAnothersChance: what an adapter had is given back while it waits
// to be run again, and for good when the platform refuses it.
func TestAFailureIsAnothersChance(t *testing.T) {
	for name, end := range map[string]func(context.Context, adapters.Link) error{
		"failed": breaks,
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
					adapters.Supervise(ctx, adapters.Supervised{
						Runner: alone{r, true}, Lease: adapters.ExclusiveLease{Store: &node{store: s, name: "this"}}, Log: slog.New(slog.DiscardHandler),
						Up: func(event.Self) {}, Report: func(adapters.Status) {},
					})
				})
				synctest.Wait()
				if held != "this" || s.owner != "" {
					t.Errorf("%q had it in the run, %q after it", held, s.owner)
				}
				cancel()
				running.Wait()
			})
		})
	}
}
