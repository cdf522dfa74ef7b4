package backfill

import (
	"context"
	"errors"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// threadRead is one read of a thread's missed messages, by a turn or in the background.
type threadRead struct {
	thread event.ThreadKey
	gap    event.Gap     // of the channel, at the begin of the read
	urgent chan struct{} // closed once a turn waits
	done   chan struct{} // closed at the end of the read
	asked  bool          // a turn asked for the read, which is repeated after a failure
	ended  bool
	err    error // of an ended read

	since time.Time // when the first turn began to wait; zero if none did
	wake  func()    // wakes the turn that still waits; nil if none does
}

// succeeded reports whether the thread was read from a gap.
func (r *threadRead) succeeded(gap event.Gap) bool {
	return r != nil && r.ended && r.err == nil && r.gap.Covers(gap)
}

// waited reports whether a turn waits for the thread to be read from a gap, or has waited.
func (r *threadRead) waited(gap event.Gap) bool {
	return r != nil && !r.since.IsZero() && r.gap.Covers(gap)
}

// failed reports whether the thread cannot be read from a gap in the time of a turn. If the
// turn joined a read of the background, one attempt has failed, and the turn asks for more.
func (r *threadRead) failed(gap event.Gap) bool {
	return r.waited(gap) && r.ended && r.asked
}

// behind returns the range in which messages of the thread may be missing, and whether
// there is one.
func (w *Workspace) behind(thread event.ThreadKey) (event.Gap, bool) {
	channel, began, ok := w.Platform.Began(thread)
	if !ok {
		return event.Gap{}, false
	}
	gap, open := w.gap(channel)
	return gap, open && !began.After(gap.Until) && !w.threads[thread].succeeded(gap)
}

// Behind reports whether messages of the thread may be missing.
func (w *Workspace) Behind(thread event.ThreadKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, behind := w.behind(thread)
	return behind
}

// Ready reports whether the next turn of the thread may begin, and, if it may, whether
// messages of the thread may be missing in it. If the turn may not begin, the thread is
// being read; Ready calls wakeTurn after the turn may begin, or after ten seconds.
func (w *Workspace) Ready(thread event.ThreadKey, wakeTurn func()) (ready, gap bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing, behind := w.behind(thread)
	r := w.threads[thread]
	if behind && !r.failed(missing) {
		if r == nil || r.ended {
			r = w.newRead(thread, missing)
			r.asked = true
			w.asked = append(w.asked, r)
			w.wake.urgent.Set()
		}
		if r.since.IsZero() {
			r.since = time.Now()
			close(r.urgent)
			time.AfterFunc(turnWait, wakeTurn)
		}
		if r.wake = wakeTurn; time.Since(r.since) < turnWait {
			return false, false
		}
	}
	if r != nil {
		r.wake = nil
	}
	return true, behind
}

// newRead notes that a read of the thread begins. No turn waits twice for the same gap, or
// longer because the gap has grown.
func (w *Workspace) newRead(thread event.ThreadKey, gap event.Gap) *threadRead {
	r := &threadRead{thread: thread, gap: gap, urgent: make(chan struct{}), done: make(chan struct{})}
	if before := w.threads[thread]; before.waited(gap) || before != nil && before.wake != nil {
		r.since, r.wake = before.since, before.wake
		close(r.urgent)
	}
	w.threads[thread] = r
	return r
}

// end ends a read with its result, and wakes the turn that waits for it.
func (w *Workspace) end(r *threadRead, err error) error {
	w.mu.Lock()
	r.err, r.ended = err, true
	close(r.done)
	wakeTurn := r.wake
	w.mu.Unlock()
	if wakeTurn != nil {
		wakeTurn()
	}
	return err
}

// readUrgently reads a thread whose turn waits, again after each failure.
func (w *Workspace) readUrgently(ctx context.Context, r *threadRead) {
	ctx, cancel := context.WithDeadline(ctx, r.since.Add(turnWait))
	defer cancel()
	err := context.DeadlineExceeded // if no attempt begins in time
	w.retry(ctx, "read missed messages of a thread", nil, func(ctx context.Context) error {
		err = w.readThread(ctx, r, new(tally))
		if _, refused := errors.AsType[*adapters.RefusedError](err); refused {
			return nil // only the operator can resolve it
		}
		return err
	})
	if w.end(r, err) != nil {
		w.Log.Warn("missed messages of a thread cannot be read in time; its turn continues", "thread", r.thread, "err", err)
	}
}

// readThread reads a thread and counts its new messages.
func (w *Workspace) readThread(ctx context.Context, r *threadRead, messages *tally) (err error) {
	defer adapters.Recover(w.Log, &err, "thread", r.thread)
	return w.Platform.ReadThread(ctx, r.thread, adapters.Reading{
		Gap: w.reach(r.gap), Urgent: r.urgent,
		Hand: func(_ event.ThreadKey, list []adapters.Missed) error { return w.hand(ctx, list, messages) },
	})
}

// reach returns the range of a gap that is read.
func (w *Workspace) reach(gap event.Gap) event.Gap {
	if oldest := w.Now().Add(-w.Config().MaxAge); gap.From.Before(oldest) {
		gap.From = oldest
	}
	gap.Until = gap.Until.Add(clockLead)
	return gap
}
