package adapters

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/ingest/event"
)

const (
	// shrinkEvery is how many messages are handed over until a gap is shrunk.
	shrinkEvery = 100
	// recentThreads bounds the threads of all places that are asked for on their own.
	recentThreads = 200
	// custodyPause is the time until the next try where the store takes nothing.
	custodyPause = time.Second
)

// read reads the gaps whenever there may be some. One node does it at a time.
func (c *CatchUp) read(ctx context.Context) {
	hold := c.Hold
	hold.Name, hold.Log = "catch-up/"+c.Workspace, c.Log
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-c.work:
			_ = hold.While(ctx, func(ctx context.Context) error {
				(&reader{CatchUp: c}).run(ctx)
				return nil
			})
		}
	}
}

// reader reads the gaps that there are.
type reader struct {
	*CatchUp
	places, messages, cut int
	// failed are the places that could not be read in this round, and failure why.
	failed  map[string]bool
	failure error
}

func (r *reader) run(ctx context.Context) {
	defer r.goesWell(false)
	r.goesWell(true)
	r.try(ctx, "read what was missed", func(ctx context.Context) error {
		for {
			more, err := r.next(ctx)
			r.goesWell(err == nil && r.failure == nil)
			if err != nil || !more {
				err = errors.Join(err, r.failure)
				r.failed, r.failure = nil, nil
				return err
			}
		}
	})
	if r.places > 0 {
		r.Log.Info("read what was missed", "channels", r.places, "messages", r.messages, "cut", r.cut)
	}
}

// next reads one gap: where somebody has waited longest, else the oldest. One that
// can't be read now does not hold up the others.
func (r *reader) next(ctx context.Context) (more bool, err error) {
	gaps, err := r.Marks.Gaps(ctx, r.Workspace)
	gaps = slices.DeleteFunc(gaps, func(g event.Gap) bool { return r.failed[g.Place] })
	if err != nil || len(gaps) == 0 {
		return false, err
	}
	gap := r.gate.first(gaps)
	err = r.gap(ctx, gap)
	var refused *RefusedError
	if errors.As(err, &refused) {
		r.Log.Warn("what was missed in a channel can't be read", "channel", gap.Place, "err", refused.Err, "hint", refused.Hint)
		err = nil
	}
	if err != nil && ctx.Err() == nil {
		r.fail(gap.Place, err)
		return true, nil
	}
	if err == nil {
		err = r.Marks.Shrink(ctx, r.Workspace, gap.Place, gap.Until)
	}
	if err != nil {
		return false, err
	}
	r.places++
	return true, r.agree(ctx, 0, nil)
}

// fail leaves a place to the next round. Of many that fail, one error will do.
func (r *reader) fail(place string, err error) {
	if r.failed == nil {
		r.failed = map[string]bool{}
	}
	r.failed[place], r.failure = true, err
}

// goesWell says whether what was missed is being read here, without trouble.
func (c *CatchUp) goesWell(well bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = well
}

// asideFor is how long what comes in may wait now.
func (c *CatchUp) asideFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading {
		return readingLimit
	}
	return asideLimit
}

// gap hands over what was said in a gap.
func (r *reader) gap(ctx context.Context, gap event.Gap) error {
	config := r.Config()
	gap.From = latest(gap.From, r.Now().Add(-config.MaxAge))
	if !gap.From.Before(gap.Until) || config.MaxAge == 0 {
		return nil
	}
	threads, err := r.Recent(ctx, r.Workspace, gap.From.Add(-config.MaxAge), recentThreads)
	if err != nil {
		return err
	}
	handed := 0
	hand := func(at time.Time, envelope event.Envelope) (known bool, err error) {
		receipt, err := r.accept(ctx, envelope)
		if err != nil {
			return false, err
		}
		if !receipt.Duplicate {
			r.messages++
		}
		if handed++; handed%shrinkEvery == 0 && at.After(gap.From) {
			err = r.Marks.Shrink(ctx, r.Workspace, gap.Place, at)
		}
		return receipt.Duplicate, err
	}
	cut, err := r.Historian.Missed(ctx, gap, Bounds{Messages: config.Messages, Threads: threads}, hand)
	if cut {
		r.cut++
	}
	return err
}

// accept hands an envelope to custody, as soon as there is any.
func (r *reader) accept(ctx context.Context, envelope event.Envelope) (Receipt, error) {
	for {
		receipt, err := r.Inbox.Accept(ctx, envelope)
		if err == nil || !errors.Is(err, ErrBusy) || ctx.Err() != nil {
			return receipt, err
		}
		pause(ctx, custodyPause)
	}
}
