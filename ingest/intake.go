package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// intakeBatch is how many envelopes of a thread are read at once.
	intakeBatch = 16
	// maxAttempts is how often a failing envelope is tried before it is a dead
	// letter: with the backoff below, about four minutes.
	maxAttempts = 9
	// maxClaims is how often an envelope may have been taken by processes that
	// ended before it did, until it is worked on alone.
	maxClaims = 20
	// aloneClaims is how often it may end the process while it is worked on
	// alone. A process that is killed again and again takes the innocent with it,
	// so that one such end proves nothing.
	aloneClaims = 10
	// normalizeTimeout bounds what a normaliser may ask of its directory.
	normalizeTimeout = 10 * time.Second
	// storePause is how long intake leaves a thread whose store refuses a commit.
	storePause = 250 * time.Millisecond
	// reviewEvery is how often the subjects that envelopes wait for are looked up,
	// and what other nodes were told.
	reviewEvery = 5 * time.Second
	// unconfigured is how long an envelope of a workspace that is not configured
	// any more waits before it is looked at again.
	unconfigured = time.Minute
)

// Run records envelopes until ctx ends.
func (in *Ingest) Run(ctx context.Context) error {
	return in.desk.Serve(ctx, journal.Lane{Work: journal.Intake, Slots: intakeWorkers}, in.thread)
}

// task is an envelope that is worked on.
type task struct {
	journal.Pending
	// keys and facts are as custody has read them; facts are nil where the envelope
	// comes from the store.
	keys  event.Keys
	facts *facts
}

// thread works on a thread's envelopes, in order, until none is due.
func (in *Ingest) thread(ctx context.Context, lease *journal.Lease) {
	if p, ok := in.takeHanded(lease.Thread); ok && !in.envelope(ctx, lease, p) {
		return
	}
	for ctx.Err() == nil {
		batch, err := in.journal.NextEnvelopes(ctx, lease.Thread, intakeBatch)
		if err != nil {
			in.pause(ctx, "read envelopes", err)
			return
		}
		more := false
		for _, p := range batch {
			if more = in.envelope(ctx, lease, task{Pending: p}); !more {
				return
			}
		}
		if len(batch) == 0 {
			return
		}
	}
}

// envelope works on one; it returns whether the thread has more.
func (in *Ingest) envelope(ctx context.Context, lease *journal.Lease, p task) (more bool) {
	switch {
	case p.Claims > maxClaims+aloneClaims:
		return in.bury(ctx, lease, p, fmt.Errorf("the process ended %d times while this was worked on", p.Claims-1))
	case p.Claims > maxClaims:
		in.desk.Alone(func() { more = in.attempt(ctx, lease, p) })
		return more
	}
	return in.attempt(ctx, lease, p)
}

func (in *Ingest) attempt(ctx context.Context, lease *journal.Lease, p task) bool {
	w := in.workspace(p.Envelope.Platform, p.Envelope.Workspace)
	if w == nil {
		return in.postpone(ctx, lease, p, unconfigured, nil)
	}
	var entry journal.Entry
	err := guard(func() (err error) {
		entry, err = in.entry(ctx, w, lease, p)
		return err
	})
	if err != nil {
		return in.unread(ctx, lease, p, err)
	}
	outcome, err := in.journal.Record(ctx, lease, entry)
	if err != nil {
		return in.storeFailed(ctx, lease, p, "record", err)
	}
	if !outcome.Waits {
		in.settled(w.id, p.ID, outcome)
	}
	in.turns.Recorded(lease.Thread, entry.Agent, outcome)
	return outcome.Pending > 0
}

// unread handles an envelope of which no entry could be made.
func (in *Ingest) unread(ctx context.Context, lease *journal.Lease, p task, err error) bool {
	var unreadable *unreadableError
	var panicked *panicError
	switch {
	case errors.Is(err, errNeedsSelf):
		return in.postpone(ctx, lease, p, reviewEvery, nil)
	case errors.As(err, &panicked):
		in.log.Error("a normaliser panicked", "envelope", p.ID, "err", err, "stack", string(panicked.stack))
		return in.failed(ctx, lease, p, err)
	case errors.As(err, &unreadable) && ctx.Err() == nil:
		return in.bury(ctx, lease, p, err)
	}
	return in.storeFailed(ctx, lease, p, "read", err)
}

// panicError is a panic in one envelope's work.
type panicError struct {
	value any
	stack []byte
}

// Error gives the panic's value.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guard returns a panic of f as a *panicError: it is one envelope's failure, not
// the process's.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return f()
}

