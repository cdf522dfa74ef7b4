package adaptertest

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// promise is one line of the contract.
type promise struct {
	words string
	holds func(s *stage)
}

// Live holds an adapter against the contract while it talks with a fake of its
// platform. What an adapter can do besides is found by assertion; the promises about
// what it can't do are skipped.
func Live(t *testing.T, platform Platform) {
	t.Helper()
	t.Run("no goroutine is left", func(t *testing.T) { nothingIsLeft(t, platform) })
	for _, p := range slices.Concat(ofCustody, ofRunning, ofHistory, ofPosts, ofFailures, ofTexts, ofChanges, ofStreams, ofFiles, ofPeople) {
		t.Run(p.words, func(t *testing.T) { p.holds(set(t, platform)) })
	}
}

// nothingIsLeft plays a little, and waits until nothing of it runs any more.
func nothingIsLeft(t *testing.T, platform Platform) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Run("after a talk", func(t *testing.T) {
		s := set(t, platform)
		r := s.play()
		if s.Say != nil && s.Shown != nil {
			s.send(s.asks(s.Room.ID, "k1"))
		}
		if s.Cut != nil {
			s.Cut()
			r.up()
		}
	})
	for end := time.After(patience); runtime.NumGoroutine() > before; {
		select {
		case <-end:
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d now:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		case <-time.After(time.Millisecond):
		}
	}
}
