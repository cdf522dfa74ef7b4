package adapters

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/ingest/event"
)

const (
	// markEvery is the time between two moves of the mark.
	markEvery = 10 * time.Second
	// markLag is how far the mark stays behind: what was said so shortly ago may be
	// under way, or lost in a connection that nobody knows to be dead yet; and clocks
	// differ.
	markLag = 2 * time.Minute
	// refusalRest is how long nothing may have been refused before what was refused
	// is read: the store has enough to do.
	refusalRest = 10 * time.Second
	// attendEvery is how often it is looked whether somebody waits in vain.
	attendEvery = time.Second
)

// CatchUp reads what a workspace has missed, and keeps aside meanwhile what comes in
// after it. Its fields are set before Begin.
type CatchUp struct {
	Workspace string
	Historian Historian
	Inbox     Inbox
	Marks     Marks
	// Hold is how one node at a time reads; its Name and Log are set here.
	Hold Hold
	// Recent are the threads of a workspace in which something was said since then,
	// the latest first.
	Recent func(ctx context.Context, workspace string, since time.Time, limit int) ([]event.ThreadKey, error)
	// Release lets in what was kept aside in the places that which names.
	Release func(ctx context.Context, which func(place string) bool) error
	// Others says whether other nodes listen: then nothing was missed, as far as they
	// know, and what comes in here must not wait while the same comes in there. What
	// is in the gaps is read all the same. Nil where there are none.
	Others func() bool
	Config func() CatchUpConfig
	Now    func() time.Time
	Log    *slog.Logger

	gate    gate
	came    chan struct{} // holds a value when gaps are to be opened
	work    chan struct{} // holds a value when there may be gaps to read
	opening sync.Mutex    // gaps are stored, or it is looked which are left

	mu      sync.Mutex
	first   bool      // the workspace was never up
	since   time.Time // when it was up for the first time since Begin
	ups     int       // how often it was
	beside  bool      // others listened when it was, and nothing is kept aside
	up      bool      // what is said reaches us
	opened  bool      // what was said before that is in gaps
	refused time.Time // from when on something may have been refused custody; zero for none
	last    time.Time // when something was
	reading bool      // what was missed is being read here, and that goes well
}

// Begin is called before anything comes in. At a workspace's first start there is
// nothing to catch up with; else what comes in is kept aside until it is known what
// was said before it.
func (c *CatchUp) Begin(ctx context.Context) {
	c.came, c.work = make(chan struct{}, 1), make(chan struct{}, 1)
	mark, err := c.Marks.Mark(ctx, c.Workspace)
	if err != nil {
		c.Log.Warn("look how far the workspace has been read", "err", err)
	}
	c.first = err == nil && mark.IsZero()
	c.shut()
}

// shut keeps aside what comes in from now on, where something may have been missed.
func (c *CatchUp) shut() {
	if c.first && c.ups <= 1 || c.Config().MaxAge == 0 {
		return
	}
	if c.beside = c.Others != nil && c.Others() && !c.gate.closed.Load(); !c.beside {
		c.gate.shut()
	}
}

// Up says that what is said from now on reaches us, and that what was said just
// before may not have.
func (c *CatchUp) Up() {
	c.mu.Lock()
	c.up, c.opened = true, false
	if c.ups++; c.ups == 1 {
		c.since = c.Now()
	}
	c.shut()
	c.mu.Unlock()
	signal(c.came)
}

// Down says that nothing reaches us any more.
func (c *CatchUp) Down() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = false
}

// Refused says that custody was refused: what the platform gives up on is missed.
func (c *CatchUp) Refused() {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = now
	if c.refused.IsZero() {
		c.refused = now.Add(-markLag)
	}
}

// Aside says whether what comes in at a place is to be kept aside, until done is
// called: what was said there before it is still to be read.
func (c *CatchUp) Aside(place string) (done func(), aside bool) { return c.gate.aside(place) }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run keeps the mark and reads what was missed, until ctx ends.
func (c *CatchUp) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { c.keep(ctx) })
	parts.Go(func() { c.attend(ctx) })
	parts.Go(func() { c.read(ctx) })
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-c.came:
			c.try(ctx, "look for what was missed", c.open)
			signal(c.work)
		}
	}
}

// try calls f until it does not fail, with backoff.
func (c *CatchUp) try(ctx context.Context, what string, f func(context.Context) error) {
	for wait := restartMin; ctx.Err() == nil; wait = min(2*wait, restartMax) {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		c.Log.Warn(what, "err", err, "wait", wait)
		pause(ctx, wait)
	}
}

