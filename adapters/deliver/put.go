package deliver

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/journal"
)

// Files is where the copies of agents' files are read.
type Files interface {
	Open(ctx context.Context, bucket, path string) (io.ReadCloser, error)
}

// post is a delivery in the platform's terms.
func (o *Outbox) post(d *journal.Delivery) adapters.Post {
	post := adapters.Post{
		Key: d.Key, Thread: d.ThreadKey, Text: d.Post.Text, Asker: d.Post.Asker, NotBefore: d.CreatedAt,
		To: adapters.Address{Channel: d.Post.Channel, Root: d.Post.Root},
	}
	if f := d.Post.File; f != nil {
		post.File = &adapters.File{Name: f.Name, MimeType: f.MimeType, Size: f.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			if f.Path == "" {
				return io.NopCloser(strings.NewReader(f.Text)), nil
			}
			return o.Files.Open(ctx, f.Bucket, f.Path)
		}}
	}
	return post
}

// errNotHere is a delivery of a kind that its platform does not have any more.
var errNotHere = &adapters.SendError{Failure: adapters.Permanent, Err: errors.New("the platform can't do this")}

// put makes the call that a delivery stands for, and returns the platform's id of
// the post; empty for none.
func (o *Outbox) put(ctx context.Context, d *journal.Delivery, platform Platform) (string, error) {
	switch d.Kind {
	case journal.DeliveryRemove:
		return "", o.remove(ctx, d, platform)
	case journal.DeliveryUnsign:
		signer, ok := platform.Sender.(adapters.Signer)
		if !ok {
			return "", errNotHere
		}
		return "", signer.Unsign(ctx, adapters.Sign{Thread: d.ThreadKey, To: o.post(d).To, Message: d.Post.Text})
	case journal.DeliveryTell:
		one, ok := platform.Sender.(adapters.Ephemeral)
		if !ok {
			return "", errNotHere
		}
		return "", one.Tell(ctx, o.post(d))
	}
	if takesOver(d) {
		return d.Replaces.PlatformID, o.finish(ctx, d, platform)
	}
	return platform.Sender.Send(ctx, o.post(d))
}

// takesOver says whether a delivery is a text for a post that stands there already.
func takesOver(d *journal.Delivery) bool {
	return d.Kind == journal.DeliveryPost && d.Replaces != nil && d.Replaces.PlatformID != ""
}

// repeatable says whether a delivery's call may be made again whatever became of it.
func repeatable(d *journal.Delivery) bool {
	return takesOver(d) || d.Kind == journal.DeliveryRemove || d.Kind == journal.DeliveryUnsign
}

// puts says whether a delivery puts something there. What the platform says of the
// pace of other calls holds for those alone.
func puts(d *journal.Delivery) bool {
	return d.Kind != journal.DeliveryRemove && d.Kind != journal.DeliveryUnsign
}

// settlesAt is when nothing that was written before can change any more what the
// delivery is about; zero where that is known to be so now.
func (o *Outbox) settlesAt(d *journal.Delivery) time.Time {
	if d.Kind == journal.DeliveryUnsign && d.State == journal.DeliveryPending {
		return o.unsignable(d)
	}
	if !takesOver(d) {
		return time.Time{}
	}
	if p := o.piece(d.Replaces.ID); p != nil && p.settled() {
		return time.Time{}
	}
	return d.Replaces.SendBy.Add(readBackAfter)
}

// stands says whether a preview's post is known to show the delivery's text already.
func (o *Outbox) stands(d *journal.Delivery) bool {
	if !takesOver(d) {
		return false
	}
	p := o.piece(d.Replaces.ID)
	if p == nil {
		return false
	}
	p.calling.enter()
	defer p.calling.leave()
	if p.open || !p.clean || p.shown != d.Post.Text {
		return false
	}
	o.forget(d.Replaces.ID)
	return true
}

// finish makes a preview's post show the delivery's text.
func (o *Outbox) finish(ctx context.Context, d *journal.Delivery, platform Platform) error {
	editor, ok := platform.Sender.(adapters.Editor)
	if !ok {
		return errNotHere
	}
	id, p := d.Replaces.PlatformID, o.piece(d.Replaces.ID)
	if p != nil {
		p.calling.enter()
		defer p.calling.leave()
		if rest, goesOn := strings.CutPrefix(d.Post.Text, p.shown); p.clean && p.open && goesOn {
			err := o.end(ctx, d, platform, p, rest)
			if !isFailure(err, adapters.Permanent) {
				return err
			}
		}
		o.forget(d.Replaces.ID)
	}
	return editor.Edit(ctx, id, o.post(d))
}

// end ends a stream with the last of its text.
func (o *Outbox) end(ctx context.Context, d *journal.Delivery, platform Platform, p *piece, rest string) error {
	streamer, ok := platform.Sender.(adapters.Streamer)
	if !ok {
		return errNotHere
	}
	err := streamer.End(ctx, d.Replaces.PlatformID, o.post(d), rest)
	switch {
	case err == nil:
		o.forget(d.Replaces.ID)
	case isFailure(err, adapters.Unclear):
		p.clean = false
	}
	return err
}

// remove takes a preview's post away, if there is one.
func (o *Outbox) remove(ctx context.Context, d *journal.Delivery, platform Platform) error {
	if d.Replaces == nil || d.Replaces.PlatformID == "" {
		return nil
	}
	editor, ok := platform.Sender.(adapters.Editor)
	if !ok {
		return errNotHere
	}
	if p := o.piece(d.Replaces.ID); p != nil {
		p.calling.enter()
		defer p.calling.leave()
		o.forget(d.Replaces.ID)
	}
	return editor.Remove(ctx, d.Replaces.PlatformID, o.post(d))
}

// isFailure says whether a call failed in a way. What is not a *adapters.SendError
// has no clear end.
func isFailure(err error, failure adapters.SendFailure) bool {
	var e *adapters.SendError
	if errors.As(err, &e) {
		return e.Failure == failure
	}
	return err != nil && failure == adapters.Unclear
}
