package deliver

import (
	"context"

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
	switch kind, err := o.Journal.ChannelType(ctx, workspace, at.channel); {
	case err != nil, kind == event.ChannelDirect, kind == event.ChannelGroup:
		return s, err
	}
	conversation := s.Thread
	s.Thread = ""
	if post != "" {
		s.Thread = under(at.platform, workspace, conversation, post)
	}
	return s, nil
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
