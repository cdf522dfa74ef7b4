package deliver

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/journal"
)

const (
	// endSoon is how long before its full age a stream is ended at the first good place
	// in its text; at its full age, anywhere.
	endSoon = 20 * time.Second
	// troubled is how long a platform, or a store, that is in trouble is left alone.
	troubled = 2 * time.Second
)

// show shows the text as it grows, until Stop.
func (s *Showing) show(ctx context.Context) {
	next := pause{idle: true}
	for {
		var again <-chan time.Time
		grown := s.grown
		if next.wait > 0 {
			again = time.After(next.wait)
		}
		if !next.idle {
			grown = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-s.stopped:
			return
		case <-grown:
		case <-again:
		}
		next = s.step(ctx)
	}
}

// pause is when to look at the text again: after a time, where that is not 0, and
// where there is nothing to do, also when it has grown.
type pause struct {
	wait time.Duration
	idle bool
}

// after is a pause of so long at the least.
func after(wait time.Duration) pause { return pause{wait: max(wait, time.Millisecond)} }

// until is a pause until a time.
func (s *Showing) until(at time.Time) pause { return after(at.Sub(s.outbox.Now())) }

// view is how the last piece is to look.
type view struct {
	*piece
	text, rest string
	ends       bool
}

// step shows what has been said since, as far as that is possible now. A text that
// can't be formatted is not shown.
func (s *Showing) step(ctx context.Context) pause {
	v, wait, err := s.look()
	switch {
	case err != nil:
		s.Stop()
		return pause{}
	case v == nil:
		return pause{wait: wait, idle: true}
	case v.d == nil:
		return s.begin(ctx, v)
	}
	return s.change(ctx, v)
}

// look says how the last piece is to look; nil for as it does, until it is time to
// look again.
func (s *Showing) look() (v *view, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.recover(&err)
	limits := s.platform.Limits
	if s.over.Load() || isOver(s.said.String(), limits.FileOver) {
		return nil, 0, nil
	}
	s.takeFresh()
	p := s.last()
	growth := adapters.Growth{}
	if p.open && limits.StreamAge > 0 {
		switch left := limits.StreamAge - s.outbox.Now().Sub(p.begun); {
		case left <= 0:
			growth = adapters.Growth{From: len(p.shown), Now: true}
		case left <= endSoon:
			growth.From, wait = len(p.shown), left
		default:
			wait = left - endSoon
		}
	}
	v = &view{piece: p}
	v.text, v.rest, v.ends = s.grower.Grow(p.source, s.mentions, growth)
	if v.text == "" || p.d != nil && p.clean && v.text == p.shown && !v.ends {
		return nil, wait, nil
	}
	s.forced = s.forced || v.ends && growth.From > 0
	return v, 0, nil
}

// begin posts the piece's first text, or goes on with a post of an earlier attempt.
func (s *Showing) begin(ctx context.Context, v *view) pause {
	var again time.Time
	var d *journal.Delivery
	stream := s.streamer != nil
	if !s.write(func() (err error) {
		if d, again, err = s.adopt(ctx, v.piece); d != nil || !again.IsZero() || err != nil {
			return err
		}
		d, again, err = s.outbox.Journal.BeginPreview(context.WithoutCancel(ctx), s.lease, s.run, s.to.post(v.text), stream, bounds(s.platform.Limits))
		return err
	}) {
		return after(troubled)
	}
	switch {
	case d == nil:
		return s.until(again)
	case d.State == journal.DeliverySent:
		return s.change(ctx, v)
	}
	return s.post(ctx, v, d)
}

// adopt takes over the post that an earlier attempt of the run, or a call with no
// clear end, has left in the piece's place; nil where there is none. What it shows is
// not known.
func (s *Showing) adopt(ctx context.Context, p *piece) (d *journal.Delivery, again time.Time, err error) {
	at := len(s.pieces) - 1
	if s.run.Previews <= int64(at) {
		return nil, again, nil
	}
	list, err := s.outbox.Journal.Previews(ctx, s.run)
	if err != nil || len(list) <= at {
		return nil, again, err
	}
	old := list[at]
	if old.PlatformID == "" {
		return nil, s.outbox.Now().Add(troubled), nil // the outbox finds out
	}
	p.d = &journal.Delivery{ID: old.ID, State: old.State, SendBy: old.SendBy, Post: s.to.post("")}
	p.id, p.sendBy = old.PlatformID, old.SendBy
	s.outbox.remember(p)
	return p.d, again, nil
}

// post makes the call that puts a piece's first text there.
func (s *Showing) post(ctx context.Context, v *view, d *journal.Delivery) pause {
	v.calling.enter()
	defer v.calling.leave()
	id, err := s.first(ctx, d)
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return s.notPosted(ctx, d, err)
	}
	more, err := s.outbox.Journal.Sent(ctx, s.lease, d, id)
	if more {
		s.outbox.Desk.Wake(journal.Deliveries, "", s.run.Thread)
	}
	if err != nil { // it is found again
		return after(troubled)
	}
	v.d, v.id, v.sendBy, v.begun = d, id, d.SendBy, s.outbox.Now()
	v.shown, v.clean, v.open = v.text, true, d.Stream
	s.outbox.remember(v.piece)
	return s.done(v)
}

