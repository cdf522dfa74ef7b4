package deliver

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/threads"
)

// aim gives a delivery whose first call begins its address. The post below which it belongs may have been on its way when the
// run began or ended: that of the message that it answers, or the one at the begin of its thread. A thread's deliveries are made one after the other,
// so that post has an id by now, or it was given up.
func (o *Outbox) aim(ctx context.Context, d *outbox.Delivery, platform Platform) error {
	switch d.Kind {
	case outbox.KindPost, outbox.KindPreview, outbox.KindState:
	default:
		return nil
	}
	if d.Post.Place != "" || platform.Sender == nil || event.PersonOf(d.ThreadKey) != "" {
		return nil
	}
	key, answered := conversation(platform, d.Workspace, d.Channel, d.ThreadKey), ""
	if platform.Of.ThreadUnder == nil {
		post, err := o.Deliveries.ShownAbove(ctx, d.Run)
		if err != nil || post == "" {
			return err
		}
		answered = post
	} else {
		post, err := o.above(ctx, d.Workspace, threads.Thread{Row: d.Thread, Key: d.ThreadKey}, d.Run)
		if err != nil || post == "" {
			return err
		}
		if key = under(platform, d.Workspace, key, post); key == "" {
			return nil
		}
	}
	if to, err := platform.Sender.Address(key, answered); err == nil { // otherwise the one of the run's end stays
		d.Post.Channel, d.Post.Place = to.Channel, to.Place
	}
	return nil
}

// address gives a delivery its address if its first call begins now. If the run's end has marked the delivery as
// sending, it stores the address, because a later question to the platform about the call must go there.
func (o *Outbox) address(ctx context.Context, d *outbox.Delivery, platform Platform, begun bool) error {
	if d.Attempts > 0 && !begun {
		return nil
	}
	before := d.Post
	err := o.aim(ctx, d, platform)
	if err != nil || !begun || d.Post.Place == before.Place {
		return err
	}
	return o.Deliveries.Address(ctx, d)
}

// aimed returns the destination of a run's preview that begins now. It returns false if a post of its thread is on its way, below
// which the preview may belong.
func (s *LivePreview) aimed(ctx context.Context) (to outbox.Post, known bool, err error) {
	if s.to.Place != "" {
		return s.to, true, nil
	}
	if busy, err := s.outbox.Deliveries.IsBusy(ctx, s.run.Thread); err != nil || busy {
		return s.to, false, err
	}
	d := &outbox.Delivery{
		Kind: outbox.KindPreview, Run: s.run.ID, Thread: s.run.Thread, ThreadKey: s.run.ThreadKey, Channel: s.run.Channel, Workspace: s.run.Workspace, Post: s.to,
	}
	err = s.outbox.aim(ctx, d, s.platform)
	return d.Post, err == nil, err
}

// isOwn reports whether a thread of ours is at the top of a channel and begins with a post of its own, so that people answer in the
// thread under that post.
func isOwn(platform Platform, workspace string, thread event.ThreadKey) bool {
	if platform.Of.NewThread == nil || platform.Of.ThreadUnder == nil || platform.Sender == nil {
		return false
	}
	if event.IsTick(thread) {
		return true
	}
	to, err := platform.Sender.Address(thread, "")
	return err == nil && to.Place == "" && thread != platform.Of.Conversation(workspace, to.Channel)
}

// above returns the platform's id of the first post of a thread of ours, so that people answer in the thread under it; empty if there
// is none, or if it is one of a run itself.
func (o *Outbox) above(ctx context.Context, workspace string, thread threads.Thread, run string) (post string, err error) {
	if platform, _ := o.Platform(workspace); !isOwn(platform, workspace, thread.Key) {
		return "", nil
	}
	post, of, err := o.Deliveries.FirstPostIn(ctx, thread.Row)
	if of == run {
		return "", err
	}
	return post, err
}

// Above implements ingest.Notifier.
func (o *Outbox) Above(ctx context.Context, workspace, post string) (event.ThreadKey, error) {
	key, err := o.Deliveries.ThreadOfPost(ctx, workspace, post)
	if platform, _ := o.Platform(workspace); err != nil || !isOwn(platform, workspace, key) {
		return "", err
	}
	return key, nil
}

// People returns the key of the thread in which people read an agent's answers to a thread: the thread under its first post if
// it begins with a post of its own, else the thread itself.
func (o *Outbox) People(ctx context.Context, workspace string, thread threads.Thread) (event.ThreadKey, error) {
	post, err := o.above(ctx, workspace, thread, "")
	if err != nil || post == "" {
		return thread.Key, err
	}
	platform, _ := o.Platform(workspace)
	if key := platform.Of.ThreadUnder(workspace, post); key != "" {
		return key, nil
	}
	return thread.Key, nil
}
