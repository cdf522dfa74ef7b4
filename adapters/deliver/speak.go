package deliver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/work"
)

// place is a thread to speak in.
type place struct {
	platform Platform
	thread   threads.Thread
	to       outbox.Post // without a text
	channel  string
	parent   string // of the channel
}

// Speak stores a post with its deliveries, and returns it. known says that there was one with its key. Its errors are
// event.FieldErrors, ErrNotFound of an unknown thread, that of May, and the store's.
func (o *Outbox) Speak(ctx context.Context, s adapters.Speech) (p record.Post, known bool, err error) {
	id := postID(s)
	if s.Key == "" {
		id = uuid.Must(uuid.NewV7()).String()
	} else if p, err = o.Post(ctx, id); !errors.Is(err, storage.ErrNotFound) {
		return p, err == nil, err
	}
	at, err := o.place(ctx, s.Workspace, s.To)
	if err == nil && s.May != nil {
		err = s.May(at.channel)
	}
	if err == nil && o.Paused != nil && !event.IsOperator(s.By) {
		err = o.Paused(s.Workspace, at.channel, at.parent, at.platform.Agent(at.channel))
	}
	if err != nil {
		return p, false, err
	}
	n := record.NewPost{ID: id, Thread: at.thread, Platform: at.platform.Of.Name, Channel: at.channel, Agent: at.platform.Agent(at.channel), Content: s.Text}
	if n.Posts, err = at.posts(o.Log, s); err != nil {
		return p, false, err
	}
	if n.Queue, err = o.queue(ctx, &at, s.By); err != nil {
		return p, false, err
	}
	if at.platform.Sender == nil {
		n.Files = s.Files
	}
	by, _ := json.Marshal(s.By) // a text always encodes
	m := event.Metadata{
		Source: string(n.Platform), SenderID: "agent:" + n.Agent, SenderDisplayName: n.Agent, SenderType: event.Bot,
		Extra: []event.Extra{{Key: event.KeyPostedBy, Value: by}, {Key: event.KeyMessageID, Value: []byte(`"` + id + `"`)}},
	}
	n.Metadata = m.Bytes()
	queue, added, err := o.Records.AddPost(ctx, n)
	if err != nil {
		return p, false, err
	}
	o.Work.Wake(work.Deliveries, "", queue)
	p, err = o.Post(ctx, id)
	return p, !added, err
}

// postID returns the id of the post of a speech with a Key.
func postID(s adapters.Speech) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "parley:post:%s:%s:%s", s.Workspace, s.By, s.Key)).String()
}

// Close implements ingest.Messenger.
func (o *Outbox) Close(ctx context.Context, s adapters.Speech) (err error) {
	platform, ok := o.Platform(s.Workspace)
	if !ok || platform.Sender == nil {
		return storage.ErrNotFound
	}
	defer adapters.Recover(o.Log, &err, "workspace", s.Workspace)
	thread, err := o.Deliveries.CloseWith(ctx, postID(s), strings.Join(platform.Sender.Format(s.Text, s.Mentions), "\n"))
	if err == nil && thread != 0 {
		o.Work.Wake(work.Deliveries, "", thread)
	}
	return err
}

// posts returns the posts of a speech; none for a platform whose clients read the journal.
func (a place) posts(log *slog.Logger, s adapters.Speech) (list []outbox.Post, err error) {
	if a.platform.Sender == nil {
		return nil, nil
	}
	defer adapters.Recover(log, &err, "workspace", s.Workspace)
	var files []outbox.File
	for _, f := range s.Files {
		files = append(files, outbox.File{Name: f.Name, MimeType: f.MimeType, Size: f.Size, Bucket: f.Copy.Bucket, Path: f.Copy.Path})
	}
	texts, attached := a.platform.posts(a.to, s.Text, mentioned{tokens: s.Mentions}, files)
	if _, ok := a.platform.Sender.(adapters.ButtonSender); ok && len(texts) > 0 {
		for _, b := range s.Buttons {
			last := &texts[len(texts)-1]
			last.Buttons = append(last.Buttons, outbox.PostButton(b))
		}
	}
	return append(texts, attached...), nil
}

