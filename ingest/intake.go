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
	// normalizeTimeout bounds what a normaliser may ask of its directory.
	normalizeTimeout = 10 * time.Second
	// storePause is how long intake leaves a thread whose store refuses a commit.
	storePause = 250 * time.Millisecond
	// reviewEvery is how often the subjects that envelopes wait for are looked up.
	reviewEvery = 5 * time.Second
	// unconfigured is how long an envelope of a workspace that is not configured
	// any more waits before it is looked at again.
	unconfigured = time.Minute
)

// Run records envelopes until ctx ends.
func (in *Ingest) Run(ctx context.Context) error {
	return in.desk.Serve(ctx, journal.Lane{Work: journal.Intake, Slots: intakeWorkers}, in.thread)
}

// thread works on a thread's envelopes, in order, until none is due.
func (in *Ingest) thread(ctx context.Context, lease *journal.Lease) {
	for ctx.Err() == nil {
		batch, err := in.journal.NextEnvelopes(ctx, lease.Thread, intakeBatch)
		if err != nil {
			in.pause(ctx, "read envelopes", err)
			return
		}
		more := false
		for _, p := range batch {
			if more = in.envelope(ctx, lease, p); !more {
				return
			}
		}
		if len(batch) == 0 {
			return
		}
	}
}

// envelope works on one; it returns whether the thread has more.
func (in *Ingest) envelope(ctx context.Context, lease *journal.Lease, p journal.Pending) (more bool) {
	switch {
	case p.Claims > maxClaims+1:
		cause := fmt.Errorf("the process ended %d times while this was worked on", p.Claims-1)
		return in.bury(ctx, lease, p, event.KindOther, cause)
	case p.Claims > maxClaims:
		in.desk.Alone(func() { more = in.attempt(ctx, lease, p) })
		return more
	}
	return in.attempt(ctx, lease, p)
}

func (in *Ingest) attempt(ctx context.Context, lease *journal.Lease, p journal.Pending) bool {
	w := in.workspace(p.Envelope.Platform, p.Envelope.Workspace)
	if w == nil {
		return in.postpone(ctx, lease, p, unconfigured, nil)
	}
	if w.config.Facts == nil && w.config.Normalizer.Keys(p.Envelope, w).Needs != "" {
		return in.postpone(ctx, lease, p, reviewEvery, nil)
	}
	entry, err := in.normalize(ctx, w, p)
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return in.failed(ctx, lease, p, err)
	case err != nil && ctx.Err() != nil:
		return false
	case err != nil:
		return in.bury(ctx, lease, p, kindOf(w, p), err)
	}
	outcome, err := in.journal.Record(ctx, lease, entry)
	if err != nil {
		return in.recordFailed(ctx, lease, p, err)
	}
	if !outcome.Waits {
		in.settled(w.id, p.ID, outcome)
	}
	in.turns.Recorded(lease.Thread, entry.Agent, outcome)
	return outcome.Pending > 0
}

func kindOf(w *workspace, p journal.Pending) event.Kind {
	return w.config.Normalizer.Keys(p.Envelope, w).Kind
}

// normalize makes an entry of an envelope. A panic is this envelope's failure.
func (in *Ingest) normalize(ctx context.Context, w *workspace, p journal.Pending) (entry journal.Entry, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, normalizeTimeout)
	defer cancel()
	e, err := w.config.Normalizer.Normalize(ctx, p.Envelope, directory{w, w.config.Names})
	if err != nil {
		return entry, err
	}
	channel := ""
	if e.Message != nil {
		channel = e.Message.Channel.ID
		// An edit may leave out who wrote the message: the stored one says.
		if err := e.Message.Metadata.Validate(); err != nil && e.Ignored == "" && e.Kind == event.KindMessage {
			return entry, err
		}
	}
	settings := w.config.Settings(channel)
	g := gate{Settings: settings, arrived: p.Envelope.ReceivedAt, now: in.now}
	if e.Ignored == "" && e.Kind == event.KindReaction {
		e.Ignored = g.reaction(e.Reaction, w)
	}
	return journal.Entry{
		Envelope: p.ID, Workspace: w.id, Event: e, Origin: origin(p.Envelope), Agent: settings.Agent,
		Coalesce: settings.Coalesce, CoalesceMax: settings.CoalesceMax, Decide: g.decide,
	}, nil
}

