package queue

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// store is an engine whose calls stand in a queue that the test serves.
type store struct {
	journal.Engine
	queue *Queue
}

func (s store) Write(ctx context.Context, fn func(journal.Tx) error) error {
	return s.queue.Submit(ctx, fn)
}

var errServed = errors.New("served")

// TestCustodyHasItsShareWhereMoreComesThanCanBeWorkedOn: one of it for every three
// others, while it has precedence as long as a worker is free.
func TestCustodyHasItsShareWhereMoreComesThanCanBeWorkedOn(t *testing.T) {
	q := New()
	j := journal.New(store{queue: q}, journal.Options{})
	const calls = 4
	ended := make(chan error, 5*calls)
	for range calls {
		for _, claim := range []bool{true, false} {
			go func() {
				_, err := j.Accept(t.Context(), journal.Acceptance{Keys: event.Keys{Thread: "a"}, Claim: claim})
				ended <- err
			}()
		}
	}
	for range 3 * calls {
		go func() { ended <- q.Submit(t.Context(), func(journal.Tx) error { return nil }) }()
	}
	for len(q.urgent) < calls || len(q.patient) < calls || len(q.ordinary) < 3*calls {
		runtime.Gosched()
	}
	serve := func(c *Call) bool {
		if c != nil {
			c.Answer(errServed)
		}
		return c != nil
	}
	for range calls {
		if !serve(q.Urgent()) {
			t.Fatal("what is urgent has no precedence")
		}
	}
	for range calls {
		for range ordinaryShare {
			if serve(q.Urgent()) {
				t.Fatal("a patient call goes before its turn")
			}
			if !serve(q.Ordinary()) {
				t.Fatal("no ordinary call is left")
			}
		}
		if !serve(q.Urgent()) {
			t.Fatal("a patient call has not its share")
		}
	}
	for range 5 * calls {
		if err := <-ended; !errors.Is(err, errServed) {
			t.Error(err)
		}
	}
}

// TestNobodyWaitsForOthersThatDoNotCome: a patient call is served where it is alone.
func TestNobodyWaitsForOthersThatDoNotCome(t *testing.T) {
	q := New()
	j := journal.New(store{queue: q}, journal.Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := j.Accept(t.Context(), journal.Acceptance{Keys: event.Keys{Thread: "a"}})
		ended <- err
	}()
	q.Next(nil).Answer(errServed)
	if err := <-ended; !errors.Is(err, errServed) {
		t.Error(err)
	}
}
