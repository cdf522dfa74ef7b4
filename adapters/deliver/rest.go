package deliver

import (
	"context"
	"sync/atomic"

	"parley/adapters"
	"parley/ingest/work"
)

// restAfter is the number of calls in a row without a clear outcome after which a workspace rests:
// its platform hangs or cannot be reached.
const restAfter = 5

// share returns the bound of a workspace's workers. A workspace that rests has one worker, whose
// calls tell when the platform answers again.
func (o *Outbox) share(workspace string) int {
	if o.unclear(workspace).Load() >= restAfter {
		return 1
	}
	return 0
}

// unclear returns the number of a workspace's last calls that had no clear outcome.
func (o *Outbox) unclear(workspace string) *atomic.Int64 {
	n, ok := o.unclears.Load(workspace)
	if !ok {
		n, _ = o.unclears.LoadOrStore(workspace, new(atomic.Int64))
	}
	return n.(*atomic.Int64)
}

// note notes how a call to a workspace's platform has ended. The first clear outcome ends a rest.
func (o *Outbox) note(ctx context.Context, workspace string, err error) {
	n := o.unclear(workspace)
	switch {
	case ctx.Err() != nil: // the process stops
	case isFailure(err, adapters.Unclear), isFailure(err, adapters.NotSent):
		if n.Add(1) == restAfter {
			o.Log.Warn("a platform does not answer; the workspace's posts go out one by one until it does", "workspace", workspace, "err", err)
		}
	case n.Swap(0) >= restAfter:
		o.Work.WakeAt(work.Deliveries, "", o.Now())
	}
}
