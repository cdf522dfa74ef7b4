package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lockAnswers returns the attempts around a lock from 10 s to 20 s: before it, during it
// and after it.
func lockAnswers(more ...attempt) []attempt {
	return append([]attempt{
		{at(5), at(5.1), 200},
		{at(9.9), at(11.9), 503}, // sent before the lock
		{at(11), at(13), 503},
		{at(19), at(20.5), 200}, // waited until the lock ended
		{at(21), at(21.1), 200},
	}, more...)
}

func TestLockWithoutFaults(t *testing.T) {
	statuses, during, recovery, faults := checkAnswers(lockAnswers(), at(10), at(20))
	if diff := cmp.Diff(map[int]int{http.StatusServiceUnavailable: 1}, statuses); diff != "" {
		t.Error(diff)
	}
	if recovery != 500*time.Millisecond || during.max != 2*time.Second || len(faults) != 0 {
		t.Errorf("recovery %v, answers %v, faults %q", recovery, during, faults)
	}
}

func TestLockWithFaults(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []attempt
		faults   int
	}{
		"an acknowledgement without a commit": {lockAnswers(attempt{at(12), at(12.1), 200}), 1},
		"a broken connection":                 {lockAnswers(attempt{at(12), at(12.1), 0}), 1},
		"an answer too late":                  {lockAnswers(attempt{at(12), at(15), 503}), 1},
		"no recovery":                         {[]attempt{{at(11), at(13), 503}, {at(24), at(24.1), 200}}, 1},
		"no load":                             {nil, 2},
	} {
		if _, _, _, faults := checkAnswers(c.attempts, at(10), at(20)); len(faults) != c.faults {
			t.Errorf("%s: faults %q, want %d", name, faults, c.faults)
		}
	}
}
