// Package rigtest helps the tests of the packages above rig.
package rigtest

import (
	"context"
	"os"
	"testing"

	"parley/cmd/internal/command"
	"parley/cmd/parley-bench/floor"
	"parley/cmd/parley-bench/internal/rig"
)

// Main runs a package's tests, or the floor if a trial has started the test binary as the floor.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		command.Main("floor", func(ctx context.Context, args []string) error { return floor.Run(ctx, args[1:]) })
	}
	os.Exit(m.Run())
}

// NewBench returns a bench without a daemon's binary.
func NewBench(t *testing.T) *rig.Bench {
	t.Helper()
	b := &rig.Bench{Daemons: 1, Work: t.TempDir(), Out: t.Output(), Seed: 1}
	b.Random = b.Draws(0)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// CheckCounts compares the numbers of rows in the store.
func CheckCounts(t *testing.T, n *rig.Nodes, counts map[string]int) {
	t.Helper()
	for rows, want := range counts {
		var got int
		if err := n.Store.QueryRowContext(t.Context(), "SELECT count(*) FROM "+rows).Scan(&got); got != want || err != nil {
			t.Errorf("%d %s, want %d; %v", got, rows, want, err)
		}
	}
}
