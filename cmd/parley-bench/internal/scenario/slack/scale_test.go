package slack

import (
	"testing"

	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/rigtest"
	"parley/cmd/parley-bench/internal/trial"
)

func TestFillStoresMessagesAndPendingEnvelopes(t *testing.T) {
	tried, err := trial.New(t.Context(), rigtest.NewBench(t), "large", trial.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(t.Context(), tried.Nodes.All[0].StorePath(), 50, 20, tried.Ledger); err != nil {
		t.Fatal(err)
	}
	left, err := tried.Nodes.Backlog(t.Context())
	if want := (rig.Backlog{Envelopes: 20}); left != want || err != nil {
		t.Errorf("backlog %v, %v", left, err)
	}
	rigtest.CheckCounts(t, tried.Nodes, map[string]int{"messages": 50})
	if got := tried.Ledger.Due(); got != 20 {
		t.Errorf("%d of 20 messages were accepted", got)
	}
}
