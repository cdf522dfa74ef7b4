package wake

import "testing"

func TestGroup(t *testing.T) {
	var g Group[string]
	a, stopA := g.Wait("a")
	again, stopAgain := g.Wait("a")
	b, stopB := g.Wait("b")
	g.Wake("a")
	g.Wake("a")
	g.Wake("nobody")
	if len(a) != 1 || len(again) != 1 || len(b) != 0 {
		t.Errorf("after Wake: %d, %d and %d values, want 1, 1 and 0", len(a), len(again), len(b))
	}
	<-a
	stopAgain()
	<-again
	g.WakeAll()
	if len(a) != 1 || len(again) != 0 || len(b) != 1 {
		t.Errorf("after WakeAll: %d, %d and %d values, want 1, 0 and 1", len(a), len(again), len(b))
	}
	stopA()
	stopB()
	if len(g.waiting) != 0 {
		t.Errorf("%d keys remain", len(g.waiting))
	}
}
