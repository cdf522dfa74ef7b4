package deliver

import (
	"context"
	"errors"
	"fmt"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/work"
)

// The refusals of ResendHeld.
var (
	// ErrCantLook means that the platform cannot tell whether it has the post.
	ErrCantLook = errors.New("the platform cannot tell whether the post is there; look there yourself")
	// ErrPreview means that the delivery is a preview of a reply that was posted anyway.
	ErrPreview = errors.New("it is a preview, and the whole reply has its own delivery; drop it")
)

// ResendHeld sends a delivery again that is unknown or failed, at an operator's request. It asks the platform
// before: if the post is there, the delivery is sent, and the error is an outbox.SentError. With force it asks
// nothing. Further errors are those of outbox.HeldDelivery, outbox.ErrEmptied, ErrCantLook, ErrPreview, and that
// of a platform which does not answer. If another call has sent the delivery again meanwhile, nothing happens.
func (o *Outbox) ResendHeld(ctx context.Context, id int64, force bool) error {
	d, err := o.Deliveries.HeldDelivery(ctx, id)
	if err != nil {
		return err
	}
	platform := o.platformOf(d)
	switch {
	case d.Kind == outbox.KindPreview:
		return ErrPreview
	case d.Post.Text == "" && d.Post.File == nil:
		return outbox.ErrEmptied
	case platform.Sender == nil:
		return fmt.Errorf("workspace %q is not configured", d.Workspace)
	case !force && !repeatable(d, platform) && event.PersonOf(d.ThreadKey) == "": // to a person, nothing was sent yet
		if err := o.look(ctx, d, platform); err != nil {
			return err
		}
	}
	err = o.Deliveries.ResendHeld(ctx, d)
	if err == nil {
		o.Work.Wake(work.Deliveries, "", d.Thread)
	}
	if errors.Is(err, outbox.ErrDelivered) {
		return nil
	}
	return err
}

// look asks the platform for the post of a held delivery. If the post is there, it records that, and
// the error is an outbox.SentError. The post of a failed delivery that the platform keeps as undelivered is not
// there.
func (o *Outbox) look(ctx context.Context, d *outbox.Delivery, platform Platform) error {
	id, found, err := o.find(ctx, d, platform)
	switch {
	case errors.Is(err, errCantTell):
		return ErrCantLook
	case err != nil && !errors.Is(err, adapters.ErrUndelivered):
		return fmt.Errorf("the platform cannot be asked whether the post is there: %w", err)
	case !found:
		return nil
	}
	if _, err := o.Deliveries.Sent(ctx, d, id); err != nil {
		return err
	}
	o.observe(d, outbox.Sent)
	return outbox.SentError{PostID: id}
}
