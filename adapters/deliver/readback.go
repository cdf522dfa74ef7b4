package deliver

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal/outbox"
	"parley/ingest/work"
)

// readBack asks the platform about the outcome of a call that has ended. It returns
// whether the thread may have more to do.
func (o *Outbox) readBack(ctx context.Context, c *work.Claim, d *outbox.Delivery, platform Platform) (more bool, err error) {
	now := o.Now()
	if at := d.SendBy.Add(readBackAfter); now.Before(at) {
		return true, o.Deliveries.AwaitReadBack(ctx, d, at, "the outcome is unclear")
	}
	var id string
	var found bool
	if !repeatable(d, platform) {
		id, found, err = o.find(ctx, d, platform)
	}
	switch {
	case found:
		return o.sent(ctx, c, d, id)
	case ctx.Err() != nil:
		return false, err
	case d.Kind == outbox.KindTell:
		return true, o.giveUp(ctx, d, outbox.Unknown, errCantTell)
	case errors.Is(err, adapters.ErrUndelivered):
		d.PlatformID = id
		return true, o.giveUp(ctx, d, outbox.Failed, err)
	case errors.Is(err, errCantTell), isFailure(err, adapters.Permanent), err != nil && now.Sub(d.SendBy) > readBackFor:
		return true, o.unknown(ctx, d, platform, err)
	case err != nil:
		return true, o.Deliveries.AwaitReadBack(ctx, d, now.Add(askAgain(now.Sub(d.SendBy), err)), err.Error())
	case now.Before(d.SendBy.Add(o.settles(d, platform))):
		return true, o.Deliveries.AwaitReadBack(ctx, d, now.Add(askAgain(now.Sub(d.SendBy), nil)), "the post may still appear")
	case d.Kind == outbox.KindPreview && !platform.isOnce(d):
		return true, o.end(ctx, d, outbox.Failed, "the post had not arrived")
	case now.Sub(d.CreatedAt) > maxAge:
		return true, o.giveUp(ctx, d, outbox.Failed, errTooOld)
	}
	return true, o.Deliveries.Resend(ctx, d, now, "it is unknown whether the post arrived")
}

// errTooOld ends a delivery whose calls had no clear outcome until it reached maxAge.
var errTooOld = errors.New("the outcome of every attempt was unclear")

// errCantTell means that a platform cannot report the outcome of a call.
var errCantTell = errors.New("the platform cannot report the outcome")

// find searches the platform for a delivery. Only some platforms recognise the post, or do so for a
// while. Of the others' lists, the post is the first one that no delivery and no recorded message
// has. The error ErrUndelivered comes with the post's id.
func (o *Outbox) find(ctx context.Context, d *outbox.Delivery, platform Platform) (id string, found bool, err error) {
	err = o.call(ctx, platform, d, o.Now().Add(platform.Limits.Timeout), func(ctx context.Context) error {
		finder, finds := platform.Sender.(adapters.Finder)
		lister, lists := platform.Sender.(adapters.Lister)
		streams, listsStreams := platform.Sender.(adapters.StreamFinder)
		if finds && !d.Stream {
			if id, found, err = finder.Find(ctx, o.post(d)); found || err != nil || !lists {
				return err
			}
		}
		var ids []string
		switch {
		case d.Stream && listsStreams:
			ids, err = streams.FindStream(ctx, o.post(d))
		case lists && !d.Stream:
			ids, err = lister.List(ctx, o.post(d))
		default:
			err = errCantTell
		}
		undelivered := errors.Is(err, adapters.ErrUndelivered)
		if err == nil || undelivered {
			id, err = o.Deliveries.FirstUnknown(ctx, d.Workspace, ids)
		}
		if undelivered && id != "" {
			err = adapters.ErrUndelivered
		}
		found = err == nil && id != ""
		return err
	})
	return id, found, err
}

// settles returns how long after the end of its call a delivery's post may still appear.
func (o *Outbox) settles(d *outbox.Delivery, platform Platform) time.Duration {
	if lister, ok := platform.Sender.(adapters.Lister); ok && !repeatable(d, platform) {
		return lister.Settles(o.post(d))
	}
	return 0
}

// askAgain is the wait after a failed query. It grows with the time since the end of the
// call, and is at least the wait that the platform asks for.
func askAgain(past time.Duration, err error) time.Duration {
	return max(min(max(past/2, time.Second), maxBackoff), failureOf(err).RetryAfter)
}

// unknown applies the channel's policy to a delivery with an unknown outcome. A delivery
// that was sent maxResends times is held. A preview and a state post are never sent again, because the
// reply is posted anyway. A text that has no room for the mark is sent again as it is.
func (o *Outbox) unknown(ctx context.Context, d *outbox.Delivery, platform Platform, cause error) error {
	policy := turn.UnknownHold
	if d.Kind != outbox.KindPreview && !d.States() && d.Attempts < maxResends {
		policy = platform.Unknown(d)
	}
	switch policy {
	case turn.UnknownHold:
		return o.giveUp(ctx, d, outbox.Unknown, cause)
	case turn.UnknownMarked:
		marked, most := mark+strings.TrimPrefix(d.Post.Text, mark), platform.Limits.PostText
		if most == 0 || utf8.RuneCountInString(marked) <= most {
			return o.Deliveries.ResendMarked(ctx, d, marked, cause.Error())
		}
	}
	return o.Deliveries.Resend(ctx, d, o.Now(), cause.Error())
}
