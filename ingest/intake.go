package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
	"parley/ingest/work"
)

const (
	// intakeWorkers is the number of threads whose envelopes are recorded
	// concurrently. A worker waits for each commit, and sometimes for a name.
	intakeWorkers = 64
	// intakeBatch is the number of envelopes of a thread that one read returns.
	intakeBatch = 16
	// maxAttempts is how often a failing envelope is tried before it is a dead
	// letter. With the waits of attempt that takes about four minutes.
	maxAttempts = 9
	// normalizeTimeout bounds the lookups of a normaliser in its directory.
	normalizeTimeout = 10 * time.Second
	// reviewEvery is how often waiting envelopes and the identities that other nodes
	// learnt are looked up.
	reviewEvery = 5 * time.Second
	// sendingWait is how long an envelope waits that may be our own post, until the platform's
	// id of that post is known.
	sendingWait = 250 * time.Millisecond
	// maxSelfWait bounds how long an envelope waits for our identity before it is tried again.
	// SetSelf wakes the waiting envelopes.
	maxSelfWait = time.Minute
	// unconfigured is how long an envelope waits if its workspace was removed during the work
	// on its thread. Then another node may have it.
	unconfigured = 5 * time.Second
)

// Run records envelopes until ctx ends.
func (in *Ingest) Run(ctx context.Context) error {
	return in.Work.Serve(ctx, work.Queue{Kind: work.Intake, Slots: intakeWorkers, Do: in.thread})
}

// admitted says that a record has admitted envelopes to the claim's thread.
var admitted = work.Slot[bool]{Key: "admitted"}

// task is an envelope in work.
type task struct {
	envelopes.Pending
	keys *event.Keys // as Accept read them; nil if the envelope comes from the store
}

// thread works on a thread's envelopes, in order, until none is due.
func (in *Ingest) thread(ctx context.Context, c *work.Claim) error {
	if t, ok := work.Payload.Take(c).(task); ok {
		if more, err := in.envelope(ctx, c, t); err != nil || !more {
			return err
		}
	}
	for ctx.Err() == nil {
		batch, err := in.Journal.Envelopes.NextEnvelopes(ctx, c.Thread, intakeBatch)
		if err != nil {
			return fmt.Errorf("read envelopes: %w", err)
		}
		if len(batch) == 0 {
			return in.Journal.Envelopes.CorrectPending(ctx, &c.Claim)
		}
		for _, p := range batch {
			if more, err := in.envelope(ctx, c, task{Pending: p}); err != nil || !more {
				return err
			}
			if admitted.Take(c) {
				break // the admitted envelopes were accepted before the rest of the batch
			}
		}
	}
	return nil
}

// envelope works on one envelope. It returns whether the thread may have more that
// are due.
func (in *Ingest) envelope(ctx context.Context, c *work.Claim, t task) (more bool, err error) {
	switch {
	case t.Claims >= envelopes.DeadClaims:
		more, err = in.bury(ctx, c, t, fmt.Errorf("the process ended %d times while it worked on this", t.Claims))
	case t.Claims >= envelopes.SuspectClaims && !c.Serial():
		return false, work.ErrSuspect
	case t.Claims >= envelopes.SuspectClaims:
		more, err = in.suspect(ctx, c, t)
	default:
		more, err = in.attempt(ctx, c, t)
	}
	if errors.Is(err, envelopes.ErrSettled) { // another worker has stored its result
		return true, nil
	}
	return more, err
}

// suspect works on an envelope that may end the process. A process that ends leaves the
// attempt counted. A queue of innocent envelopes at the end of a process is not counted again.
func (in *Ingest) suspect(ctx context.Context, c *work.Claim, t task) (more bool, err error) {
	if err := in.Journal.Envelopes.CountSuspect(ctx, &c.Claim, t.ID, 1); err != nil {
		return false, err
	}
	if more, err = in.attempt(ctx, c, t); err != nil {
		_ = in.Journal.Envelopes.CountSuspect(context.WithoutCancel(ctx), &c.Claim, t.ID, -1) // at worst, the attempt counts
	}
	return more, err
}

