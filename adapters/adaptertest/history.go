package adaptertest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
)

// backfillPromises are the promises of a Backfiller and a ContextReader.
var backfillPromises = []promise{
	{"missed messages have the keys of their live events", missedHaveLiveKeys},
	{"a read hands over the messages within the gap, each thread's from the oldest to the newest", missedWithinBounds},
	{"ReadThread reads only its thread", missedOfThread},
	{"a read ends when Hand fails", handErrorEndsRead},
	{"a read of a channel is refused only if the failure is permanent", refusalIsPermanent},
	{"ReadHistory reads a thread's root and its newest messages", threadHistoryIsRead},
}

// urgent is the closed signal of a read that a turn waits for.
var urgent = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// reading returns a read of a gap that appends the events to a list. known contains the
// dedupe keys that the inbox already has.
func (s *fixture) reading(gap event.Gap, messages int, known map[string]bool, read *[]arrival) adapters.Reading {
	take := func(envelope *event.Envelope) bool {
		if envelope == nil {
			return true
		}
		if envelope.Transport != event.Backfilled || envelope.Workspace != s.Workspace {
			s.t.Errorf("the missed envelope has workspace %q and transport %q", envelope.Workspace, envelope.Transport)
		}
		a := s.read(*envelope)
		*read = append(*read, a)
		return known[a.keys.Dedupe]
	}
	return adapters.Reading{Gap: gap, Messages: messages, Urgent: urgent, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
		for _, m := range list {
			if take(m.New) {
				take(m.Change)
			}
		}
		return nil
	}}
}

// missed reads a gap: first the channel, and then the threads that it names.
func (s *fixture) missed(gap event.Gap, messages int, known map[string]bool) (read []arrival, cut bool) {
	s.t.Helper()
	b := ability[adapters.Backfiller](s)
	found, err := b.ReadChannel(s.ctx, s.reading(gap, messages, known, &read))
	s.must(err)
	for _, thread := range found.Threads {
		if channel, at, ok := b.Began(thread); !ok || channel != gap.Channel || at.IsZero() {
			s.t.Errorf("Began returns %[2]q, %[3]v, %[4]v for %[1]s", thread, channel, at, ok)
		}
		s.must(b.ReadThread(s.ctx, thread, s.reading(gap, messages, known, &read)))
	}
	slices.SortStableFunc(read, func(a, b arrival) int { return cmp.Compare(a.keys.MessageID, b.keys.MessageID) })
	return slices.CompactFunc(read, func(a, b arrival) bool { return a.keys.Dedupe == b.keys.Dedupe }), found.Cut
}

// around returns the gap from one message to another.
func around(channel string, first, last arrival) event.Gap {
	return event.Gap{Channel: channel, From: first.event.Message.SentAt, Until: last.event.Message.SentAt}
}

func missedHaveLiveKeys(s *fixture) {
	b := ability[adapters.Backfiller](s)
	s.start()
	for _, channel := range s.channels() {
		root, to := s.thread(channel, "a root")
		live := []arrival{root, s.say(to, "a reply"), s.say(adapters.Address{Channel: channel}, "another root")}
		known := map[string]bool{}
		for _, a := range live {
			known[a.keys.Dedupe] = true
		}
		last := live[len(live)-1]
		if s.Edit != nil {
			s.Edit(root.keys.MessageID, "a root, edited")
			live = slices.Insert(live, 1, s.await(event.KindEdit, root.keys.MessageID))
		}
		read, _ := s.missed(around(channel, root, last), 100, known)
		if diff := gocmp.Diff(keysOf(live), keysOf(read)); diff != "" {
			s.t.Errorf("the keys in %s differ (-live +missed):\n%s", channel, diff)
		}
	}
	channels, err := b.Channels(s.ctx)
	if err != nil || !slices.Contains(channels, s.Room.ID) || !slices.Contains(channels, s.Direct.ID) {
		s.t.Errorf("Channels returns %q, %v", channels, err)
	}
}

func keysOf(all []arrival) (keys []event.Keys) {
	for _, a := range all {
		keys = append(keys, a.keys)
	}
	return keys
}

func textsOf(all []arrival) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.event.Message.Content)
	}
	return strings.Join(texts, ", ")
}

func missedWithinBounds(s *fixture) {
	ability[adapters.Backfiller](s)
	s.start()
	var said []arrival
	for n := range 8 {
		said = append(said, s.say(adapters.Address{Channel: s.Room.ID}, fmt.Sprint("word ", n)))
		if n == 4 {
			s.await(event.KindMessage, s.send(adapters.Post{Key: "k1", To: adapters.Address{Channel: s.Room.ID}, Text: "ours", NotBefore: s.started}))
		}
	}
	for _, c := range []struct {
		messages int
		want     string
		cut      bool
	}{{100, "word 2, word 3, word 4, word 5, word 6", false}, {2, "word 5, word 6", true}} {
		read, cut := s.missed(around(s.Room.ID, said[2], said[6]), c.messages, nil)
		if got := textsOf(read); got != c.want || cut != c.cut {
			s.t.Errorf("with at most %d messages: %q, cut %v; want %q, %v", c.messages, got, cut, c.want, c.cut)
		}
	}
}

