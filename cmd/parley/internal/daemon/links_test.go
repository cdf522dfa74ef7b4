package daemon

import (
	"testing"

	"parley/adapters"
)

// TestConnectionsComeUpTogether asks for each of two connections before either has reported its
// state, as their goroutines can.
func TestConnectionsComeUpTogether(t *testing.T) {
	l := &links{states: map[string]adapters.Status{}}
	for _, name := range []string{"shard-0", "shard-1"} {
		l.report(name, adapters.Status{State: adapters.Starting})
	}
	if l.up("shard-0") {
		t.Error("events of the second shard cannot arrive yet")
	}
	if !l.up("shard-1") {
		t.Error("both shards are up, and nobody reads the missed messages")
	}
	l.report("shard-0", adapters.Status{State: adapters.Down})
	if l.up("shard-1") {
		t.Error("the first shard is down")
	}
	l.report("shard-0", adapters.Status{State: adapters.Standby})
	if !l.up("shard-1") {
		t.Error("another node has the first shard")
	}
}
