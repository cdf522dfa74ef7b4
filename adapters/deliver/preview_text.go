package deliver

import (
	"context"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/journal/outbox"
)

// troubled is the pause after a failure of the platform or the store.
const troubled = 2 * time.Second

// busyFor is how long a preview waits for the post below which it belongs.
const busyFor = 250 * time.Millisecond

// show shows the growing text, until preview ends. A text that cannot be formatted also
// ends it.
func (s *LivePreview) show(ctx, preview context.Context) {
	defer func() { s.ended(s.last) }()
	for {
		var grown <-chan struct{}
		var again <-chan time.Time
		var wait time.Duration
		v, err := s.look()
		switch {
		case err != nil:
			s.Stop()
		case v == nil:
			grown = s.grown
		case v.d == nil:
			wait = s.begin(ctx, v)
		default:
			wait = s.change(ctx, v)
		}
		if v != nil {
			again = time.After(max(wait, time.Millisecond))
		}
		select {
		case <-preview.Done():
			return
		case <-grown:
		case <-again:
		}
	}
}

// ended tells of a post that has its last text. A post has one span, however often its text has grown.
func (s *LivePreview) ended(p *previewPost) {
	if p.own {
		d := *p.d
		d.PlatformID = p.id
		s.outbox.observe(&d, outbox.Sent)
	}
}

// until returns the wait until a time.
func (s *LivePreview) until(at time.Time) time.Duration { return at.Sub(s.outbox.Now()) }

// view is the text that the last post should show.
type view struct {
	*previewPost
	text, rest string
	ends       bool
}

// look returns the view of the last post, or nil if the post shows its text already.
func (s *LivePreview) look() (v *view, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer adapters.Recover(s.outbox.Log, &err, "about", s.run.ID)
	if s.stopped() != nil || isOver(s.said.String(), s.platform.Limits.FileOver) {
		return nil, nil
	}
	said, p := s.said.String(), s.last
	p.source += said[len(said)-s.fresh:]
	s.fresh = 0
	v = &view{previewPost: p}
	named, held := s.mentions.people.Mention(p.source, false)
	v.text, v.rest, v.ends = s.grower.FormatPartial(named, s.mentions.tokens, false)
	v.rest += held
	if v.text == "" || p.d != nil && p.clean && v.text == p.shown && !v.ends {
		return nil, nil
	}
	return v, nil
}

// begin posts the first text, or takes over a post of an earlier attempt.
func (s *LivePreview) begin(ctx context.Context, v *view) time.Duration {
	var again time.Time
	var d *outbox.Delivery
	post, known, err := s.aimed(ctx)
	switch {
	case err != nil:
		return troubled
	case !known:
		return busyFor
	}
	post.Text = v.text
	if !s.write(func() (err error) {
		d, again, err = s.outbox.Runs.BeginPreview(context.WithoutCancel(ctx), &s.claim.Claim, s.run, s.part,
			post, s.streamer != nil, bounds(s.platform.Limits))
		return err
	}) {
		return troubled
	}
	switch {
	case d == nil:
		return s.until(again)
	case d.PlatformID != "": // of an earlier attempt: without its previewPost, the text of the post is unknown
		v.d, v.id = d, d.PlatformID
		if p := previewPostOf(s.claim, &outbox.Delivery{Replaces: d}); p != nil {
			v.shown, v.clean, v.open = p.shown, p.clean, p.open
		}
		previewSlot(d.ID).Put(s.claim, v.previewPost)
		return s.change(ctx, v)
	}
	return s.post(ctx, v, d)
}