func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// keep moves the mark on while everything comes in, and has read what was refused.
func (c *CatchUp) keep(ctx context.Context) {
	for pause(ctx, markEvery); ctx.Err() == nil; pause(ctx, markEvery) {
		now := c.Now()
		whole, again := c.state(now)
		if again {
			signal(c.came)
		}
		if !whole {
			continue
		}
		if err := c.Marks.SetMark(ctx, c.Workspace, now.Add(-markLag), nil); err != nil && ctx.Err() == nil {
			c.Log.Warn("note how far the workspace has been read", "err", err)
		}
	}
}

// state says whether everything has come in or is in a gap, and whether what was
// refused is to be read now.
func (c *CatchUp) state(now time.Time) (whole, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	whole = c.up && c.opened && c.refused.IsZero()
	return whole, c.up && c.opened && !c.refused.IsZero() && now.Sub(c.last) >= refusalRest
}

// attend opens the places where something has waited for too long, or that another
// node has read.
func (c *CatchUp) attend(ctx context.Context) {
	c.try(ctx, "let in what was kept aside", func(ctx context.Context) error {
		if c.gate.closed.Load() {
			return nil
		}
		return c.Release(ctx, everywhere) // before the last stop
	})
	for pause(ctx, attendEvery); ctx.Err() == nil; pause(ctx, attendEvery) {
		if !c.gate.closed.Load() {
			continue
		}
		unsure, overdue := c.gate.overdue(c.asideFor())
		var err error
		if unsure {
			c.Log.Warn("what comes in does not wait any longer for what was missed")
			shuts, _ := c.gate.unsure()
			err = c.gate.open(ctx, shuts, c.Release, everywhere)
		} else {
			err = c.agree(ctx, 0, overdue)
		}
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("let in what was kept aside", "err", err)
		}
	}
}

func everywhere(string) bool { return true }

// agree opens the places that have no gap any more, and the others that are named,
// once it is sure, after so many shuts, which have one.
func (c *CatchUp) agree(ctx context.Context, sure int, others map[string]bool) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	gaps, err := c.Marks.Gaps(ctx, c.Workspace)
	if err != nil {
		return err
	}
	left := placesOf(gaps)
	return c.gate.open(ctx, sure, c.Release, func(place string) bool { return others[place] || !left[place] })
}

func placesOf(gaps []event.Gap) map[string]bool {
	places := map[string]bool{}
	for _, gap := range gaps {
		places[gap.Place] = true
	}
	return places
}

// open stores a gap from the mark to now for each place. What comes in elsewhere
// waits no longer.
func (c *CatchUp) open(ctx context.Context) error {
	shuts, _ := c.gate.unsure()
	mark, err := c.Marks.Mark(ctx, c.Workspace)
	if err != nil {
		return err
	}
	now := c.Now()
	c.mu.Lock()
	reached := now
	if mark.IsZero() { // what was said since it was up may have been missed already
		if reached = c.since; c.ups > 1 {
			mark, reached = c.since, now
		}
	}
	refused, from := c.refused, mark
	if !refused.IsZero() && refused.Before(mark) {
		from = refused
	}
	c.mu.Unlock()

	var gaps []event.Gap
	if age := c.Config().MaxAge; age > 0 && !mark.IsZero() {
		if gaps, err = c.gaps(ctx, latest(from, now.Add(-age)), now.Add(markLag)); err != nil {
			return err
		}
	}
	if err := c.store(ctx, reached, gaps, refused); err != nil {
		return err
	}
	return c.agree(ctx, shuts, nil)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// gaps are those of a time in every place that can be read: none where the platform
// does not tell, since waiting would be of no use.
func (c *CatchUp) gaps(ctx context.Context, from, until time.Time) ([]event.Gap, error) {
	places, err := c.Historian.Places(ctx)
	var refused *RefusedError
	if errors.As(err, &refused) {
		c.Log.Warn("what was missed can't be read", "err", refused.Err, "hint", refused.Hint)
		return nil, nil
	}
	gaps := make([]event.Gap, len(places))
	for i, place := range places {
		gaps[i] = event.Gap{Place: place, From: from, Until: until}
	}
	return gaps, err
}

// store makes the gaps durable and moves the mark on behind them. What comes in at
// their places waits for them from then on.
func (c *CatchUp) store(ctx context.Context, mark time.Time, gaps []event.Gap, refused time.Time) error {
	c.mu.Lock()
	closed := placesOf(gaps)
	if c.beside {
		closed = nil
	}
	c.mu.Unlock()
	c.opening.Lock()
	err := c.Marks.SetMark(ctx, c.Workspace, mark, gaps)
	if err == nil {
		c.gate.close(closed)
	}
	c.opening.Unlock()
	if err != nil {
		return err
	}
	c.Log.Debug("what is said from now on comes in", "gaps", len(gaps))
	c.mu.Lock()
	c.first, c.opened = false, true
	if c.refused.Equal(refused) {
		c.refused = time.Time{}
	}
	c.mu.Unlock()
	return nil
}
