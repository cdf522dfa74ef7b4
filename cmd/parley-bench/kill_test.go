package main

import (
	"syscall"
	"testing"
)

func TestAKillIsASIGTERMWhereItIsGentle(t *testing.T) {
	api := startTestAPI(t)
	c := startFloor(t, api)
	for gentle, want := range []syscall.WaitStatus{syscall.WaitStatus(syscall.SIGKILL), 0} { // 0 is an exit in order
		k := newKilling(&bench{}, killFlags{gentle: float64(gentle)}, profile{})
		before := c.cmd
		c.held.Lock()
		if err := k.kill(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := before.ProcessState.Sys(); got != want {
			t.Errorf("gentle %d: it ended with %v, want %v", gentle, got, want)
		}
		if len(k.starts) != 1 || len(k.obeyed) != gentle {
			t.Errorf("gentle %d: %v", gentle, k.killed())
		}
	}
	if err := c.alive(); err != nil {
		t.Error(err)
	}
}
