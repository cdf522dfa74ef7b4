package deliver

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/card"
	"parley/ingest/journal/outbox"
	"parley/ingest/work"
)

// Files reads the stored copies of agents' files.
type Files interface {
	Open(ctx context.Context, bucket, path string) (io.ReadCloser, error)
}

// post returns a delivery in the platform's terms.
func (o *Outbox) post(d *outbox.Delivery) adapters.Post {
	post := adapters.Post{
		Key: d.Key, Text: d.Post.Text, Asker: d.Post.Asker, NotBefore: d.NotBefore, Card: d.Post.Card,
		To: adapters.Address{Channel: d.Post.Channel, Place: d.Post.Place},
	}
	for _, b := range d.Post.Buttons {
		post.Buttons = append(post.Buttons, adapters.Button(b))
	}
	if marked := strings.HasPrefix(d.Post.Text, mark); marked && d.Post.Card != nil { // people see the text in notifications alone
		noted := *d.Post.Card
		noted.Parts = append([]card.Part{{Kind: card.KindCaption, Text: strings.TrimSpace(mark)}}, noted.Parts...)
		post.Card = &noted
	}
	if f := d.Post.File; f != nil {
		post.File = &adapters.File{Name: fileName(f.Name), MimeType: f.MimeType, Size: f.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			if f.Path == "" {
				return io.NopCloser(strings.NewReader(f.Text)), nil
			}
			return o.Files.Open(ctx, f.Bucket, f.Path)
		}}
	}
	return post
}

// errNotHere is the error of a delivery whose kind its platform no longer supports.
var errNotHere = &adapters.SendError{Failure: adapters.Permanent, Err: errors.New("the platform does not support this delivery")}

// put makes a delivery's call and returns the platform's id of the post, or an empty id
// if it made none.
func (o *Outbox) put(ctx context.Context, c *work.Claim, d *outbox.Delivery, platform Platform) (string, error) {
	post := o.post(d)
	switch {
	case d.Kind == outbox.KindUnsign:
		signer, ok := platform.Sender.(adapters.WorkingIndicator)
		if !ok {
			return "", errNotHere
		}
		return "", signer.ClearWorking(ctx, adapters.Sign{To: post.To, Message: d.Post.Text})
	case d.Kind == outbox.KindReact:
		reactor, ok := platform.Sender.(adapters.Reactor)
		if !ok {
			return "", errNotHere
		}
		emoji, message, _ := strings.Cut(d.Post.Text, " ")
		return "", reactor.React(ctx, adapters.Sign{To: post.To, Message: message, Text: emoji})
	case d.Kind == outbox.KindTell:
		one, ok := platform.Sender.(adapters.Ephemeral)
		if !ok {
			return "", errNotHere
		}
		return "", one.PostEphemeral(ctx, post)
	case d.Kind == outbox.KindRestate:
		editor, ok := platform.Sender.(adapters.Editor)
		if !ok {
			return "", errNotHere
		}
		return d.PlatformID, editor.Edit(ctx, d.PlatformID, post)
	case d.Replaces != nil && d.Replaces.PlatformID != "":
		return o.finalise(ctx, c, d, platform)
	case d.Kind == outbox.KindRemove, d.Kind == outbox.KindClose: // there is no known post
		return "", nil
	}
	return platform.Sender.Send(ctx, post)
}

// finalise removes an earlier post, takes its buttons, or makes it show the delivery's text: the
// end of its stream adds the rest of the text, or an edit states all of it. It returns the platform's
// id of the post, or an empty id if the post is not the delivery's.
func (o *Outbox) finalise(ctx context.Context, c *work.Claim, d *outbox.Delivery, platform Platform) (string, error) {
	editor, ok := platform.Sender.(adapters.Editor)
	id, post := d.Replaces.PlatformID, o.post(d)
	switch {
	case !ok:
		return "", errNotHere
	case d.Kind == outbox.KindRemove:
		return "", editor.Remove(ctx, id, post)
	case d.Kind == outbox.KindClose:
		return "", editor.Edit(ctx, id, post)
	}
	streamer, streams := platform.Sender.(adapters.Streamer)
	if p := previewPostOf(c, d); streams && p != nil && p.clean && p.open && strings.HasPrefix(post.Text, p.shown) {
		err := streamer.End(ctx, id, post, post.Text[len(p.shown):])
		if isFailure(err, adapters.Unclear) {
			postSlot(d).Take(c) // the post's text is no longer known
		}
		if !isFailure(err, adapters.Permanent) { // otherwise the platform has closed the stream
			return id, err
		}
	}
	return id, editor.Edit(ctx, id, post)
}

// takesOver reports whether a delivery's text goes into the post of a preview.
func takesOver(d *outbox.Delivery) bool {
	return d.Kind == outbox.KindPost && d.Replaces != nil && d.Replaces.PlatformID != "" // of a piece, it is unknown
}

// repeatable reports whether a delivery's call may be repeated after any outcome.
func repeatable(d *outbox.Delivery, platform Platform) bool {
	return takesOver(d) || !d.Puts() || platform.isOnce(d)
}

// isOnce reports whether the platform makes a delivery's post once, however often it is sent.
func (p Platform) isOnce(d *outbox.Delivery) bool {
	return p.Limits.Once && d.Puts() && !takesOver(d) && !d.Stream
}

// earlier reports on earlier calls about the post, or the sign of work, of a delivery.
// After settles, none of them can take effect any more; zero means now. stands reports
// that a preview's post is known to show the delivery's text already.
func earlier(c *work.Claim, d *outbox.Delivery) (settles time.Time, stands bool) {
	p := previewPostOf(c, d)
	switch {
	case p != nil && p.clean:
		return time.Time{}, takesOver(d) && !p.open && p.shown == d.Post.Text
	case d.Kind == outbox.KindUnsign && p != nil && p.d.SendBy.Add(readBackAfter).After(d.SendBy): // it was shown again
		return p.d.SendBy.Add(readBackAfter), false
	case d.Kind == outbox.KindUnsign:
		return d.SendBy, false
	case takesOver(d):
		return d.Replaces.SendBy.Add(readBackAfter), false
	}
	return time.Time{}, false
}

// failureOf describes a failed call. The outcome is unclear if the error is not a
// *adapters.SendError.
func failureOf(err error) *adapters.SendError {
	if failure, ok := errors.AsType[*adapters.SendError](err); ok {
		return failure
	}
	return &adapters.SendError{Failure: adapters.Unclear, Err: err}
}

// isFailure reports whether err is an error of this failure, as failureOf describes it.
func isFailure(err error, failure adapters.SendFailure) bool {
	return err != nil && failureOf(err).Failure == failure
}
