package ledger

import (
	"testing"
	"time"
)

// TestAskedTwice checks which repeated requests have a reason.
func TestAskedTwice(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	ask := func(id int, run string, arrived, followed int64) *Request {
		a := &Request{ID: id, Run: run, Arrived: at(arrived)}
		if followed > 0 {
			a.Followed = at(followed)
		}
		return a
	}
	deaths := []Death{{at(10), at(12)}}
	for name, c := range map[string]struct {
		asks []*Request
		want int
	}{
		"once each":            {[]*Request{ask(1, "a", 1, 0), ask(2, "b", 2, 0)}, 0},
		"over a death":         {[]*Request{ask(1, "a", 9, 0), ask(1, "a", 13, 0)}, 0},
		"during a death":       {[]*Request{ask(1, "a", 11, 0), ask(1, "a", 13, 0)}, 0},
		"without a death":      {[]*Request{ask(1, "a", 13, 0), ask(1, "a", 14, 0)}, 1},
		"in two runs":          {[]*Request{ask(1, "a", 9, 0), ask(1, "b", 13, 0)}, 1},
		"after its stream":     {[]*Request{ask(1, "a", 8, 9), ask(1, "a", 13, 0)}, 1},
		"three times, wrongly": {[]*Request{ask(1, "a", 9, 0), ask(1, "a", 13, 0), ask(1, "a", 14, 0)}, 1},
	} {
		l := New()
		l.Requests = c.asks
		if faults, _ := l.AskedTwice(deaths); len(faults) != c.want {
			t.Errorf("%s: %q", name, faults)
		}
	}
}
