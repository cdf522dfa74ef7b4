package live

import (
	"context"
	"time"

	"parley/adapters"
)

// EverybodyWords warn about a workspace that admits every sender.
const EverybodyWords = "everybody who writes to this Apple ID is answered: list the addresses of the people whom you know in policy.allow_users"

// poll keeps the registration of the webhook right, and reads the messages that the webhooks
// missed, at the start and then at each poll. After a failure the supervisor runs it again, so it
// reads at once.
func (rc *Receiver) poll(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	if link.Wants().Everybody {
		rc.warned.Do(func() { link.Log.Warn(EverybodyWords) })
	}
	for up := false; ; up = true {
		rc.wants.Store(new(link.Wants()))
		info, err := rc.client.AskInfo(ctx)
		if err == nil && !up { // a message that comes from now on is read, if its webhook is lost
			err = rc.reading(ctx, func(*cursor) error { return nil })
		}
		if err == nil {
			if err := rc.register(ctx, link.Wants().Hook); err != nil && ctx.Err() == nil {
				link.Log.Warn("the webhook cannot be registered; messages arrive at the next poll", "err", err)
			}
			err = rc.readAll(ctx, inbox)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !up:
			link.Up(info.Self())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rc.settings.Poll):
		}
	}
}
