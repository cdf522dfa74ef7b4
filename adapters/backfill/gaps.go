package backfill

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// gap returns the range in which messages of a channel may be missing, and whether
// there is one.
func (w *Workspace) gap(channel string) (event.Gap, bool) {
	gap := w.unstored[everywhere].Union(w.stored[channel]).Union(w.unstored[channel])
	gap.Channel = channel
	return gap, gap.Until.After(w.Now().Add(-w.Config().MaxAge))
}

// Missed notes that messages of a channel may have been missed since a time. An empty
// channel means every channel.
func (w *Workspace) Missed(channel string, since time.Time) {
	if w.Config().MaxAge == 0 {
		return
	}
	gap := event.Gap{Channel: channel, From: since, Until: w.Now()}
	w.change(func() {
		if gap.From.After(gap.Until) { // our clock was set back since
			gap.From = w.known(gap.Until)
		}
		w.unstored[gap.Channel] = w.unstored[gap.Channel].Union(gap)
	})
	w.wake.store.Set()
}

// known returns the time of the last known arrival that our clock does not put into the future; or
// the watermark. The caller holds the mutex.
func (w *Workspace) known(now time.Time) time.Time {
	for _, at := range slices.Backward(w.arrivals.times) {
		if !at.After(now) {
			return at
		}
	}
	return w.watermark
}

// setBack begins again with the times that the store knows, after our clock was set back: the other
// ones are in the future. Messages may be missing since the last known arrival.
func (w *Workspace) setBack(ctx context.Context, now time.Time) error {
	if err := w.refresh(ctx); err != nil {
		return err
	}
	w.change(func() {
		w.arrivals.begin(w.watermark)
		for channel, gap := range w.unstored {
			if gap.From.After(now) {
				gap.From = w.watermark
			}
			if gap.Until.After(now) {
				gap.Until = now
			}
			w.unstored[channel] = gap
		}
		w.again, w.synced = event.Gap{}, now
		w.awayUntil(now)
	})
	return nil
}

// Refused notes that a payload of a channel was refused: the platform may give it up. If
// the platform had sent the payload before, its message is as old as the first attempt.
func (w *Workspace) Refused(channel string, retried bool) {
	from := w.Now().Add(-clockLag)
	w.mu.Lock()
	if first := w.arrivals.times[0]; from.Before(first) || retried && !first.IsZero() {
		from = first // nothing from before the first start is read
	}
	w.mu.Unlock()
	if channel != "" {
		w.Missed(channel, from)
	}
}

// Accepted notes that a payload of a channel was accepted for the first time. If the
// platform had sent the payload to a hook before, the hook was unreachable, and others may be
// missing. A connection that was lost reports its gap itself.
func (w *Workspace) Accepted(channel string, retried bool) {
	now := w.Now()
	w.mu.Lock()
	from, missing := w.arrivals.add(now, channel, retried && w.HookOnly)
	w.mu.Unlock()
	if missing && channel != "" && !from.IsZero() {
		w.Missed(channel, from)
	}
}

const (
	// retryHorizon bounds the time after its first attempt at which a platform may send a
	// payload again (Slack: five minutes after the previous attempt).
	retryHorizon = 7 * time.Minute
	// arrivalStep is the shortest time between two stored arrivals.
	arrivalStep = 10 * time.Second
	// retryGapEvery is the shortest time between two gaps of a channel for retried
	// payloads.
	retryGapEvery = time.Minute
)

// arrivals stores when payloads have arrived lately, each time less clockLag. The first
// time is older than retryHorizon, if there was an arrival then.
type arrivals struct {
	times   []time.Time
	retried map[string]time.Time // the newest gap, by channel
}

func (a *arrivals) begin(watermark time.Time) {
	a.times, a.retried = []time.Time{watermark}, map[string]time.Time{}
}

// add notes an arrival. If the payload was sent before, and its channel had no gap for
// that reason within a minute, it returns the last arrival before the payload's first
// attempt.
func (a *arrivals) add(now time.Time, channel string, retried bool) (from time.Time, missing bool) {
	at := now.Add(-clockLag)
	if last := a.times[len(a.times)-1]; at.Sub(last) >= arrivalStep {
		a.times = append(a.times, at)
	}
	for len(a.times) > 1 && at.Sub(a.times[1]) >= retryHorizon {
		a.times = a.times[1:]
	}
	if !retried || now.Sub(a.retried[channel]) < retryGapEvery {
		return time.Time{}, false
	}
	a.retried[channel] = now
	return a.times[0], true
}

