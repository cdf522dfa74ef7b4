package deliver

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/journal"
)

// readBack asks the platform what became of a call with no clear end.
func (o *Outbox) readBack(ctx context.Context, lease *journal.Lease, d *journal.Delivery, platform Platform) bool {
	now := o.Now()
	if at := d.SendBy.Add(readBackAfter); now.Before(at) {
		return o.later(ctx, lease, o.Journal.AwaitReadBack(ctx, lease, d, at, "its end is not clear"), at)
	}
	old := now.Sub(d.CreatedAt) > maxAge
	switch {
	case repeatable(d) && old:
		return o.giveUp(ctx, lease, d, journal.DeliveryFailed, errTooOld)
	case repeatable(d):
		return o.ok(ctx, lease, o.Journal.Resend(ctx, lease, d, now, "its end is not clear", false), true)
	case d.Kind == journal.DeliveryTell:
		return o.giveUp(ctx, lease, d, journal.DeliveryUnknown, errors.New("it leaves nothing to be found"))
	}
	id, found, err := o.find(ctx, d, platform)
	switch {
	case errors.Is(err, errCantTell):
		return o.unknown(ctx, lease, d, platform, err)
	case err != nil && ctx.Err() != nil:
		return false
	case err != nil && now.Sub(d.SendBy) > readBackFor:
		return o.unknown(ctx, lease, d, platform, err)
	case err != nil:
		at := now.Add(askAgain(now.Sub(d.SendBy), err))
		return o.later(ctx, lease, o.Journal.AwaitReadBack(ctx, lease, d, at, err.Error()), at)
	case found:
		return o.sent(ctx, lease, d, id)
	case d.Kind == journal.DeliveryPreview:
		return o.drop(ctx, lease, d, journal.DeliveryFailed, errors.New("it had not arrived"))
	case old:
		return o.giveUp(ctx, lease, d, journal.DeliveryFailed, errTooOld)
	}
	err = o.Journal.Resend(ctx, lease, d, now, "it had not arrived", false)
	return o.ok(ctx, lease, err, true)
}

// errTooOld is what never had a clear end until it was not tried any more.
var errTooOld = errors.New("every try ended without telling what became of it")

// errCantTell means that a platform has no answer to what became of a post.
var errCantTell = errors.New("the platform can't tell")

func (o *Outbox) find(ctx context.Context, d *journal.Delivery, platform Platform) (id string, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, platform.Limits.Timeout)
	defer cancel()
	defer o.recover(d, &err)
	if d.Stream {
		return o.findStream(ctx, d, platform)
	}
	finder, ok := platform.Sender.(adapters.Finder)
	if !ok {
		return "", false, errCantTell
	}
	return finder.Find(ctx, o.post(d))
}

// findStream looks for the stream that a preview was begun as: a post of ours that
// no delivery knows.
func (o *Outbox) findStream(ctx context.Context, d *journal.Delivery, platform Platform) (string, bool, error) {
	finder, ok := platform.Sender.(adapters.StreamFinder)
	if !ok {
		return "", false, errCantTell
	}
	ids, err := finder.FindStream(ctx, o.post(d))
	if err != nil {
		return "", false, err
	}
	known, err := o.Journal.Known(ctx, d.Workspace, ids)
	for _, id := range ids {
		if err == nil && !known[id] {
			return id, true, nil
		}
	}
	return "", false, err
}

// askAgain is how long after a failed question the next one follows: the longer
// the end of the call is past, the longer, and not before the platform allows it.
func askAgain(past time.Duration, err error) time.Duration {
	wait := min(max(past/2, time.Second), maxBackoff)
	var failure *adapters.SendError
	if errors.As(err, &failure) && failure.Failure == adapters.RateLimited {
		wait = max(wait, failure.RetryAfter)
	}
	return wait
}

// unknown does what the channel's policy says with a delivery of which nobody
// can say whether it arrived. What was sent again often enough is held. A preview is
// left to itself: what it stands for is posted.
func (o *Outbox) unknown(ctx context.Context, lease *journal.Lease, d *journal.Delivery, platform Platform, cause error) bool {
	if d.Kind == journal.DeliveryPreview {
		return o.giveUp(ctx, lease, d, journal.DeliveryUnknown, cause)
	}
	policy := platform.Unknown(d.Post.Channel)
	if d.Attempts >= maxResends {
		policy = unknownHold
	}
	switch policy {
	case unknownHold:
		return o.giveUp(ctx, lease, d, journal.DeliveryUnknown, cause)
	case unknownMarked:
		text := mark + strings.TrimPrefix(d.Post.Text, mark)
		return o.ok(ctx, lease, o.Journal.ResendMarked(ctx, lease, d, text, cause.Error()), true)
	}
	return o.ok(ctx, lease, o.Journal.Resend(ctx, lease, d, o.Now(), cause.Error(), false), true)
}