func missedOfThread(s *fixture) {
	b := ability[adapters.Backfiller](s)
	s.start()
	for _, channel := range s.channels() {
		root, to := s.thread(channel, "a root")
		if channel == s.Room.ID {
			s.say(adapters.Address{Channel: channel}, "elsewhere")
		}
		first := s.say(to, "one")
		last := s.say(to, "two")
		var read []arrival
		s.must(b.ReadThread(s.ctx, first.keys.Thread, s.reading(around(channel, first, last), 100, nil, &read)))
		if got := textsOf(read); got != "one, two" {
			s.t.Errorf("the thread in %s contains %q", channel, got)
		}
		if in, at, ok := b.Began(root.keys.Thread); !ok || in != channel || at.After(root.event.Message.SentAt) {
			s.t.Errorf("Began returns %q, %v, %v", in, at, ok)
		}
	}
}

func handErrorEndsRead(s *fixture) {
	b := ability[adapters.Backfiller](s)
	s.start()
	first := s.say(adapters.Address{Channel: s.Room.ID}, "first")
	second := s.say(adapters.Address{Channel: s.Room.ID}, "second")
	handed, full := 0, errors.New("the disk is full")
	read := adapters.Reading{Gap: around(s.Room.ID, first, second), Messages: 100, Hand: func(event.ThreadKey, []adapters.Missed) error {
		handed++
		return full
	}}
	_, err := b.ReadChannel(s.ctx, read)
	if handed != 1 || !errors.Is(s.record(err), full) {
		s.t.Errorf("ReadChannel: Hand was called %d times, error %v", handed, err)
	}
	if err := b.ReadThread(s.ctx, first.keys.Thread, read); handed != 2 || !errors.Is(s.record(err), full) {
		s.t.Errorf("ReadThread: Hand was called %d times in all, error %v", handed, err)
	}
}

func refusalIsPermanent(s *fixture) {
	b := ability[adapters.Backfiller](s)
	s.start()
	said := s.say(adapters.Address{Channel: s.Room.ID}, "hi")
	read := func() error {
		_, err := b.ReadChannel(s.ctx, s.reading(around(s.Room.ID, said, said), 100, nil, new([]arrival)))
		return s.record(err)
	}
	s.require(s.Fault != nil, "faults")
	transient := func(name string, err error) {
		var refused *adapters.RefusedError
		if err == nil || errors.As(err, &refused) {
			s.t.Errorf("%s: %v", name, err)
		}
	}
	for failure := range s.failures(ReadChannel, Broken, Lost) {
		transient(string(failure), read())
	}
	for range s.failures(ReadChannel, Denied) {
		s.refused(read())
	}
	if s.Revoke != nil {
		s.Revoke() // other credentials can read every channel
		_, err := b.Channels(s.ctx)
		transient("refused credentials", s.record(err))
		transient("refused credentials", read())
	}
}

// open begins a thread. It returns the root's id and the address of replies.
func (s *fixture) open(text string) (root string, to adapters.Address) {
	s.t.Helper()
	if s.Open != nil {
		return s.Open(text)
	}
	message, to := s.thread(s.Room.ID, text)
	return message.event.Message.ExternalID, to
}

func threadHistoryIsRead(s *fixture) {
	reader := ability[adapters.ContextReader](s)
	s.start()
	root, to := s.open("the root")
	last := arrival{}
	for n := range 6 {
		last = s.say(to, fmt.Sprint("reply ", n))
	}
	thread := last.keys.Thread
	if id, ok := reader.Root(thread); !ok || id != root {
		s.t.Errorf("Root returns %q, %v; want %q", id, ok, root)
	}
	history, err := reader.ReadHistory(s.ctx, thread, last.event.Message.ExternalID, 3)
	s.must(err)
	var texts []string
	for _, envelope := range history.Envelopes {
		a := s.read(envelope)
		texts = append(texts, a.event.Message.Content)
		if envelope.Transport != event.Reread || a.event.Message.Thread != thread {
			s.t.Errorf("the envelope has transport %q and thread %s", envelope.Transport, a.event.Message.Thread)
		}
	}
	want := []string{"the root", "reply 2", "reply 3", "reply 4"}
	if diff := gocmp.Diff(want, texts); diff != "" || history.Earlier != 2 || history.Gap {
		s.t.Errorf("the history has %d earlier messages and gap %v:\n%s", history.Earlier, history.Gap, diff)
	}
	if s.Fault != nil && s.Fault(Read, Broken) != nil {
		if history, err := reader.ReadHistory(s.ctx, thread, last.event.Message.ExternalID, 3); s.record(err) == nil && !history.Gap {
			s.t.Error("ReadHistory reports neither an error nor a gap although the read failed")
		}
	}
}
