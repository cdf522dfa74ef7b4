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

// acceptPromises are the promises about incoming envelopes.
var acceptPromises = []promise{
	{"a message arrives verbatim and in its thread", messagesArrive},
	{"an envelope that Accept refuses is not acknowledged, and the platform sends it again", refusedAcceptIsRepeated},
	{"a damaged payload is stored unchanged, acknowledged, and becomes a dead letter", damagedIsStored},
	{"an edit, a reaction and a delete name their message", changesNameMessage},
}

func messagesArrive(s *fixture) {
	s.start()
	threads := map[event.ThreadKey]string{}
	for _, channel := range s.channels() {
		root := s.sayAndCheck(adapters.Address{Channel: channel}, "first, <b> & *c* \u00e9")
		if other := threads[root.keys.Thread]; other != "" {
			s.t.Errorf("%s and %s have the same thread", channel, other)
		}
		threads[root.keys.Thread] = channel
		to := s.address(root)
		if to.Channel != channel {
			s.t.Errorf("replies in %s go to %+v", channel, to)
		}
		if reply := s.sayAndCheck(to, "second"); reply.keys.Thread != root.keys.Thread {
			s.t.Errorf("the reply is in %s, its root in %s", reply.keys.Thread, root.keys.Thread)
		}
	}
}

// sayAndCheck lets the asker send a message, and checks all parts of its envelope and event.
func (s *fixture) sayAndCheck(to adapters.Address, text string) arrival {
	s.t.Helper()
	a := s.say(to, text)
	if e := a.envelope; e.Workspace != s.Workspace || e.Transport != s.Transport || e.ReceivedAt.IsZero() {
		s.t.Errorf("the envelope has workspace %q, transport %q and time %v", e.Workspace, e.Transport, e.ReceivedAt)
	}
	m := a.event.Message
	if m == nil {
		s.t.Fatalf("the envelope %s has no message", a.envelope.Body)
	}
	if sender := s.Platform.Namespace() + ":" + s.Asker.ID; m.Content != text || m.Metadata.SenderID != sender || m.Own {
		s.t.Errorf("%q from %q, want %q from %q", m.Content, m.Metadata.SenderID, text, sender)
	}
	if m.Channel.ID != to.Channel || m.Thread != a.keys.Thread || m.SentAt.Before(s.started.Add(-time.Minute)) {
		s.t.Errorf("the message has channel %+v, thread %s and time %v", m.Channel, m.Thread, m.SentAt)
	}
	checkKeys(s.t, payload{envelope: a.envelope, platform: s.Platform}, a.keys)
	return a
}

// deliver sends a payload whose acknowledgement the platform awaits.
func (s *fixture) deliver(can bool, send func() Delivery) Delivery {
	s.t.Helper()
	s.require(can, "way to send that")
	d := send()
	s.require(d.Acknowledged != nil, "acknowledgements")
	return d
}

// refusedAcceptIsRepeated also finds an adapter that acknowledges before Accept returns: the
// platform would send the envelope once.
func refusedAcceptIsRepeated(s *fixture) {
	var tries atomic.Int64
	s.inbox.first(func(context.Context, event.Envelope) error {
		if tries.Add(1) <= 2 {
			return fmt.Errorf("commit: %w", adapters.ErrBusy)
		}
		return nil
	})
	s.start()
	sent := s.deliver(s.Say != nil, func() Delivery { return s.Say(adapters.Address{Channel: s.Room.ID}, "hi") })
	if acked, err := sent.Acknowledged(s.ctx); !acked || err != nil || tries.Load() < 3 {
		s.t.Fatalf("acknowledged after %d tries: %v, %v", tries.Load(), acked, err)
	}
	s.await(event.KindMessage, sent.ID)
}

func damagedIsStored(s *fixture) {
	s.start()
	const broken = `{"damaged":[{"text":"\u00`
	sent := s.deliver(s.Raw != nil, func() Delivery { return s.Raw([]byte(broken)) })
	if acked, err := sent.Acknowledged(s.ctx); !acked || err != nil {
		s.t.Errorf("acknowledged: %v, %v", acked, err)
	}
	stored, ok := s.inbox.await(s.ctx, func(_ int, e event.Envelope) bool { return bytes.Contains(e.Body, []byte(broken)) })
	if !ok {
		s.t.Fatalf("the payload was not stored, only %+v", s.inbox.all())
	}
	keys := s.Adapter.Keys(stored, s.known)
	_, err := s.Adapter.Normalize(s.ctx, stored, s.known)
	if keys.Result == nil || keys.Result.Disposition != event.Dead || s.record(err) == nil {
		s.t.Errorf("Keys returns the result %+v, Normalize the error %v", keys.Result, err)
	}
	s.say(adapters.Address{Channel: s.Room.ID}, "a message after the damaged one")
}

func changesNameMessage(s *fixture) {
	s.start()
	for kind, do := range map[event.Kind]func(id string){
		event.KindEdit: func(id string) { s.Edit(id, "other words") }, event.KindReaction: s.React, event.KindDelete: s.Delete,
	} {
		if do == nil || kind == event.KindEdit && s.Edit == nil {
			continue
		}
		sent := s.say(adapters.Address{Channel: s.Room.ID}, "words")
		do(sent.keys.MessageID)
		change := s.await(kind, sent.keys.MessageID)
		if targets := change.event.Targets; len(targets) != 1 || targets[0] != sent.event.Message.ExternalID {
			s.t.Errorf("the %s has the targets %q", kind, targets)
		}
		if m := change.event.Message; kind == event.KindEdit && (m == nil || m.Content != "other words") {
			s.t.Errorf("the edit has the message %+v", m)
		}
	}
}
