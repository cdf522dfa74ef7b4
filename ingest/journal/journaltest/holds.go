package journaltest

import (
	"slices"
	"sync"
	"time"
)

func holdPromises() []promise {
	return []promise{
		{"a hold is one node's at a time", oneHolder},
		{"a hold lasts as long as its lease from the last renewal", holdExpires},
		{"a hold that is given back is free at once", holdDropped},
		{"nobody gives back what another node has", holdOfAnother},
		{"who asks side by side gets it one alone", holdRace},
		{"nodes that listen know of one another, until they leave or die", presence},
		{"where one process has the journal, a hold is free at every start", holdAlone},
	}
}

// pair are two nodes on one store.
func pair(f *fixture) (a, b *fixture) {
	return process(f.failing, f.ctx, f.engine, f.clock, "a", time.Minute), process(f.failing, f.ctx, f.engine, f.clock, "b", time.Minute)
}

// holds asks for a hold for ten seconds.
func (f *fixture) holds(name string) bool {
	f.Helper()
	held, err := f.Hold(f.ctx, name, 10*time.Second)
	f.must(err)
	return held
}

func presence(f *fixture) {
	a, b := pair(f)
	attend := func(node *fixture) bool {
		others, err := node.Attend(f.ctx, 10*time.Second)
		f.must(err)
		return others
	}
	same(f, "the first", attend(a), false)
	same(f, "the second", attend(b), true)
	same(f, "the first, again", attend(a), true)
	f.must(b.Leave(f.ctx))
	same(f, "after the second has left", attend(a), false)
	f.clock.advance(10 * time.Second)
	same(f, "after the first has died", attend(b), false)
	alone := process(f.failing, f.ctx, f.engine, f.clock, "c", 0)
	same(f, "who has the journal alone", attend(alone), false)
	f.must(alone.Leave(f.ctx))
	same(f, "rows", f.count("holds"), 1)
}

func oneHolder(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.holds("x"), true)
	same(f, "the second", b.holds("x"), false)
	same(f, "something else", b.holds("y"), true)
	same(f, "the first, again", a.holds("x"), true)
}

func holdExpires(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.holds("x"), true)
	f.clock.advance(9 * time.Second)
	same(f, "the first renews", a.holds("x"), true)
	f.clock.advance(10*time.Second - time.Millisecond)
	same(f, "the second, before the end", b.holds("x"), false)
	f.clock.advance(time.Millisecond)
	same(f, "the second", b.holds("x"), true)
	same(f, "the first, too late", a.holds("x"), false)
	f.clock.advance(10 * time.Second)
	same(f, "the second renews what has run out", b.holds("x"), true)
}

func holdDropped(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.holds("x"), true)
	same(f, "its other", a.holds("y"), true)
	f.must(a.Drop(f.ctx, "x"))
	same(f, "the second", b.holds("x"), true)
	same(f, "what was not given back", b.holds("y"), false)
	f.must(b.Drop(f.ctx, "z"))
}

func holdOfAnother(f *fixture) {
	a, b := pair(f)
	same(f, "the first", a.holds("x"), true)
	f.must(b.Drop(f.ctx, "x"))
	same(f, "the second", b.holds("x"), false)
	f.clock.advance(10 * time.Second)
	same(f, "the second, after its end", b.holds("x"), true)
	f.must(a.Drop(f.ctx, "x"))
	same(f, "the first, which had it before", a.holds("x"), false)
}

func holdRace(f *fixture) {
	for round := range 10 {
		held := make([]bool, 8)
		errs := make([]error, len(held))
		var asking sync.WaitGroup
		for i := range held {
			n := process(f.failing, f.ctx, f.engine, f.clock, string(rune('a'+i)), time.Minute)
			asking.Go(func() { held[i], errs[i] = n.Hold(f.ctx, "x", time.Second) })
		}
		asking.Wait()
		for _, err := range errs {
			f.must(err)
		}
		if got := len(slices.DeleteFunc(held, func(held bool) bool { return !held })); got != 1 {
			f.Fatalf("round %d: %d nodes have it", round, got)
		}
		f.clock.advance(time.Second)
	}
}

func holdAlone(f *fixture) {
	a, _ := pair(f)
	same(f, "one that has left", a.holds("x"), true)
	same(f, "the process", f.holds("x"), true)
	f.must(f.Drop(f.ctx, "x"))
	same(f, "the next one", f.successor("second").holds("x"), true)
}