// attempt records an envelope, or handles its error: the envelope waits, is tried again
// later, or becomes a dead letter.
func (in *Ingest) attempt(ctx context.Context, c *work.Claim, t task) (more bool, err error) {
	w := in.workspace(t.Envelope.Platform, t.Envelope.Workspace)
	if w == nil {
		return false, in.postpone(ctx, c, t, unconfigured, nil)
	}
	known := *w.self.Load()
	var entry record.Entry
	var result record.Result
	err = in.guard(func() (err error) {
		if entry, err = in.entry(ctx, w, c, t); err == nil {
			result, err = in.Journal.Recorder.Record(ctx, &c.Claim, entry)
		}
		return err
	})
	var unreadable unreadableError
	switch {
	case err == nil:
		in.recorded(w, c, &t.Pending, entry.Agent, result)
		return result.Pending > 0, nil
	case ctx.Err() != nil, errors.Is(err, storage.ErrFenced), errors.Is(err, envelopes.ErrSettled), storage.Unavailable(err):
		return false, fmt.Errorf("record an envelope: %w", err)
	case errors.Is(err, errNeedsSelf):
		return false, in.awaitSelf(ctx, w, c, t, known)
	case errors.Is(err, errBeingSent):
		return false, in.postpone(ctx, c, t, sendingWait, nil)
	case errors.As(err, &unreadable), t.Attempts+1 >= maxAttempts:
		return in.bury(ctx, c, t, err)
	}
	in.Log.Error("intake failed", "workspace", w.config.ID, "envelope", t.ID, "attempt", t.Attempts+1, "err", err)
	return false, in.postpone(ctx, c, t, time.Second<<t.Attempts, err)
}

// recorded reports the result of a recorded envelope.
func (in *Ingest) recorded(w *workspace, c *work.Claim, p *envelopes.Pending, agent string, result record.Result) {
	if !result.Waits {
		in.processed(p, result)
	}
	if result.Reason == event.ReasonLoopGuard {
		in.Log.Warn("the loop guard stops the answers in a channel", "workspace", w.config.ID, "thread", result.Thread)
	}
	if result.Admitted {
		admitted.Put(c, true)
	}
	if result.Strangers {
		in.Strangers.Changed()
	}
	in.Turns.Recorded(c, agent, result)
}

// guard returns a panic of f as an error: it is one envelope's failure, not the process's.
func (in *Ingest) guard(f func() error) (err error) {
	defer adapters.Recover(in.Log, &err)
	return f()
}

func (in *Ingest) postpone(ctx context.Context, c *work.Claim, t task, wait time.Duration, cause error) error {
	until := in.Now().Add(wait)
	err := in.Journal.Envelopes.Postpone(ctx, &c.Claim, t.ID, until, cause)
	if err != nil {
		return err
	}
	in.Work.WakeAt(work.Intake, "", until)
	return work.ErrWaits
}

// awaitSelf lets an envelope wait until more of our identity is known than before its attempt.
func (in *Ingest) awaitSelf(ctx context.Context, w *workspace, c *work.Claim, t task, known event.Self) error {
	age := in.Now().Sub(t.Envelope.ReceivedAt)
	waiting := in.postpone(ctx, c, t, min(max(age, reviewEvery), maxSelfWait), nil)
	w.waits.Store(true)
	if self := *w.self.Load(); self != known {
		return cmp.Or(in.setSelf(ctx, w, self), waiting)
	}
	return waiting
}

// bury makes an envelope a dead letter; its thread continues.
func (in *Ingest) bury(ctx context.Context, c *work.Claim, t task, cause error) (more bool, err error) {
	if err := in.Journal.Envelopes.Bury(ctx, &c.Claim, t.ID, cause); err != nil {
		return false, err
	}
	in.settledAtOnce(t.Pending, c.Key, event.Result{Disposition: event.Dead, Error: cause.Error()})
	return true, nil
}

// Review moves or ends the envelopes that wait for their message, and reads the identities
// that other nodes have stored, until ctx ends. It may run on every node.
func (in *Ingest) Review(ctx context.Context) error {
	begun := in.Now()
	for wake.After(ctx, reviewEvery) {
		deadline := in.Now().Add(-envelopes.WaitLimit)
		if deadline.Before(begun) {
			deadline = time.Time{} // gaps may be opened in the first minute
		}
		err := errors.Join(in.ReviewOnce(ctx, deadline), in.ExpireQuestions(ctx))
		for _, w := range *in.workspaces.Load() {
			err = errors.Join(err, in.readSelf(ctx, w))
		}
		if err != nil && ctx.Err() == nil {
			in.Log.Warn("waiting envelopes cannot be reviewed", "err", err)
		}
	}
	return nil
}

// ReviewOnce ends the envelopes that have waited for their message since before the
// deadline, unless the message may still come.
func (in *Ingest) ReviewOnce(ctx context.Context, deadline time.Time) error {
	moved := func(thread int64) { in.Work.Wake(work.Intake, "", thread) }
	return in.Journal.Envelopes.ReviewWaiting(ctx, deadline, moved, func(s envelopes.Result) {
		in.processed(&envelopes.Pending{ID: s.Envelope, Envelope: event.Envelope{Workspace: s.Workspace}}, record.Result{Kind: s.Kind, Trigger: messages.TriggerNone, Result: s.Result})
	})
}
