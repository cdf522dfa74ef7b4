package adaptertest

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// promise is one promise of the contract: its name and its check.
type promise struct {
	name  string
	check func(s *fixture)
}

// Live checks an adapter that talks with a fake of its platform. It finds the adapter's
// abilities by type assertion, and skips the promises of abilities that the adapter lacks.
func Live(t *testing.T, platform Platform) {
	t.Helper()
	t.Run("no goroutine is left", func(t *testing.T) { leavesNoGoroutine(t, platform) })
	for _, p := range slices.Concat(acceptPromises, runnerPromises, backfillPromises, senderPromises, failurePromises, formatPromises, editorPromises, streamPromises, filePromises, peoplePromises) {
		t.Run(p.name, func(t *testing.T) { p.check(newFixture(t, platform)) })
	}
}

// leavesNoGoroutine runs the adapter, and waits until none of its goroutines is left.
func leavesNoGoroutine(t *testing.T, platform Platform) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Run("conversation", func(t *testing.T) {
		s := newFixture(t, platform)
		r := s.start()
		if s.Say != nil && s.Shown != nil {
			s.send(s.ask(s.Room.ID, "k1"))
		}
		if s.Cut != nil {
			s.Cut()
			r.up()
		}
	})
	for end := time.After(maxWait); runtime.NumGoroutine() > before; {
		select {
		case <-end:
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		case <-time.After(time.Millisecond):
		}
	}
}