// refresh reads the watermark and the gaps from the store, because other nodes change
// them too.
func (w *Workspace) refresh(ctx context.Context) error {
	w.refreshing.Lock()
	defer w.refreshing.Unlock()
	watermark, gaps, err := w.Store.Gaps(ctx, w.ID, w.Now())
	if err != nil {
		return err
	}
	more := false
	w.change(func() {
		if !watermark.IsZero() { // it is later, or was pulled back
			w.watermark = watermark
		}
		known := maps.Clone(w.stored)
		clear(w.stored)
		for _, gap := range gaps {
			w.stored[gap.Channel] = gap
			more = more || !known[gap.Channel].Covers(gap)
		}
	})
	if more {
		w.wake.read.Set()
	}
	return nil
}

// keepGaps stores the gaps that open, and reads those of other nodes, until ctx ends.
func (w *Workspace) keepGaps(ctx context.Context) {
	for ctx.Err() == nil {
		w.retry(ctx, "store and read gaps", w.wake.store, w.sync)
		select {
		case <-ctx.Done():
		case <-w.wake.store:
		case <-time.After(w.refreshIn()):
		}
	}
}

// refreshIn returns the wait until the next sync, if no gap opens before.
func (w *Workspace) refreshIn() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again != (event.Gap{}) {
		if look := w.again.Until.Add(w.next).Sub(w.Now()); look > 0 {
			return min(look, refreshOpen)
		}
		return refreshOpen
	}
	if len(w.unstored)+len(w.stored) > 0 {
		return refreshOpen
	}
	return refreshClosed
}

// sync stores the gaps that have opened. While events can arrive, it also moves the
// watermark on: every message before the watermark is then recorded or in a stored gap.
//
// If the last call is long ago, the process or the store stood still. The connection may
// have ended unnoticed, so messages since the watermark may be missing. An unreachable hook
// looks like a quiet one, so there the watermark stays at the last arrival.
func (w *Workspace) sync(ctx context.Context) (err error) {
	defer adapters.Recover(w.Log, &err)
	now := w.Now()
	watermark := now.Add(-clockLag)
	w.mu.Lock()
	back := w.synced.Sub(now) > stepBack
	w.mu.Unlock()
	if back {
		if err := w.setBack(ctx, now); err != nil {
			return err
		}
	}
	w.mu.Lock()
	if last := w.arrivals.times[len(w.arrivals.times)-1]; w.HookOnly && last.Before(watermark) {
		watermark = last
	}
	if w.up && now.Sub(w.synced) > clockLag/2 {
		w.awayUntil(now)
	}
	w.synced = now
	again := w.lookAgain(now)
	opened, up, last := maps.Clone(w.unstored), w.up, w.watermark
	w.mu.Unlock()
	away, lost := opened[everywhere]
	delete(opened, everywhere)
	gaps := slices.Collect(maps.Values(opened))
	var unknown error
	if lost && up {
		watermark = away.Until.Add(-clockLag)
		channels, err := w.Platform.Channels(ctx)
		if unknown = w.unlessRefused(err); unknown == nil {
			opened[everywhere] = away
			for _, channel := range channels {
				gaps = append(gaps, event.Gap{Channel: channel, From: away.From, Until: away.Until})
			}
		}
	}
	if !up || unknown != nil || !lost && watermark.Sub(last) < watermarkStep {
		watermark = time.Time{} // zero: the watermark does not move
	}
	slices.SortFunc(gaps, func(a, b event.Gap) int { return cmp.Compare(a.Channel, b.Channel) }) // all nodes store in one order
	if len(gaps) > 0 || !watermark.IsZero() {
		if err := w.Store.OpenGaps(ctx, w.ID, gaps, watermark); err != nil {
			return err
		}
	}
	if err := w.refresh(ctx); err != nil {
		return err
	}
	w.change(func() {
		maps.DeleteFunc(w.unstored, func(channel string, gap event.Gap) bool { return opened[channel] == gap })
		if _, read := opened[everywhere]; read && !again && w.lag > 0 {
			w.again, w.next = w.again.Union(away), w.lag/firstLook
		}
	})
	return unknown
}

// firstLook is the part of the time in which the platform shows every message after which a gap is read
// for the second time. Each further read comes after twice the time of the one before.
const firstLook = 4

// lookAgain opens the gap of the last time without a connection once more, for the last time when the
// platform shows every message of it. It reports whether nothing else opens that gap. The caller holds
// the lock.
func (w *Workspace) lookAgain(now time.Time) (again bool) {
	if !w.up || w.again.Until.IsZero() || now.Before(w.again.Until.Add(w.next)) {
		return false
	}
	_, first := w.unstored[everywhere]
	w.unstored[everywhere] = w.unstored[everywhere].Union(event.Gap{From: w.again.From, Until: now})
	if w.next *= 2; w.next > w.lag {
		w.again = event.Gap{}
	}
	return !first
}