// queue returns the thread in whose order the posts of a program leave: one of the program's own for those at the top of a channel whose threads
// are under messages, so that no other program waits for a post with an unclear result. It is none, without a Key, for any other
// place: people read a conversation in its order, and some platforms only tell a lost post from the next one there.
func (o *Outbox) queue(ctx context.Context, at *place, by string) (queue threads.Thread, err error) {
	begins, workspace := at.platform.Of.NewThread, at.thread.Workspace
	if begins == nil || at.platform.Sender == nil || at.thread.Key != at.platform.Of.Conversation(workspace, at.channel) {
		return queue, nil
	}
	key := begins(workspace, at.channel, uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:posts:"+by)).String())
	if key == at.thread.Key {
		return queue, nil
	}
	queue = threads.Thread{Workspace: workspace, Key: key}
	queue.ID, err = o.Threads.ThreadID(ctx, key)
	return queue, err
}

// place finds the thread of a target, which need not exist for a channel.
func (o *Outbox) place(ctx context.Context, workspace string, to adapters.Target) (a place, err error) {
	platform, ok := o.Platform(workspace)
	if !ok {
		return a, storage.ErrNotFound
	}
	a = place{platform: platform, thread: threads.Thread{Workspace: workspace}}
	switch {
	case to.Thread != "":
		spot, err := o.Threads.SpotOf(ctx, workspace, to.Thread)
		if err == nil && !event.IsOfPlatform(spot.Key) {
			err = storage.ErrNotFound
		}
		if err != nil {
			return a, err
		}
		a.thread, a.channel, a.parent = spot.Thread, spot.Channel, spot.Parent
		if post, err := o.above(ctx, workspace, a.thread, ""); err != nil {
			return a, err
		} else if key := under(platform, workspace, a.thread.Key, post); key != "" { // people are there
			a.thread.Key = key
			a.thread.ID, err = o.Threads.ThreadID(ctx, key)
			return a, cmp.Or(err, a.addressed())
		}
	case platform.Of.Conversation == nil:
		return a, event.FieldErrors{{Field: "to", Message: "must be a thread_id: this workspace has no channels"}}
	case to.User != "":
		user := platform.Of.KnownID(to.User)
		if _, ok := platform.Sender.(adapters.DirectOpener); !ok || platform.Of.IsUser != nil && !platform.Of.IsUser(user) {
			return a, event.FieldErrors{{Field: "to.user", Message: "must be the platform's id of a person to whom the bot can write first"}}
		}
		a.channel, a.thread.Key = user, event.PersonThread(workspace, user)
		a.thread.ID, err = o.Threads.ThreadID(ctx, a.thread.Key)
	default:
		a.channel = platform.Of.KnownID(to.Channel)
		if a.channel == "" || platform.Of.IsChannel != nil && !platform.Of.IsChannel(a.channel) {
			return a, event.FieldErrors{{Field: "to.channel", Message: "must be the platform's id of a channel"}}
		}
		a.thread.Key = platform.Of.Conversation(workspace, a.channel)
		a.thread.ID, err = o.Threads.ThreadID(ctx, a.thread.Key)
	}
	if err != nil || platform.Sender == nil {
		return a, err
	}
	if user := event.PersonOf(a.thread.Key); user != "" { // the address is known once their conversation is open
		a.to = outbox.Post{Channel: user}
		return a, nil
	}
	return a, a.addressed()
}

// addressed completes a place by the address of its thread.
func (a *place) addressed() error {
	address, err := a.platform.Sender.Address(a.thread.Key, "")
	if err != nil {
		return event.FieldErrors{{Field: "to", Message: "is no place of this workspace"}}
	}
	a.to = outbox.Post{Channel: address.Channel, Place: address.Place}
	return nil
}

// Post returns a post with its link. The thread of one that was sent is that of its replies. It fails with ErrNotFound if
// there is none.
func (o *Outbox) Post(ctx context.Context, id string) (record.Post, error) {
	p, err := o.Records.PostOf(ctx, id)
	if err != nil {
		return p, err
	}
	platform, _ := o.Platform(p.Thread.Workspace)
	if p.Link = o.link(ctx, platform, p.Thread, p.PlatformID); p.PlatformID == "" {
		return p, nil
	}
	if key := under(platform, p.Thread.Workspace, p.Thread.Key, p.PlatformID); key != "" {
		p.Thread.ID, err = o.Threads.ThreadID(ctx, key)
	}
	return p, err
}

// Link returns the address at which people see a post in a thread, by its external id; empty for none.
func (o *Outbox) Link(ctx context.Context, workspace string, thread event.ThreadKey, post string) string {
	platform, ok := o.Platform(workspace)
	if !ok || post == "" {
		return ""
	}
	return o.link(ctx, platform, threads.Thread{Key: thread, Workspace: workspace}, post)
}

// link is Link of a known platform. A thread that its clients read from the journal has a page.
func (o *Outbox) link(ctx context.Context, platform Platform, thread threads.Thread, post string) string {
	linker, ok := platform.Sender.(adapters.Linker)
	switch {
	case platform.Page != "":
		return platform.Page + thread.ID
	case !ok || post == "":
		return ""
	}
	key := thread.Key
	if event.IsTick(key) && platform.Of.ThreadUnder != nil { // the post begins a thread of the platform
		key = platform.Of.ThreadUnder(thread.Workspace, post)
	}
	to, err := platform.Sender.Address(key, "")
	if err != nil {
		return ""
	}
	return linker.Link(ctx, to, post)
}

// under returns the key of the thread of the replies to a post in a thread; empty if that is the same thread.
func under(platform Platform, workspace string, thread event.ThreadKey, post string) event.ThreadKey {
	if platform.Of.ThreadUnder == nil || platform.Sender == nil {
		return ""
	}
	if to, err := platform.Sender.Address(thread, ""); err != nil || to.Place != "" {
		return ""
	}
	return platform.Of.ThreadUnder(workspace, post)
}

// openUnder makes the thread of the replies to the first part of a post at the top of a channel, so that a program can name it. The
// schedules of an agent in a thread that begins with the post are for the people there.
func (o *Outbox) openUnder(ctx context.Context, d *outbox.Delivery, id string) (err error) {
	platform, _ := o.Platform(d.Workspace)
	from := event.ThreadKey("")
	switch {
	case !d.Begins():
		return nil
	case isOwn(platform, d.Workspace, d.ThreadKey):
		from = d.ThreadKey
		if d.Post.Place != "" {
			if id, err = o.above(ctx, d.Workspace, threads.Thread{Row: d.Thread, Key: d.ThreadKey}, ""); err != nil || id == "" {
				return err
			}
		}
	case !d.AskedAt.IsZero() || d.Post.Place != "":
		return nil
	}
	key := under(platform, d.Workspace, conversation(platform, d.Workspace, d.Channel, d.ThreadKey), id)
	if key == "" {
		return nil
	}
	to := threads.Thread{Key: key, Workspace: d.Workspace}
	if to.ID, err = o.Threads.ThreadID(ctx, key); err != nil {
		return err
	}
	return o.Records.OpenUnder(ctx, to, platform.Of.Name, d.Channel, id, from)
}
