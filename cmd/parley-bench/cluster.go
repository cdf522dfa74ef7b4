package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// clusterFlags are cluster's own.
type clusterFlags struct {
	killFlags
	cuts  time.Duration
	stops int
	stop  time.Duration
	away  string
}

func (f *clusterFlags) define(flags *flag.FlagSet) {
	f.killFlags.define(flags)
	flags.DurationVar(&f.cuts, "cuts", 500*time.Millisecond, "the mean time between two connections of the daemons to PostgreSQL that are terminated; 0 for none")
	flags.IntVar(&f.stops, "stops", 2, "how often a daemon is stopped (SIGSTOP) in the middle of a post")
	flags.DurationVar(&f.stop, "stop", 20*time.Second, "how long it stays stopped: twice as long as a lease")
	flags.StringVar(&f.away, "outage", "", "a shell command that takes PostgreSQL away and brings it back, run once in the middle of the load; empty for none")
}

// validate checks what is cluster's alone.
func (f *clusterFlags) validate() error {
	if f.cuts < 0 || f.stops < 0 || f.stop < 0 {
		return usageError{errors.New("cuts, stops and stop must not be below 0")}
	}
	if f.away != "" && f.postgres == "" {
		return usageError{errors.New("an outage is one of -postgres")}
	}
	return nil
}

// clusterMargin is a ledger's where the node that has a thread hears from another
// what was accepted for it, also when its connection for that was just terminated.
const clusterMargin = 2 * time.Second

// runCluster harms several daemons on one store, and keeps the ledger.
func runCluster(ctx context.Context, args []string, out io.Writer) (err error) {
	f := clusterFlags{killFlags: killFlags{nodesFlags: nodesFlags{daemons: 4}, kills: 60, gentle: 0.25, after: 2 * time.Second, margin: clusterMargin}}
	if err := parseFlags("cluster", args, f.define); err != nil {
		return err
	}
	p, err := f.prepare()
	if err != nil {
		return err
	}
	if err := f.validate(); err != nil {
		return err
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	b.printf("cluster: profile %s, %s, %d kills, %d stops of %v, a connection terminated every %v, %v messages/s, margin %v, seed %d\n",
		f.profile, f.words(), f.kills, f.stops, f.stop, f.cuts, p.rate, f.margin, f.seed)
	k := newKilling(b, f.killFlags, p)
	c := &clustering{killing: k, clusterFlags: f, ambush: &ambush{faults: k.plan},
		moments: rand.New(rand.NewPCG(f.seed, 1)), intervals: rand.New(rand.NewPCG(f.seed, 2))}
	k.plan, k.harm, k.outage = c.ambush.plan, c.harm, &outage{command: f.away}
	err = k.run(ctx)
	b.printf("%v", k.outage)
	b.printf("%d connections terminated; %d times a daemon was stopped in the middle of a post\n", c.cut, c.stopped)
	return err
}

// clustering is one run of cluster.
type clustering struct {
	*killing
	clusterFlags
	ambush    *ambush
	moments   *rand.Rand // of the stops
	intervals *rand.Rand // between the cuts
	cut       int        // connections so far
	stopped   int        // daemons so far
}

// harm kills and stops daemons until a phase's share of both is done, and
// terminates connections meanwhile.
func (c *clustering) harm(ctx context.Context, phase int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	during, over := context.WithCancel(ctx)
	defer over()
	var cutting, others sync.WaitGroup
	try := func(do func() error) func() {
		return func() {
			if err := do(); err != nil {
				fail(err)
			}
		}
	}
	cutting.Go(try(func() error { return c.cutAll(during) }))
	others.Go(try(func() error { return c.stopAll(ctx, (c.stops+phase)/len(crowds())) }))
	others.Go(try(func() error { return c.killings(ctx, phase) }))
	others.Go(try(func() error { return c.strike(ctx, phase) }))
	others.Wait()
	over()
	cutting.Wait()
	return context.Cause(ctx)
}

// cutAll terminates random connections of the daemons until ctx ends.
func (c *clustering) cutAll(ctx context.Context) error {
	if c.cuts == 0 || c.nodes.database == nil {
		return nil
	}
	for pause(ctx, time.Duration(c.intervals.Int64N(2*int64(c.cuts)))) {
		begun := time.Now()
		found, err := c.nodes.database.cut(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !c.outage.during(begun) {
			return err
		}
		if found {
			c.cut++
		}
	}
	return nil
}

// stopAll stops a random daemon n times, one after the other.
func (c *clustering) stopAll(ctx context.Context, n int) error {
	for range n {
		if !pause(ctx, time.Duration(c.moments.Int64N(int64(c.profile.after)))) {
			return ctx.Err()
		}
		if err := c.stopOne(ctx, c.nodes.seize(c.moments)); err != nil {
			return err
		}
		c.stopped++
	}
	return nil
}

// postsWithin is how soon a daemon that is waited for must post something.
const postsWithin = time.Minute

// stopOne stops a daemon that is held, when it posts next, and lets it go on.
func (c *clustering) stopOne(ctx context.Context, daemon *child) error {
	defer daemon.held.Unlock()
	waiting, cancel := context.WithTimeout(ctx, postsWithin)
	defer cancel()
	select {
	case err := <-c.ambush.await(daemon):
		if err != nil {
			return err
		}
	case <-waiting.Done():
		c.ambush.await(nil)
		return fmt.Errorf("%s was to be stopped in a post, and made none: %w", daemon.name(), waiting.Err())
	}
	pause(ctx, c.stop)
	return daemon.thaw()
}

// ambush stops a daemon when one of its posts has arrived at the API and was not
// answered yet. What the API does with that post, it does while the daemon stands.
type ambush struct {
	faults func(slacktest.Call) slacktest.Fault

	mu     sync.Mutex
	target *child // nil for nobody
	sprung chan error
}

// await stops the daemon at its next post; the channel says when it stands. The
// one that was awaited before is left alone.
func (a *ambush) await(daemon *child) <-chan error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.target, a.sprung = daemon, make(chan error, 1)
	return a.sprung
}

func (a *ambush) plan(call slacktest.Call) slacktest.Fault {
	if call.Method == "chat.postMessage" {
		a.spring(call.Client)
	}
	return a.faults(call)
}

func (a *ambush) spring(client string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.target == nil || a.target.name() != client {
		return
	}
	a.sprung <- a.target.freeze()
	a.target = nil
}
