package adaptertest

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// ofCustody is what holds for all that comes in.
var ofCustody = []promise{
	{"what is said arrives as it was typed, in the thread where it was said", whatIsSaidArrives},
	{"an envelope is acknowledged only once Accept has returned", acknowledgedOnceAccepted},
	{"without custody nothing is acknowledged, and it is sent again", withoutCustody},
	{"a damaged payload is kept as it came, acknowledged and dead", damagedIsKept},
	{"what is done to a message names it", whatIsDoneNamesIt},
}

func whatIsSaidArrives(s *stage) {
	s.play()
	threads := map[event.ThreadKey]string{}
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		root := s.whole(adapters.Address{Channel: channel}, "first, <b> & *c* \u00e9")
		if where := threads[root.keys.Thread]; where != "" {
			s.t.Errorf("%s and %s are one thread", channel, where)
		}
		threads[root.keys.Thread] = channel
		to, err := able[adapters.Sender](s).Address(root.keys.Thread)
		s.must(err)
		if to.Channel != channel {
			s.t.Errorf("replies in %s go to %+v", channel, to)
		}
		if reply := s.whole(to, "second"); reply.keys.Thread != root.keys.Thread {
			s.t.Errorf("the reply is in %s, its root in %s", reply.keys.Thread, root.keys.Thread)
		}
	}
}

// whole has the asker say something, and checks all of what arrives.
func (s *stage) whole(to adapters.Address, text string) arrival {
	s.t.Helper()
	a := s.says(to, text)
	if e := a.envelope; e.Workspace != s.Workspace || e.Transport != s.Transport || e.ReceivedAt.IsZero() {
		s.t.Errorf("the envelope is of %q over %q at %v", e.Workspace, e.Transport, e.ReceivedAt)
	}
	m := a.event.Message
	if m == nil {
		s.t.Fatalf("no message in %s", a.envelope.Body)
	}
	if sender := a.envelope.Platform.Namespace() + ":" + s.Asker.ID; m.Content != text || m.Metadata.SenderID != sender || m.Own {
		s.t.Errorf("%q of %q, want %q of %q", m.Content, m.Metadata.SenderID, text, sender)
	}
	if m.Channel.ID != to.Channel || m.Thread != a.keys.Thread || m.SentAt.Before(s.begun.Add(-time.Minute)) {
		s.t.Errorf("in %+v, %s, at %v", m.Channel, m.Thread, m.SentAt)
	}
	checkKeys(s.t, payload{envelope: a.envelope}, a.keys)
	return a
}

func acknowledgedOnceAccepted(s *stage) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s.inbox.first(func(ctx context.Context, _ event.Envelope) error {
		entered <- struct{}{}
		select {
		case <-leave:
		case <-ctx.Done():
		}
		return nil
	})
	s.play()
	said := s.heardOf(s.Say != nil, func() Delivery { return s.Say(adapters.Address{Channel: s.Room.ID}, "hi") })
	select {
	case <-entered:
	case <-s.ctx.Done():
		s.t.Fatalf("nothing came\n%s", s.words)
	}
	soon, cancel := context.WithTimeout(s.ctx, moment)
	defer cancel()
	if acked, err := said.Acknowledged(soon); acked || err == nil {
		s.t.Error("the platform was told before Accept had returned")
	}
	close(leave)
	if acked, err := said.Acknowledged(s.ctx); !acked || err != nil {
		s.t.Errorf("acknowledged: %v, %v", acked, err)
	}
}

// heardOf is a delivery whose acknowledgement the platform waits for.
func (s *stage) heardOf(can bool, deliver func() Delivery) Delivery {
	s.t.Helper()
	s.needs(can, "way to tell us of that")
	d := deliver()
	s.needs(d.Acknowledged != nil, "acknowledgements")
	return d
}

func withoutCustody(s *stage) {
	var tries atomic.Int64
	s.inbox.first(func(context.Context, event.Envelope) error {
		if tries.Add(1) <= 2 {
			return fmt.Errorf("commit: %w", adapters.ErrBusy)
		}
		return nil
	})
	s.play()
	said := s.heardOf(s.Say != nil, func() Delivery { return s.Say(adapters.Address{Channel: s.Room.ID}, "hi") })
	if acked, err := said.Acknowledged(s.ctx); !acked || err != nil || tries.Load() < 3 {
		s.t.Errorf("acknowledged after %d tries: %v, %v", tries.Load(), acked, err)
	}
	s.arrives(event.KindMessage, said.ID)
}

func damagedIsKept(s *stage) {
	s.play()
	const broken = `{"damaged":[{"text":"\u00`
	sent := s.heardOf(s.Raw != nil, func() Delivery { return s.Raw([]byte(broken)) })
	if acked, err := sent.Acknowledged(s.ctx); !acked || err != nil {
		s.t.Errorf("acknowledged: %v, %v", acked, err)
	}
	kept, ok := s.inbox.await(s.ctx, func(e event.Envelope) bool { return bytes.Contains(e.Body, []byte(broken)) })
	if !ok {
		s.t.Fatalf("it was not kept: %+v", s.inbox.all())
	}
	keys := s.Adapter.Keys(kept, s.known)
	_, err := s.Adapter.Normalize(s.ctx, kept, s.known)
	if keys.Settled == nil || keys.Settled.Disposition != event.Dead || s.heard(err) == nil {
		s.t.Errorf("settled as %+v, read with %v", keys.Settled, err)
	}
	s.says(adapters.Address{Channel: s.Room.ID}, "and what is said then arrives")
}

func whatIsDoneNamesIt(s *stage) {
	s.play()
	for kind, do := range map[event.Kind]func(id string){
		event.KindEdit: func(id string) { s.Edit(id, "other words") }, event.KindReaction: s.React, event.KindDelete: s.Delete,
	} {
		if do == nil || kind == event.KindEdit && s.Edit == nil {
			continue
		}
		said := s.says(adapters.Address{Channel: s.Room.ID}, "words")
		do(said.keys.Subject)
		done := s.arrives(kind, said.keys.Subject)
		if targets := done.event.Targets; len(targets) != 1 || targets[0] != said.event.Message.ExternalID {
			s.t.Errorf("a %s of %q", kind, targets)
		}
		if m := done.event.Message; kind == event.KindEdit && (m == nil || m.Content != "other words") {
			s.t.Errorf("edited to %+v", m)
		}
	}
}
