package deliver

import (
	"context"
	"fmt"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/threads"
	"parley/ingest/work"
)

// open opens a conversation with a thread's person, and moves the waiting posts there. The platform
// opens a conversation once, so that open calls again after any failure that is not permanent.
func (o *Outbox) open(ctx context.Context, c *work.Claim, d *outbox.Delivery, platform Platform) (more bool, err error) {
	channel, err := o.conversation(ctx, d, platform)
	now := o.Now()
	switch past := now.Sub(d.CreatedAt); {
	case err == nil:
		return false, o.move(context.WithoutCancel(ctx), c, d, platform, channel)
	case ctx.Err() != nil:
		return false, err
	case isFailure(err, adapters.Permanent):
		return true, o.refused(ctx, d, failureOf(err))
	case past > maxAge:
		return true, o.giveUp(ctx, d, outbox.Failed, err)
	default:
		o.Log.Warn("the conversation with a person cannot be opened; it is tried again", "workspace", d.Workspace, "delivery", d.Key, "err", err)
		return true, o.Deliveries.Resend(ctx, d, now.Add(askAgain(past, err)), err.Error())
	}
}

// conversation returns the channel of a delivery to a person.
func (o *Outbox) conversation(ctx context.Context, d *outbox.Delivery, platform Platform) (channel string, err error) {
	opener, ok := platform.Sender.(adapters.DirectOpener)
	if !ok || platform.Of.Conversation == nil {
		return "", errNotHere
	}
	err = o.call(ctx, platform, d, o.Now().Add(platform.Limits.Timeout), func(ctx context.Context) (err error) {
		channel, err = opener.OpenDirect(ctx, event.PersonOf(d.ThreadKey))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("open the conversation with %s: %w", event.PersonOf(d.ThreadKey), err)
	}
	return channel, nil
}

// move moves the posts for a person to the thread of the conversation with them, which has a channel.
func (o *Outbox) move(ctx context.Context, c *work.Claim, d *outbox.Delivery, platform Platform, channel string) error {
	to := threads.Thread{Workspace: d.Workspace, Key: platform.Of.Conversation(d.Workspace, channel)}
	address, err := platform.Sender.Address(to.Key, "")
	if err != nil {
		return o.giveUp(ctx, d, outbox.Failed, err)
	}
	if to.ID, err = o.Threads.ThreadID(ctx, to.Key); err != nil {
		return err
	}
	thread, err := o.Records.MovePosts(ctx, &c.Claim, to, platform.Of.Name, event.Channel{ID: channel, Type: event.ChannelDirect},
		outbox.Post{Channel: address.Channel, Place: address.Place})
	if err == nil {
		o.Work.Wake(work.Deliveries, "", thread)
	}
	return err
}
