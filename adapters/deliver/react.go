package deliver

import (
	"context"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// React stores our reaction to a message as a delivery, and returns its state. A repetition of an emoji
// changes nothing. Its errors are event.FieldErrors, ErrNotFound of an unknown message, that of May, and the store's.
func (o *Outbox) React(ctx context.Context, r adapters.Reaction) (state outbox.State, err error) {
	defer adapters.Recover(o.Log, &err, "workspace", r.Workspace)
	platform, ok := o.Platform(r.Workspace)
	if !ok {
		return "", storage.ErrNotFound
	}
	target, err := o.Records.TargetOf(ctx, r.Workspace, r.Message)
	if err == nil && event.IsWorkstream(target.Thread.Key) {
		err = storage.ErrNotFound
	}
	if err == nil {
		err = r.May(target.Channel)
	}
	if err != nil {
		return "", err
	}
	var faults event.FieldErrors
	reactor, ok := platform.Sender.(adapters.Reactor)
	faults.Check(ok, "workspace", "has a platform without reactions")
	faults.Check(!ok || target.PlatformID != "", "message_id", "is no message that the platform has")
	emoji := ""
	if ok {
		emoji, ok = reactor.Emoji(r.Emoji)
		faults.Check(ok, "emoji", "is no reaction of this platform: give one emoji, such as 👍, or its name, such as +1")
	}
	if len(faults) > 0 {
		return "", faults
	}
	to, err := platform.Sender.Address(conversation(platform, r.Workspace, target.Channel, target.Thread.Key), target.PlatformID)
	if err != nil {
		return "", event.FieldErrors{{Field: "message_id", Message: "is in no place of this workspace"}}
	}
	post := outbox.Post{Channel: to.Channel, Place: to.Place, Text: emoji + " " + target.PlatformID}
	if state, err = o.Records.AddReaction(ctx, &target, outbox.ReactionID(r.Workspace, emoji, target.PlatformID), post); err == nil {
		o.Work.Wake(work.Deliveries, "", target.Thread.Row)
	}
	return state, err
}
