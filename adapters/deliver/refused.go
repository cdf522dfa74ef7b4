package deliver

import (
	"context"
	"fmt"

	"parley/adapters"
	"parley/adapters/markdown"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/threads"
	"parley/ingest/work"
)

// What people read of a refused answer.
const (
	refusedAnswer = "Sorry, the platform did not accept my answer."
	refusedRest   = "Sorry, the platform did not accept the rest of my answer."
	refusedFile   = "Sorry, the platform did not accept my file %s."
	refusedThere  = "Sorry, I could not post my answer to %s: the platform did not accept it."
	refusedLength = "The rest of my answer is too long for posts, and the platform did not accept it as a file."
)

// maxInstead bounds the characters that are posted instead of a refused file, and maxPieces their posts.
const maxInstead, maxPieces = 200_000, 60

// refused ends a delivery that the platform will never take: its contents leave in another form, or the asker gets a notice. The
// operator reads the cause.
func (o *Outbox) refused(ctx context.Context, d *outbox.Delivery, cause *adapters.SendError) error {
	platform := o.platformOf(d)
	pieces, err := o.instead(d, platform, cause)
	if err != nil {
		o.Log.Error("a refused post cannot be formatted again", "workspace", d.Workspace, "delivery", d.Key, "err", err)
	}
	if len(pieces) > 0 {
		o.Log.Warn("the platform refuses a post; its text is posted in another form", "workspace", d.Workspace, "delivery", d.Key, "posts", len(pieces), "err", cause)
		return o.Deliveries.Reform(ctx, d, pieces, cause.Error())
	}
	notice, err := o.refusal(ctx, d, platform)
	if err != nil {
		return err
	}
	o.Log.Error("the platform refuses a post; it is given up", "workspace", d.Workspace, "delivery", d.Key, "kind", d.Kind, "told", notice != nil, "err", cause)
	thread, err := o.Deliveries.Refused(ctx, d, cause.Error(), notice)
	if err != nil {
		return err
	}
	if o.observe(d, outbox.Failed); thread != 0 && thread != d.Thread {
		o.Work.Wake(work.Deliveries, "", thread)
	}
	return nil
}

// instead returns the posts that have the text of a refused post in another form; none if there is no such form: the posts that the
// file of a long answer replaces, or the halves of a text that is too long.
func (o *Outbox) instead(d *outbox.Delivery, platform Platform, cause *adapters.SendError) (list []outbox.Post, err error) {
	defer adapters.Recover(o.Log, &err, "about", d.Key)
	halver, halves := platform.Sender.(adapters.Halver)
	to := d.Post
	to.Text, to.File, to.Buttons = "", nil, nil
	switch file := d.Post.File; {
	case d.Kind != outbox.KindPost || d.Part < 0:
	case file != nil && file.Path == "" && file.Text != "":
		text := event.Beginning(file.Text, maxInstead)
		texts := platform.Sender.Format(text, file.Mentions)
		texts = texts[min(len(texts), 1):] // the first one is posted already
		if whole := len(text) == len(file.Text); !whole || len(texts) > maxPieces {
			texts = append(texts[:min(len(texts), maxPieces)], platform.Sender.Format(refusedLength, nil)...)
		}
		return posts(to, texts), nil
	case halves && cause.TooLong && file == nil && d.Post.Card == nil && !d.IsPiece():
		if list = posts(to, halver.Halve(d.Post.Text)); len(list) < 2 {
			return nil, nil
		}
		list[len(list)-1].Buttons = d.Post.Buttons
	}
	return list, nil
}

// refusal returns the notice that the platform has refused a part of an answer, or such a notice; nil for none. The first notice replaces
// the answer, and only the asker sees it if the platform can do that. If that is refused too, the asker gets one in a direct
// conversation, and no further one follows. Of other posts, and of the answers to programs, people are told nothing.
func (o *Outbox) refusal(ctx context.Context, d *outbox.Delivery, platform Platform) (*outbox.Refusal, error) {
	isPart := d.Kind == outbox.KindPost && d.Part >= 0
	isTold := d.Part == outbox.PartTold || d.Kind == outbox.KindTell && d.Part >= 0
	if d.AskedAt.IsZero() || event.PersonOf(d.ThreadKey) != "" || !isPart && !isTold {
		return nil, nil
	}
	asked, direct, err := o.Deliveries.AskedBy(ctx, d.Run, d.Workspace, d.Channel)
	switch {
	case err != nil:
		return nil, err
	case isInjected(asked):
		return nil, nil
	case isPart:
		return o.refusalThere(d, platform, asked)
	case direct:
		return nil, nil
	}
	return o.refusalAside(ctx, d, platform, asked)
}

// refusalThere returns the notice that replaces a refused part of an answer.
func (o *Outbox) refusalThere(d *outbox.Delivery, platform Platform, asked string) (notice *outbox.Refusal, err error) {
	defer adapters.Recover(o.Log, &err, "about", d.Key)
	words := refusedAnswer
	switch {
	case d.Post.File != nil:
		words = fmt.Sprintf(refusedFile, markdown.Verbatim(d.Post.File.Name))
	case d.Part > 0:
		words = refusedRest
	}
	to := outbox.Post{Channel: d.Post.Channel, Place: d.Post.Place, Asker: d.Post.Asker}
	if one, ok := platform.Sender.(adapters.Ephemeral); ok && to.Asker != "" {
		address := one.EphemeralAddress(adapters.Address{Channel: to.Channel, Place: to.Place}, asked)
		to.Channel, to.Place, to.Alone = address.Channel, address.Place, true
	}
	texts := platform.Sender.Format(words, nil)
	if len(texts) == 0 {
		return nil, nil
	}
	to.Text = texts[0]
	return &outbox.Refusal{Post: to}, nil
}

// refusalAside is refusal in the direct conversation with the asker.
func (o *Outbox) refusalAside(ctx context.Context, d *outbox.Delivery, platform Platform, asked string) (notice *outbox.Refusal, err error) {
	defer adapters.Recover(o.Log, &err, "about", d.Key)
	user := d.Post.Asker
	if _, ok := platform.Sender.(adapters.DirectOpener); !ok || user == "" || platform.Of.Conversation == nil {
		return nil, nil
	}
	question := "your question"
	if link := o.link(ctx, platform, threads.Thread{Key: d.ThreadKey, Workspace: d.Workspace}, asked); link != "" {
		question = "[" + question + "](" + link + ")"
	}
	aside := threads.Thread{Workspace: d.Workspace, Key: event.PersonThread(d.Workspace, user)}
	if aside.ID, err = o.Threads.ThreadID(ctx, aside.Key); err != nil {
		return nil, err
	}
	texts := platform.Sender.Format(fmt.Sprintf(refusedThere, question), nil)
	if len(texts) == 0 {
		return nil, nil
	}
	return &outbox.Refusal{Post: outbox.Post{Channel: user, Asker: user, Text: texts[0]}, Aside: aside, Platform: platform.Of.Name}, nil
}
