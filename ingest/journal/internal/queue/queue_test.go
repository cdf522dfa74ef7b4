package queue

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

var errServed = errors.New("served")

// TestUrgentCallsGoFirst proves that the queue returns urgent calls before the others,
// and that each caller gets its own result.
func TestUrgentCallsGoFirst(t *testing.T) {
	q := New()
	const calls = 4
	ended := make(chan error, 2*calls)
	for range calls {
		for _, urgent := range []bool{true, false} {
			go func() {
				ended <- q.Submit(t.Context(), storage.WriteOptions{Urgent: urgent}, func(storage.Tx) error { return nil })
			}()
		}
	}
	for len(q.urgent) < calls || len(q.ordinary) < calls {
		runtime.Gosched()
	}
	for range calls {
		q.Behind(0, time.Now()).Answer(errServed)
	}
	if len(q.urgent) > 0 {
		t.Error("an ordinary call came before an urgent one")
	}
	for range calls {
		q.Next(nil).Answer(errServed)
	}
	for range 2 * calls {
		if err := <-ended; !errors.Is(err, errServed) {
			t.Error(err)
		}
	}
}

// TestEveryAcceptBringsItsShare proves that a transaction whose time for other calls is over still
// takes some of them for each of its urgent calls, and then no more.
func TestEveryAcceptBringsItsShare(t *testing.T) {
	q := New()
	const urgent, more = 3, 10
	ended := make(chan error, urgent*(1+ordinaryShare)+more)
	for i := range cap(ended) {
		go func() {
			ended <- q.Submit(t.Context(), storage.WriteOptions{Urgent: i < urgent}, func(storage.Tx) error { return nil })
		}()
	}
	for len(q.urgent)+len(q.ordinary) < cap(ended) {
		runtime.Gosched()
	}
	long, taken := time.Now().Add(-time.Hour), 1
	for c := q.Next(nil); c != nil; taken++ {
		c.Answer(errServed)
		c = q.Behind(taken, long)
	}
	if _, left := q.Waiting(); left != more {
		t.Errorf("%d calls are left, want %d", left, more)
	}
	for range more {
		q.Next(nil).Answer(errServed)
	}
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, errServed) {
			t.Error(err)
		}
	}
}

// TestABrokenBatch proves that no call of a batch runs after an earlier one whose caller has left,
// or that has failed.
func TestABrokenBatch(t *testing.T) {
	for name, fail := range map[string]func(q *Queue, leave func()){
		"the caller left": func(_ *Queue, leave func()) { leave() },
		"the call failed": func(q *Queue, _ func()) {
			first := q.Next(nil)
			first.Take()
			first.Answer(errServed)
		},
	} {
		q, batch := New(), new(event.Batch)
		leaving, leave := context.WithCancel(t.Context())
		results := []chan error{make(chan error, 1), make(chan error, 1), make(chan error, 1)}
		for i, ctx := range []context.Context{leaving, t.Context(), t.Context()} {
			placed := make(chan struct{})
			options := storage.WriteOptions{Urgent: true, Queued: func() { close(placed) }, Batch: batch}
			if i == 2 {
				options.Batch = nil
			}
			go func() { results[i] <- q.Submit(ctx, options, func(storage.Tx) error { return nil }) }()
			<-placed
		}
		fail(q, leave)
		if err := <-results[0]; err == nil {
			t.Errorf("%s: the first call has no error", name)
		}
		taken := 0
		for len(q.urgent) > 0 {
			if c := q.Next(nil); c.Take() {
				taken++
				c.Answer(nil)
			}
		}
		if err := <-results[1]; !errors.Is(err, errBroken) {
			t.Errorf("%s: the error of the second call is %v", name, err)
		}
		if err := <-results[2]; err != nil || taken != 1 {
			t.Errorf("%s: the call of no batch ends with %v; %d calls ran", name, err, taken)
		}
		leave()
	}
}
