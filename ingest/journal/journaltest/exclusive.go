package journaltest

import (
	"slices"
	"sync"
	"time"
)

func leasePromises() []promise {
	return []promise{
		{"one node at a time has an exclusive lease", oneHolder},
		{"an exclusive lease lasts for its duration from the last renewal", leaseExpires},
		{"a released exclusive lease is free at once", leaseReleased},
		{"no node releases the lease of another", leaseOfAnother},
		{"one of several concurrent calls gets the lease", leaseRace},
		{"in an embedded store, every lease is free at every start", leaseEmbedded},
	}
}

// pair returns two nodes on one store.
func pair(f *fixture) (a, b *fixture) {
	return process(f.failing, f.ctx, f.engine, f.clock, "a", time.Minute), process(f.failing, f.ctx, f.engine, f.clock, "b", time.Minute)
}

// acquires requests an exclusive lease of ten seconds.
func (f *fixture) acquires(name string) bool {
	f.Helper()
	acquired, err := f.Threads.AcquireLease(f.ctx, name, 10*time.Second)
	f.must(err)
	return acquired
}

func oneHolder(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.acquires("x"), true)
	same(f, "the second", b.acquires("x"), false)
	same(f, "something else", b.acquires("y"), true)
	same(f, "the first, again", a.acquires("x"), true)
}

func leaseExpires(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.acquires("x"), true)
	f.clock.advance(9 * time.Second)
	same(f, "the first renews", a.acquires("x"), true)
	f.clock.advance(10*time.Second - time.Millisecond)
	same(f, "the second, before the end", b.acquires("x"), false)
	f.clock.advance(time.Millisecond)
	same(f, "the second", b.acquires("x"), true)
	same(f, "the first, after the end", a.acquires("x"), false)
	f.clock.advance(10 * time.Second)
	same(f, "the second renews an expired lease", b.acquires("x"), true)
}

func leaseReleased(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.acquires("x"), true)
	same(f, "its other", a.acquires("y"), true)
	f.must(a.Threads.ReleaseLease(f.ctx, "x"))
	same(f, "the second", b.acquires("x"), true)
	same(f, "a lease that was not released", b.acquires("y"), false)
	f.must(b.Threads.ReleaseLease(f.ctx, "z"))
}

func leaseOfAnother(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.acquires("x"), true)
	f.must(b.Threads.ReleaseLease(f.ctx, "x"))
	same(f, "the second", b.acquires("x"), false)
	f.clock.advance(10 * time.Second)
	same(f, "the second, after the lease's end", b.acquires("x"), true)
	f.must(a.Threads.ReleaseLease(f.ctx, "x"))
	same(f, "the first, which had the lease before", a.acquires("x"), false)
}

func leaseRace(f *fixture) {
	for round := range 10 {
		held := make([]bool, 8)
		errs := make([]error, len(held))
		var asking sync.WaitGroup
		for i := range held {
			n := process(f.failing, f.ctx, f.engine, f.clock, string(rune('a'+i)), time.Minute)
			asking.Go(func() { held[i], errs[i] = n.Threads.AcquireLease(f.ctx, "x", time.Second) })
		}
		asking.Wait()
		for _, err := range errs {
			f.must(err)
		}
		if got := len(slices.DeleteFunc(held, func(held bool) bool { return !held })); got != 1 {
			f.Fatalf("round %d: %d nodes have the lease", round, got)
		}
		f.clock.advance(time.Second)
	}
}

func leaseEmbedded(f *fixture) {
	a, _ := pair(f)
	same(f, "the node that has ended", a.acquires("x"), true)
	same(f, "the process", f.acquires("x"), true)
	f.must(f.Threads.ReleaseLease(f.ctx, "x"))
	same(f, "the next node", f.successor("second").acquires("x"), true)
}