// storeFailed tells a lost lease and a store in trouble from an envelope that
// can't be recorded.
func (in *Ingest) storeFailed(ctx context.Context, lease *journal.Lease, p task, what string, err error) bool {
	switch {
	case errors.Is(err, journal.ErrFenced):
		in.desk.Lost(lease)
		return false
	case errors.Is(err, journal.ErrSettled):
		return true // it was handed over too late: the store knows what is next
	case ctx.Err() != nil:
		return false
	case journal.Unavailable(err):
		in.pause(ctx, what, err)
		return false
	}
	return in.failed(ctx, lease, p, err)
}

// failed counts an attempt: the envelope is tried again later, or is dead.
func (in *Ingest) failed(ctx context.Context, lease *journal.Lease, p task, cause error) bool {
	in.log.Error("intake failed", "workspace", p.Envelope.Workspace, "envelope", p.ID, "attempt", p.Attempts+1, "err", cause)
	if p.Attempts+1 >= maxAttempts {
		return in.bury(ctx, lease, p, cause)
	}
	return in.postpone(ctx, lease, p, time.Second<<p.Attempts, cause)
}

func (in *Ingest) postpone(ctx context.Context, lease *journal.Lease, p task, wait time.Duration, cause error) bool {
	until := in.now().Add(wait)
	if err := in.journal.Postpone(ctx, lease, p.ID, until, cause); err != nil {
		return in.unsettled(ctx, lease, "postpone", err)
	}
	in.desk.WakeAt(journal.Intake, "", until)
	return false
}

// bury makes an envelope a dead letter; its thread goes on.
func (in *Ingest) bury(ctx context.Context, lease *journal.Lease, p task, cause error) bool {
	if err := in.journal.Bury(ctx, lease, p.ID, cause); err != nil {
		return in.unsettled(ctx, lease, "bury", err)
	}
	in.log.Error("dead letter", "workspace", p.Envelope.Workspace, "envelope", p.ID, "err", cause)
	outcome := journal.Outcome{Kind: event.KindOther, Trigger: journal.TriggerNone,
		Fate: event.Fate{Disposition: event.Dead, Error: cause.Error()}}
	if settled, err := in.journal.Envelope(ctx, p.ID); err == nil && settled != nil {
		outcome.Kind = settled.Kind
	}
	in.settled(p.Envelope.Workspace, p.ID, outcome)
	return true
}

// unsettled leaves an envelope whose end could not be written: it is still pending.
func (in *Ingest) unsettled(ctx context.Context, lease *journal.Lease, what string, err error) bool {
	switch {
	case errors.Is(err, journal.ErrSettled):
		return true
	case errors.Is(err, journal.ErrFenced):
		in.desk.Lost(lease)
	default:
		in.pause(ctx, what, err)
	}
	return false
}

// pause leaves a store in trouble alone for a moment.
func (in *Ingest) pause(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	in.log.Warn("intake waits for the store", "what", what, "err", err)
	select {
	case <-ctx.Done():
	case <-time.After(storePause):
	}
}

// Review lets in, or ends, the envelopes that wait for their subject, learns who we
// are from other nodes, and lets in what those that died kept aside, until ctx ends. It may go on on every node.
func (in *Ingest) Review(ctx context.Context) error {
	ticker := time.NewTicker(reviewEvery)
	defer ticker.Stop()
	begun := in.now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			deadline := in.now().Add(-journal.WaitLimit)
			if deadline.Before(begun) {
				deadline = time.Time{} // what was pending at the start may hold the message
			}
			if err := in.ReviewOnce(ctx, deadline); err != nil && ctx.Err() == nil {
				in.log.Warn("look for the messages that envelopes wait for", "err", err)
			}
			for _, w := range *in.workspaces.Load() {
				if _, err := w.reread(ctx); err != nil && ctx.Err() == nil {
					in.log.Warn("look for what other nodes were told", "err", err)
				}
				if err := in.forsaken(ctx, w); err != nil && ctx.Err() == nil {
					in.log.Warn("let in what another node kept aside", "err", err)
				}
			}
		}
	}
}

// ReviewOnce ends what has waited for its subject since before the deadline.
func (in *Ingest) ReviewOnce(ctx context.Context, deadline time.Time) error {
	review, err := in.journal.ReviewWaiting(ctx, deadline) // what was done before an error stays done
	for _, thread := range review.Threads {
		in.desk.Wake(journal.Intake, "", thread)
	}
	for _, s := range review.Ended {
		in.settled(s.Workspace, s.Envelope, journal.Outcome{Kind: s.Kind, Trigger: journal.TriggerNone, Fate: s.Fate})
	}
	return err
}
