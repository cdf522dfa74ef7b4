package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A store that is frozen from 10 s to 20 s: what is sent before, during and after.
func frozenStory(more ...attempt) answers {
	attempts := []attempt{
		{at(5), at(5.1), 200},
		{at(9.9), at(11.9), 503}, // came before the lock
		{at(11), at(13), 503},
		{at(19), at(20.5), 200}, // was waiting when the lock went
		{at(21), at(21.1), 200},
	}
	return sift(append(attempts, more...), at(10), at(20))
}

func TestAFreezeThatIsBorneWell(t *testing.T) {
	a := frozenStory()
	if diff := cmp.Diff(map[int]int{503: 1}, a.statuses); diff != "" {
		t.Error(diff)
	}
	if a.thaw != 500*time.Millisecond || a.longest != 2*time.Second || len(a.faults()) != 0 {
		t.Errorf("%+v, faults %v", a, a.faults())
	}
}

func TestAFreezeThatIsBorneBadly(t *testing.T) {
	for name, try := range map[string]attempt{
		"custody without a commit": {at(12), at(12.1), 200},
		"a cut connection":         {at(12), at(12.1), 0},
		"an answer too late":       {at(12), at(15), 503},
	} {
		if faults := frozenStory(try).faults(); len(faults) != 1 {
			t.Errorf("%s: faults %q", name, faults)
		}
	}
	stuck := sift([]attempt{{at(11), at(13), 503}, {at(24), at(24.1), 200}}, at(10), at(20))
	if len(stuck.faults()) != 1 {
		t.Errorf("no recovery: faults %q", stuck.faults())
	}
	if idle := sift(nil, at(10), at(20)); len(idle.faults()) != 2 {
		t.Errorf("no load: faults %q", idle.faults())
	}
}
