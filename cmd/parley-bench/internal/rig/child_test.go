package rig

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestChildThatEndsBeforeItIsReady(t *testing.T) {
	c, err := (&Bench{Work: t.TempDir()}).NewChild("/bin/sh", "child")
	if err != nil {
		t.Fatal(err)
	}
	c.Args = []string{"-c", "echo the port is taken; exit 3"}
	_, err = c.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the port is taken") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want the log and the exit status", err)
	}
}

func TestLockOneLocksDifferentNodes(t *testing.T) {
	n := &Nodes{All: []*Child{{}, {}, {}}}
	random := rand.New(rand.NewPCG(1, 1))
	locked := map[*Child]bool{}
	for range n.All {
		locked[n.LockOne(random)] = true
	}
	if len(locked) != 3 {
		t.Errorf("%d of 3 nodes were locked", len(locked))
	}
	free := n.All[1]
	free.Unlock()
	if n.LockOne(random) != free {
		t.Error("lockOne returned a node that was locked already")
	}
}