func origin(envelope event.Envelope) journal.Origin {
	if envelope.Platform == event.Web {
		return journal.API
	}
	return journal.Live
}

// reaction returns why a reaction is not taken note of; empty for one that is.
func (g gate) reaction(r *event.Reaction, w *workspace) string {
	if self := w.Self().UserID; self != "" && r.SenderID == w.config.Platform.Namespace()+":"+self {
		return event.ReasonOwnMessage
	}
	return g.refuses(r.SenderID, "", event.Human)
}

// panicError is a panic in one envelope's work.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recordFailed tells a lost lease and a store in trouble from an envelope that
// can't be recorded.
func (in *Ingest) recordFailed(ctx context.Context, lease *journal.Lease, p journal.Pending, err error) bool {
	switch {
	case errors.Is(err, journal.ErrFenced):
		in.desk.Lost(lease.Thread)
		return false
	case ctx.Err() != nil:
		return false
	case journal.Unavailable(err):
		in.pause(ctx, "record", err)
		return false
	}
	return in.failed(ctx, lease, p, err)
}

// failed counts an attempt: the envelope is tried again later, or is dead.
func (in *Ingest) failed(ctx context.Context, lease *journal.Lease, p journal.Pending, cause error) bool {
	in.log.Error("intake failed", "workspace", p.Envelope.Workspace, "envelope", p.ID, "attempt", p.Attempts+1, "err", cause)
	if p.Attempts+1 >= maxAttempts {
		return in.bury(ctx, lease, p, event.KindOther, cause)
	}
	return in.postpone(ctx, lease, p, time.Second<<p.Attempts, cause)
}

func (in *Ingest) postpone(ctx context.Context, lease *journal.Lease, p journal.Pending, wait time.Duration, cause error) bool {
	until := in.now().Add(wait)
	if err := in.journal.Postpone(ctx, lease, p.ID, until, cause); err != nil {
		in.pause(ctx, "postpone", err)
		return false
	}
	in.desk.WakeAt(journal.Intake, "", until)
	return false
}

func (in *Ingest) bury(ctx context.Context, lease *journal.Lease, p journal.Pending, kind event.Kind, cause error) bool {
	if err := in.journal.Bury(ctx, lease, p.ID, cause); err != nil {
		in.pause(ctx, "bury", err)
		return false
	}
	in.log.Error("dead letter", "workspace", p.Envelope.Workspace, "envelope", p.ID, "err", cause)
	in.settled(p.Envelope.Workspace, p.ID, journal.Outcome{Kind: kind, Trigger: journal.TriggerNone,
		Fate: event.Fate{Disposition: event.Dead, Error: cause.Error()}})
	return true
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

// Review lets in, or ends, the envelopes that wait for their subject, until ctx
// ends.
func (in *Ingest) Review(ctx context.Context) error {
	ticker := time.NewTicker(reviewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := in.ReviewOnce(ctx, in.now().Add(-journal.WaitLimit)); err != nil && ctx.Err() == nil {
				in.log.Warn("look for the messages that envelopes wait for", "err", err)
			}
		}
	}
}

// ReviewOnce ends what has waited for its subject since before the deadline.
func (in *Ingest) ReviewOnce(ctx context.Context, deadline time.Time) error {
	review, err := in.journal.ReviewWaiting(ctx, deadline)
	if err != nil {
		return err
	}
	for _, thread := range review.Threads {
		in.desk.Wake(journal.Intake, "", thread)
	}
	for _, s := range review.Ended {
		in.settled(s.Workspace, s.Envelope, journal.Outcome{Kind: s.Kind, Trigger: journal.TriggerNone, Fate: s.Fate})
	}
	return nil
}
