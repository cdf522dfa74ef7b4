package adapters

import (
	"context"
	"sync"

	"parley/ingest/event"
)

// InOrder calls accept for the envelopes 0 to n-1 of a series, and returns their errors. The
// commits have the order of the series and are waited for together: accept begins with an
// envelope when the one before it has its place. So accept passes placed on as the envelope's
// Queued, and batch as its Batch, so that no envelope overtakes one that is not stored. After the
// end of ctx or an error, accept is called for no further envelope; the error of the others is
// ErrBusy.
func InOrder(ctx context.Context, n int, accept func(i int, placed func(), batch *event.Batch) error) []error {
	errs, batch := make([]error, n), new(event.Batch)
	var flying sync.WaitGroup
	for i := range n {
		if ctx.Err() != nil || batch.IsBroken() {
			errs[i] = ErrBusy
			continue
		}
		placed := make(chan struct{})
		place := sync.OnceFunc(func() { close(placed) })
		flying.Go(func() {
			defer place()
			if errs[i] = accept(i, place, batch); errs[i] != nil {
				batch.Break()
			}
		})
		<-placed
	}
	flying.Wait()
	return errs
}
