package deliver

import (
	"context"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// Spot returns where a schedule asks: in the thread under a post, which is given by its platform's id; or else, with
// an empty one, at the top of a channel. A channel that is one conversation, such as that of a person, has no other thread. Its
// errors are event.FieldErrors, ErrNotFound of an unknown workspace, adapters.ErrBusy and the store's.
func (o *Outbox) Spot(ctx context.Context, workspace string, to adapters.Target, post string) (s adapters.Spot, err error) {
	at, err := o.place(ctx, workspace, to)
	if err == nil && to.User != "" {
		at, err = o.direct(ctx, workspace, at)
	}
	if err != nil {
		return s, err
	}
	s = adapters.Spot{Platform: at.platform.Of.Name, Thread: at.thread.Key, Channel: at.channel, Agent: at.platform.Agent(at.channel)}
	if to.User != "" || at.platform.Of.ThreadUnder == nil {
		return s, nil
	}
	if one, err := o.isConversation(ctx, workspace, at); err != nil || one {
		return s, err
	}
	conversation := s.Thread
	s.Thread = ""
	if post != "" {
		s.Thread = under(at.platform, workspace, conversation, post)
	}
	return s, nil
}

// typeWithin bounds the question for a channel's type.
const typeWithin = 3 * time.Second

// isConversation reports whether people answer a post at the top of a channel in the channel itself, as a few people do among
// themselves, so that the channel is one thread. A channel whose type is not known has threads.
func (o *Outbox) isConversation(ctx context.Context, workspace string, at place) (bool, error) {
	kind, err := o.Threads.ChannelType(ctx, workspace, at.channel)
	if typer, ok := at.platform.Sender.(adapters.ChannelTyper); ok && err == nil && kind == event.ChannelUnknown {
		ctx, cancel := context.WithTimeout(ctx, typeWithin)
		defer cancel()
		kind, _ = typer.TypeOf(ctx, at.channel)
	}
	return kind == event.ChannelDirect || kind == event.ChannelGroup, err
}

// direct returns the place of the conversation with a person, which it opens.
func (o *Outbox) direct(ctx context.Context, workspace string, person place) (place, error) {
	opener, _ := person.platform.Sender.(adapters.DirectOpener) // place has checked it
	channel, err := opener.OpenDirect(ctx, person.channel)
	switch {
	case isFailure(err, adapters.Permanent):
		return person, event.FieldErrors{{Field: "to.user", Message: err.Error()}}
	case err != nil:
		return person, adapters.ErrBusy
	}
	return o.place(ctx, workspace, adapters.Target{Channel: channel})
}
