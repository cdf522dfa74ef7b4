package turn

import (
	"context"

	"parley/ingest/journal/runs"
	"parley/ingest/work"
)

// Retry asks again for the messages of a failed run, whichever node works on the thread; see runs.RetryRun.
func (r *Runner) Retry(ctx context.Context, run string) (runs.Again, error) {
	again, err := r.Journal.RetryRun(ctx, run)
	if err != nil {
		return again, err
	}
	r.Work.Tell(again.Owner, work.Turns, again.Agent, again.Thread)
	r.Work.Wake(work.Turns, again.Agent, again.Thread)
	return again, nil
}