// first is that call. A panic leaves an end that is not clear.
func (s *Showing) first(ctx context.Context, d *journal.Delivery) (id string, err error) {
	ctx, cancel := s.inTime(ctx, d.SendBy)
	defer cancel()
	defer s.recover(&err)
	if ctx.Err() != nil {
		return "", errLate
	}
	if d.Stream {
		return s.streamer.Begin(ctx, s.outbox.post(d))
	}
	return s.platform.Sender.Send(ctx, s.outbox.post(d))
}

// inTime bounds a call by a time of the store's clock, whatever this node's shows.
func (s *Showing) inTime(ctx context.Context, sendBy time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, sendBy.Sub(s.outbox.Now()))
}

// notPosted leaves a first text that was not taken. One with no clear end is looked
// for by the outbox.
func (s *Showing) notPosted(ctx context.Context, d *journal.Delivery, cause error) pause {
	if isFailure(cause, adapters.Unclear) {
		return after(troubled)
	}
	more, err := s.outbox.Journal.GiveUp(ctx, s.lease, d, journal.DeliveryFailed, cause.Error())
	if more {
		s.outbox.Desk.Wake(journal.Deliveries, "", s.run.Thread)
	}
	if isFailure(cause, adapters.Permanent) && err == nil {
		if !d.Stream {
			s.Stop() // the answer itself will say what is wrong
		}
		s.streamer = nil
		return after(0)
	}
	return s.trouble(ctx, cause)
}

// trouble returns when to try again. Where the platform has asked for it, its channel
// is left alone until then.
func (s *Showing) trouble(ctx context.Context, cause error) pause {
	var failure *adapters.SendError
	if !errors.As(cause, &failure) || failure.Failure != adapters.RateLimited {
		return after(troubled)
	}
	wait := max(failure.RetryAfter, minRetryAfter)
	if err := s.outbox.Journal.HoldUp(ctx, s.run.Workspace, s.to.Channel, s.outbox.Now().Add(wait)); err != nil {
		s.outbox.Log.Debug("a channel can't be held up", "workspace", s.run.Workspace, "err", err)
	}
	return after(wait)
}

// change makes the piece's post show its text.
func (s *Showing) change(ctx context.Context, v *view) pause {
	if at := v.sendBy.Add(readBackAfter); !v.clean && at.After(s.outbox.Now()) {
		return s.until(at) // an earlier text may still come
	}
	var slot journal.Slot
	if !s.write(func() (err error) {
		slot, err = s.outbox.Journal.ChangePreview(context.WithoutCancel(ctx), s.lease, s.run, v.d, bounds(s.platform.Limits))
		return err
	}) {
		return after(troubled)
	}
	if slot.SendBy.IsZero() {
		return s.until(slot.Wait)
	}
	v.calling.enter()
	defer v.calling.leave()
	if s.over.Load() {
		return pause{}
	}
	v.sendBy = slot.SendBy
	if err := s.call(ctx, v); err != nil {
		return s.notChanged(context.WithoutCancel(ctx), v, err)
	}
	v.shown, v.clean = v.text, true
	return s.done(v)
}

// call shows the text in the cheapest way that is certain.
func (s *Showing) call(ctx context.Context, v *view) (err error) {
	ctx, cancel := s.inTime(ctx, v.sendBy)
	defer cancel()
	defer s.recover(&err)
	if ctx.Err() != nil {
		return errLate
	}
	post := s.outbox.post(v.d)
	more, goesOn := strings.CutPrefix(v.text, v.shown)
	switch {
	case v.open && goesOn && v.ends:
		err := s.streamer.End(ctx, v.id, post, more)
		if err == nil {
			v.open = false
		}
		return err
	case v.open && goesOn:
		return s.streamer.Append(ctx, v.id, post, more)
	}
	v.open, post.Text = false, v.text
	return s.editor.Edit(ctx, v.id, post)
}

// notChanged leaves a post that shows what it did, or nobody knows what.
func (s *Showing) notChanged(ctx context.Context, v *view, cause error) pause {
	switch {
	case isFailure(cause, adapters.Unclear):
		v.clean, v.open = false, false // from now on the whole text is stated
		return s.until(v.sendBy.Add(readBackAfter))
	case isFailure(cause, adapters.Permanent) && v.open:
		v.open = false // the platform has closed it
		return after(0)
	case isFailure(cause, adapters.Permanent):
		s.Stop()
		return pause{}
	}
	return s.trouble(ctx, cause)
}

// done goes on to the next piece where this one has ended: a stream is to be ended
// first, though it was begun with all that it will hold.
func (s *Showing) done(v *view) pause {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.ends && !v.open && !s.over.Load() {
		v.full, v.piece.text, v.source = true, v.text, "" // what follows is the next one's
		s.pieces = append(s.pieces, newPiece(v.rest))
	}
	return after(s.platform.Limits.PreviewEvery)
}
