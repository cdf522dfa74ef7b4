package queue

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"parley/ingest/journal"
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
				ended <- q.Submit(t.Context(), journal.WriteOptions{Urgent: urgent}, func(journal.Tx) error { return nil })
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
