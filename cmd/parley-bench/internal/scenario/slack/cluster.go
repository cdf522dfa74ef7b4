package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Cluster is kill with several daemons and further faults.
type Cluster struct{ Kill }

// faults are the faults besides the kills.
type faults struct {
	cuts, suspension time.Duration
	suspensions      int
	outage           string

	ambush ambush
	cut    int // connections so far

	mu           sync.Mutex
	begun, ended time.Time // of the outage; zero if it has not
	stills       []still
}

// still is the time in which a daemon was suspended.
type still struct {
	daemon   string
	from, to time.Time
}

// aroundRequest is the time in which the suspensions before a request are described with it.
const aroundRequest = time.Minute

// describe describes when a daemon stood still before a time.
func (f *faults) describe(daemon string, at time.Time) (words string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.stills {
		if s.daemon == daemon && s.from.Before(at) && at.Sub(s.to) < aroundRequest {
			words += fmt.Sprintf(", suspended from %v to %v before it", at.Sub(s.from).Round(time.Millisecond), at.Sub(s.to).Round(time.Millisecond))
		}
	}
	return words
}

// clusterMargin is enough for a node that learns of another node's durable accept
// although its connection for that was just terminated.
const clusterMargin = 2 * time.Second

func (c *Cluster) Define(f *rig.FlagSet) {
	c.defineWith(f, 60, 0.25, 2*time.Second, clusterMargin)
	f.Duration(&c.cuts, "cuts", 500*time.Millisecond, 0, "mean time between two terminated connections from a daemon to PostgreSQL; 0 for none")
	f.Number(&c.suspensions, "stops", 2, 0, "number of times that a daemon is suspended (SIGSTOP) in the middle of a post")
	f.Duration(&c.suspension, "stop", 20*time.Second, 0, "duration of a suspension; the default is two leases")
	f.StringVar(&c.outage, "outage", "", "a shell command that stops PostgreSQL and starts it again; it runs once in the middle of the load")
}

func (c *Cluster) Check(b *rig.Bench) error {
	if c.outage != "" && b.Postgres == "" {
		return errors.New("an outage needs -postgres")
	}
	return c.Kill.Check(b)
}

func (c *Cluster) Run(ctx context.Context, b *rig.Bench) error {
	err := c.Kill.Run(ctx, b)
	b.Printf("%d connections terminated; %d times a daemon was suspended in the middle of a post\n", c.cut, len(c.stills))
	if c.outage != "" {
		b.Printf("PostgreSQL was away for %v\n", c.ended.Sub(c.begun).Round(time.Millisecond))
	}
	return err
}

// harm applies a phase's share of all faults concurrently. It terminates connections
// until the others have ended.
func (k *Kill) harm(ctx context.Context, phase int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	cutting, over := context.WithCancel(ctx)
	var cuts, others sync.WaitGroup
	start := func(group *sync.WaitGroup, do func() error) {
		group.Go(func() {
			if err := do(); err != nil {
				fail(err)
			}
		})
	}
	random := func(stream uint64) *rand.Rand { return k.Draws(stream + 10*uint64(phase)) }
	share := func(n int) int { return (n + phase) / len(phases()) }
	start(&cuts, func() error { return k.cutAll(cutting, random(2)) })
	start(&others, func() error {
		return trial.Repeat(ctx, k.Random, share(k.kills), k.after, func() error { return k.killOne(ctx) })
	})
	start(&others, func() error {
		random := random(1)
		return trial.Repeat(ctx, random, share(k.suspensions), k.after, func() error { return k.suspendOne(ctx, k.Nodes.LockOne(random)) })
	})
	if k.outage != "" && phase == len(phases())/2 {
		half := time.Duration(k.kills/len(phases())/2) * k.after / 2 // about half of the phase's kills
		start(&others, func() error { return k.interrupt(ctx, half) })
	}
	others.Wait()
	over()
	cuts.Wait()
	return context.Cause(ctx)
}

// cutAll terminates random connections of the daemons until ctx ends.
func (k *Kill) cutAll(ctx context.Context, random *rand.Rand) error {
	if k.cuts == 0 || k.Nodes.Database == nil {
		return nil
	}
	for wake.After(ctx, time.Duration(random.Int64N(2*int64(k.cuts)))) {
		begun := time.Now()
		found, err := k.Nodes.Database.Cut(ctx)
		if found {
			k.cut++
		}
		if err != nil && ctx.Err() == nil && !k.outageSince(begun) {
			return err
		}
	}
	return nil
}

// postWithin bounds the wait for a daemon's next post.
const postWithin = time.Minute

// suspendOne suspends a locked daemon at its next post, and resumes and unlocks it later.
func (k *Kill) suspendOne(ctx context.Context, daemon *rig.Child) error {
	defer daemon.Unlock()
	waiting, cancel := context.WithTimeout(ctx, postWithin)
	defer cancel()
	k.ambush.target.Store(daemon)
	select {
	case err := <-k.ambush.suspended:
		if err != nil {
			return err
		}
	case <-waiting.Done():
		k.ambush.target.Store(nil)
		return fmt.Errorf("%s made no post in which to suspend it: %w", daemon.Name(), waiting.Err())
	}
	s := still{daemon: daemon.Name(), from: time.Now()}
	wake.After(ctx, k.suspension)
	s.to = time.Now()
	k.mu.Lock()
	k.stills = append(k.stills, s)
	k.mu.Unlock()
	return daemon.Signal(syscall.SIGCONT)
}

// ambush suspends a daemon when one of its posts has reached the API and has no answer
// yet. The API handles the post while the daemon is suspended.
type ambush struct {
	target    atomic.Pointer[rig.Child] // nil for none
	suspended chan error                // gets the result when the target is suspended
}

// onCall receives a call before the API handles it.
func (a *ambush) onCall(call slacktest.Call) {
	daemon := a.target.Load()
	if call.Method == "chat.postMessage" && daemon != nil && daemon.Name() == call.Client && a.target.CompareAndSwap(daemon, nil) {
		a.suspended <- daemon.Suspend()
	}
}

// outageWithin bounds the outage's command, and the server's return after it.
const outageWithin = 2 * time.Minute

// interrupt runs the outage's command after a delay, and returns when the server answers
// again. The command is never interrupted, since half of it would leave no server.
func (k *Kill) interrupt(ctx context.Context, after time.Duration) error {
	if !wake.After(ctx, after) {
		return ctx.Err()
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), outageWithin)
	defer cancel()
	admin := k.Nodes.Database.Admin
	admin.SetMaxIdleConns(-1) // no connection may be left over from before
	k.mark(&k.begun)
	var output bytes.Buffer
	command := exec.CommandContext(within, "sh", "-c", k.outage)
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = time.Second // a server that the command started keeps the pipe open
	if err := command.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s: %w\n%s", k.outage, err, &output)
	}
	for err := admin.PingContext(within); err != nil; err = admin.PingContext(within) {
		if !wake.After(within, 20*time.Millisecond) {
			return fmt.Errorf("PostgreSQL is not back after %v: %w", outageWithin, err)
		}
	}
	k.mark(&k.ended)
	return nil
}

func (f *faults) mark(at *time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*at = time.Now()
}

// outageSince reports whether the server was away at some time since begun.
func (f *faults) outageSince(begun time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.begun.IsZero() && (f.ended.IsZero() || f.ended.After(begun))
}
