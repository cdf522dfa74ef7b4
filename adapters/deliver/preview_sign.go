package deliver

import (
	"context"
	"slices"
	"time"

	"parley/adapters"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// signAfter is the duration of a run after which it gets a sign of work.
const signAfter = 500 * time.Millisecond

// sign shows that the agent works, if its run takes longer than signAfter. The sign is
// recorded before the call, so that any end of the run removes it. A sign that ends by itself is
// shown again until the preview ends.
func (s *LivePreview) sign(ctx, preview context.Context, signer adapters.WorkingIndicator) {
	if !wake.After(preview, signAfter) {
		return
	}
	d := s.unsign(ctx)
	sign := adapters.Sign{To: s.outbox.post(d).To, Message: d.Post.Text}
	timeout := s.platform.Limits.Timeout
	before := previewPostOf(s.claim, d)
	sendBy := s.outbox.Now().Add(timeout)
	certain := !s.run.Signed || before != nil && before.clean // the call of a process that ended may still take effect
	call := newPreviewPost("")
	call.d = d
	call.calling.enter() // the sign's removal waits for it
	defer call.calling.leave()
	if !s.write(func() error {
		postSlot(d).Put(s.claim, call)
		return s.outbox.Runs.MarkSigned(context.WithoutCancel(ctx), &s.claim.Claim, s.run, d.Post, timeout+readBackAfter)
	}) {
		return
	}
	for {
		sign.Text, d.SendBy = s.lastNote(), sendBy
		err := s.outbox.call(ctx, s.platform, d, sendBy, func(ctx context.Context) error { return signer.ShowWorking(ctx, sign) })
		certain = certain && !isFailure(err, adapters.Unclear)
		call.clean = certain
		if err != nil {
			s.outbox.Log.Debug("the sign of work cannot be shown", "workspace", s.run.Workspace, "err", err)
		}
		if !s.signsAgain(preview) {
			return
		}
		sendBy = s.outbox.Now().Add(timeout)
	}
}

// unsign returns the delivery that removes the sign of the run. A post that shows the question may have arrived since the run began.
func (s *LivePreview) unsign(ctx context.Context) *outbox.Delivery {
	if s.run.Announced == nil {
		return unsign(s.run, s.to)
	}
	run := *s.run
	if err := s.outbox.findPosts(ctx, &run); err != nil {
		return unsign(s.run, s.to)
	}
	_, to, err := s.outbox.way(&run)
	if err != nil {
		to = s.to
	}
	return unsign(&run, to)
}

// unsign returns the delivery that removes the sign of a run, whose posts have the destination to.
func unsign(run *runs.Run, to outbox.Post) *outbox.Delivery {
	to.Text = signed(run)
	return &outbox.Delivery{Kind: outbox.KindUnsign, Run: run.ID, Key: run.ID, Workspace: run.Workspace, Post: to}
}

// Expect implements turn.Outbox: it records the removal of a sign that the platform shows by itself. The
// removal waits for no call of ours, unless an earlier attempt of the run may have shown a sign.
func (o *Outbox) Expect(ctx context.Context, c *work.Claim, run *runs.Run) {
	if err := o.findPosts(ctx, run); err != nil { // Show tries again
		o.Log.Debug("the announcements of a run are not found", "workspace", run.Workspace, "run", run.ID, "err", err)
	}
	platform, to, err := o.way(run)
	signer, ok := platform.Sender.(adapters.SelfSigner)
	isSigned := func(m messages.Message) bool { return signer.IsSigned(m.ExternalID) }
	if err != nil || !ok || run.Signed || !slices.ContainsFunc(run.Messages, isSigned) {
		return
	}
	d := unsign(run, to)
	call := newPreviewPost("")
	call.d, call.clean = d, true
	postSlot(d).Put(c, call)
	if err := o.Runs.MarkSigned(context.WithoutCancel(ctx), &c.Claim, run, d.Post, 0); err != nil {
		o.Log.Debug("the platform's sign of work stays", "workspace", run.Workspace, "run", run.ID, "err", err)
	}
}

// Clear implements ingest.Notifier.
func (o *Outbox) Clear(run *runs.Run) []outbox.Post {
	platform, to, err := o.way(run)
	if _, ok := platform.Sender.(adapters.SelfSigner); err != nil || !ok {
		return nil
	}
	to.Text, to.Clears = answered(run), true
	return []outbox.Post{to}
}

// noteEvery is the shortest time between two texts of a sign.
const noteEvery = 1500 * time.Millisecond

// signsAgain waits until the sign must be shown again, because it ends by itself or has
// another text. It returns false if that never happens.
func (s *LivePreview) signsAgain(preview context.Context) bool {
	limits := s.platform.Limits
	var ends <-chan time.Time
	if limits.SignEvery > 0 {
		ends = time.After(limits.SignEvery)
	}
	if limits.SignEvery <= 0 && limits.SignText <= 0 {
		return false
	}
	begun := time.Now()
	select {
	case <-preview.Done():
	case <-ends:
		return true
	case <-s.noted:
	}
	return wake.After(preview, noteEvery-time.Since(begun))
}

// lastNote returns the last message about the agent's work; empty for none.
func (s *LivePreview) lastNote() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted.Clear() // the caller shows it
	return s.note
}

// signed returns the message that gets the sign of work: the turn's last one, unless an
// earlier attempt has signed another message of the turn. A run has one sign.
func signed(run *runs.Run) string {
	if slices.ContainsFunc(run.Messages, func(m messages.Message) bool { return m.ExternalID == run.Sign }) {
		return run.Sign
	}
	return answered(run)
}