// post calls the platform to post a post's first text.
func (s *LivePreview) post(ctx context.Context, v *view, d *outbox.Delivery) time.Duration {
	v.calling.enter()
	defer v.calling.leave()
	id, begin := "", s.platform.Sender.Send
	if d.Stream {
		begin = s.streamer.Begin
	}
	post := s.outbox.post(d)
	post.Growing = true
	err := s.outbox.call(ctx, s.platform, d, d.SendBy, func(ctx context.Context) (err error) {
		id, err = begin(ctx, post)
		return err
	})
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return s.notPosted(ctx, d, err)
	}
	previewSlot(d.ID).Put(s.claim, v.previewPost) // before the outbox can find the delivery that replaces it
	more, err := s.outbox.Deliveries.Sent(ctx, d, id)
	if err != nil { // the outbox searches for the post
		return troubled
	}
	if s.part == 0 && !d.AskedAt.IsZero() {
		s.outbox.Observer.Answered(d.Workspace, d.AskedAt)
	}
	v.d, v.id, v.own = d, id, true
	v.shown, v.clean, v.open = v.text, true, d.Stream
	if more {
		s.outbox.Posted(s.claim, nil)
	}
	return s.done(v)
}

// notPosted handles a failed call for a first text. If the outcome is unclear, the outbox
// asks the platform.
func (s *LivePreview) notPosted(ctx context.Context, d *outbox.Delivery, cause error) time.Duration {
	if isFailure(cause, adapters.Unclear) {
		return troubled
	}
	err := s.outbox.end(ctx, d, outbox.Failed, cause.Error())
	s.outbox.Posted(s.claim, nil) // deliveries may wait behind it
	if isFailure(cause, adapters.Permanent) && err == nil {
		if !d.Stream {
			s.Stop() // the answer's own delivery reports the refusal
		}
		s.streamer = nil
		return 0
	}
	return pauseAfter(failureOf(cause), troubled)
}

// change makes the post show its text.
func (s *LivePreview) change(ctx context.Context, v *view) time.Duration {
	if at := v.d.SendBy.Add(readBackAfter); !v.clean && at.After(s.outbox.Now()) {
		return s.until(at) // an earlier call may still take effect
	}
	var slot outbox.Slot
	if !s.write(func() (err error) {
		slot, err = s.outbox.Runs.ChangePreview(context.WithoutCancel(ctx), &s.claim.Claim, s.run, v.d, bounds(s.platform.Limits))
		return err
	}) {
		return troubled
	}
	if slot.SendBy.IsZero() {
		return s.until(slot.Wait)
	}
	v.calling.enter()
	defer v.calling.leave()
	if s.stopped() != nil {
		return 0
	}
	v.d.SendBy = slot.SendBy
	if err := s.outbox.call(ctx, s.platform, v.d, v.d.SendBy, func(ctx context.Context) error { return s.state(ctx, v) }); err != nil {
		return s.notChanged(v, err)
	}
	v.shown, v.clean = v.text, true
	return s.done(v)
}

// state shows the text by the cheapest call with a certain result.
func (s *LivePreview) state(ctx context.Context, v *view) error {
	post := s.outbox.post(v.d)
	more, goesOn := strings.CutPrefix(v.text, v.shown)
	switch {
	case v.open && goesOn && v.ends:
		err := s.streamer.End(ctx, v.id, post, more)
		v.open = err != nil
		return err
	case v.open && goesOn:
		return s.streamer.Append(ctx, v.id, post, more)
	}
	v.open, post.Text = false, v.text
	return s.editor.Edit(ctx, v.id, post)
}

// notChanged handles a failed change. The post shows its earlier text, or an unknown
// one.
func (s *LivePreview) notChanged(v *view, cause error) time.Duration {
	switch {
	case isFailure(cause, adapters.Unclear):
		v.clean, v.open = false, false // the next call states the whole text
		return s.until(v.d.SendBy.Add(readBackAfter))
	case isFailure(cause, adapters.Permanent) && v.open:
		v.open = false // the platform has closed the stream
		return 0
	case isFailure(cause, adapters.Permanent):
		s.Stop()
		return 0
	}
	return pauseAfter(failureOf(cause), troubled)
}

// done advances to the next post if this one has ended. A stream must be ended first,
// even if it began with its whole text.
func (s *LivePreview) done(v *view) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.ends && !v.open && s.stopped() == nil {
		s.ended(v.previewPost)
		v.source = ""
		s.last, s.part = newPreviewPost(v.rest), s.part+1
	}
	return s.platform.Limits.PreviewEvery
}
