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

// ofHistory are the promises of a Backfiller and a ContextReader.
var ofHistory = []promise{
	{"missed messages have the keys of their live events", missedHasItsKeys},
	{"missed messages are handed over within the gap, each thread's from the oldest on", missedWithinBounds},
	{"a thread is read on its own", missedOfThread},
	{"a read ends if its messages can't be handed over", missedEnds},
	{"a channel that can't be read is refused only if that will not pass", pastRefused},
	{"a thread is read from its root and with its newest messages", threadIsRead},
}

// urgent is the signal of a read that a turn waits for.
var urgent = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// reading returns a read of a gap that appends the events to a list. Like an inbox, it
// knows some dedupe keys.
func (s *stage) reading(gap event.Gap, messages int, known map[string]bool, read *[]arrival) adapters.Reading {
	take := func(envelope *event.Envelope) bool {
		if envelope == nil {
			return true
		}
		if envelope.Transport != event.Backfilled || envelope.Workspace != s.Workspace {
			s.t.Errorf("of %q over %q", envelope.Workspace, envelope.Transport)
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

// missed reads a gap: the channel, and then the threads that it names.
func (s *stage) missed(gap event.Gap, messages int, known map[string]bool) (read []arrival, cut bool) {
	s.t.Helper()
	b := able[adapters.Backfiller](s)
	found, err := b.ReadChannel(s.ctx, s.reading(gap, messages, known, &read))
	s.must(err)
	for _, thread := range found.Threads {
		if channel, at, ok := b.Began(thread); !ok || channel != gap.Channel || at.IsZero() {
			s.t.Errorf("%s began in %q at %v, %v", thread, channel, at, ok)
		}
		s.must(b.ReadThread(s.ctx, thread, s.reading(gap, messages, known, &read)))
	}
	slices.SortStableFunc(read, func(a, b arrival) int { return cmp.Compare(a.keys.Subject, b.keys.Subject) })
	return slices.CompactFunc(read, func(a, b arrival) bool { return a.keys.Dedupe == b.keys.Dedupe }), found.Cut
}

// around is a gap about what was said.
func around(channel string, first, last arrival) event.Gap {
	return event.Gap{Channel: channel, From: first.event.Message.SentAt, Until: last.event.Message.SentAt}
}

func missedHasItsKeys(s *stage) {
	b := able[adapters.Backfiller](s)
	s.play()
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		root := s.says(adapters.Address{Channel: channel}, "a root")
		to, err := able[adapters.Sender](s).Address(root.keys.Thread)
		s.must(err)
		live := []arrival{root, s.says(to, "a reply"), s.says(adapters.Address{Channel: channel}, "another root")}
		known := map[string]bool{}
		for _, a := range live {
			known[a.keys.Dedupe] = true
		}
		last := live[len(live)-1]
		if s.Edit != nil {
			s.Edit(root.keys.Subject, "a root, edited")
			live = slices.Insert(live, 1, s.arrives(event.KindEdit, root.keys.Subject))
		}
		read, _ := s.missed(around(channel, root, last), 100, known)
		if diff := gocmp.Diff(keysOf(live), keysOf(read)); diff != "" {
			s.t.Errorf("of %s (-live +missed):\n%s", channel, diff)
		}
	}
	channels, err := b.Channels(s.ctx)
	if err != nil || !slices.Contains(channels, s.Room.ID) || !slices.Contains(channels, s.Direct.ID) {
		s.t.Errorf("channels: %q, %v", channels, err)
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

func missedWithinBounds(s *stage) {
	able[adapters.Backfiller](s)
	s.play()
	var said []arrival
	for n := range 8 {
		said = append(said, s.says(adapters.Address{Channel: s.Room.ID}, fmt.Sprint("word ", n)))
		if n == 4 {
			s.arrives(event.KindMessage, s.send(adapters.Post{Key: "k1", To: adapters.Address{Channel: s.Room.ID}, Text: "ours", NotBefore: s.begun}))
		}
	}
	for _, c := range []struct {
		messages int
		want     string
		cut      bool
	}{{100, "word 2, word 3, word 4, word 5, word 6", false}, {2, "word 5, word 6", true}} {
		read, cut := s.missed(around(s.Room.ID, said[2], said[6]), c.messages, nil)
		if got := textsOf(read); got != c.want || cut != c.cut {
			s.t.Errorf("of %d at the most: %q, cut %v; want %q, %v", c.messages, got, cut, c.want, c.cut)
		}
	}
}

func missedOfThread(s *stage) {
	b := able[adapters.Backfiller](s)
	s.play()
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		root := s.says(adapters.Address{Channel: channel}, "a root")
		to, err := able[adapters.Sender](s).Address(root.keys.Thread)
		s.must(err)
		if channel == s.Room.ID {
			s.says(adapters.Address{Channel: channel}, "elsewhere")
		}
		first := s.says(to, "one")
		last := s.says(to, "two")
		var read []arrival
		s.must(b.ReadThread(s.ctx, first.keys.Thread, s.reading(around(channel, first, last), 100, nil, &read)))
		if got := textsOf(read); got != "one, two" {
			s.t.Errorf("of a thread in %s: %q", channel, got)
		}
		if in, at, ok := b.Began(root.keys.Thread); !ok || in != channel || at.After(root.event.Message.SentAt) {
			s.t.Errorf("it began in %q at %v, %v", in, at, ok)
		}
	}
}

func missedEnds(s *stage) {
	b := able[adapters.Backfiller](s)
	s.play()
	first := s.says(adapters.Address{Channel: s.Room.ID}, "first")
	second := s.says(adapters.Address{Channel: s.Room.ID}, "second")
	handed, full := 0, errors.New("the disk is full")
	read := adapters.Reading{Gap: around(s.Room.ID, first, second), Messages: 100, Hand: func(event.ThreadKey, []adapters.Missed) error {
		handed++
		return full
	}}
	_, err := b.ReadChannel(s.ctx, read)
	if handed != 1 || !errors.Is(s.heard(err), full) {
		s.t.Errorf("%d were handed over, %v", handed, err)
	}
	if err := b.ReadThread(s.ctx, first.keys.Thread, read); handed != 2 || !errors.Is(s.heard(err), full) {
		s.t.Errorf("%d were handed over, %v", handed, err)
	}
}

func pastRefused(s *stage) {
	b := able[adapters.Backfiller](s)
	s.play()
	said := s.says(adapters.Address{Channel: s.Room.ID}, "hi")
	read := func() error {
		_, err := b.ReadChannel(s.ctx, s.reading(around(s.Room.ID, said, said), 100, nil, new([]arrival)))
		return s.heard(err)
	}
	s.needs(s.Fault != nil, "faults")
	passes := func(what string, err error) {
		var refused *adapters.RefusedError
		if err == nil || errors.As(err, &refused) {
			s.t.Errorf("%s: %v", what, err)
		}
	}
	for _, trouble := range []Trouble{Broken, Lost} {
		if s.Fault(Past, trouble) != nil {
			passes(string(trouble), read())
		}
	}
	if s.Fault(Past, Denied) != nil {
		s.refused(read())
	}
	if s.Revoke != nil {
		s.Revoke() // with other credentials, all of it can be read
		_, err := b.Channels(s.ctx)
		passes("refused credentials", s.heard(err))
		passes("refused credentials", read())
	}
}

func threadIsRead(s *stage) {
	reader := able[adapters.ContextReader](s)
	s.play()
	root := s.says(adapters.Address{Channel: s.Room.ID}, "the root")
	to, err := able[adapters.Sender](s).Address(root.keys.Thread)
	s.must(err)
	last := arrival{}
	for n := range 6 {
		last = s.says(to, fmt.Sprint("reply ", n))
	}
	if id, ok := reader.Root(root.keys.Thread); !ok || id != root.event.Message.ExternalID {
		s.t.Errorf("the root is %q, %v; want %q", id, ok, root.event.Message.ExternalID)
	}
	before, err := reader.Before(s.ctx, root.keys.Thread, last.event.Message.ExternalID, 3)
	s.must(err)
	var texts []string
	for _, envelope := range before.Envelopes {
		a := s.read(envelope)
		texts = append(texts, a.event.Message.Content)
		if envelope.Transport != event.Reread || a.event.Message.Thread != root.keys.Thread {
			s.t.Errorf("over %q, in %s", envelope.Transport, a.event.Message.Thread)
		}
	}
	want := []string{"the root", "reply 2", "reply 3", "reply 4"}
	if diff := gocmp.Diff(want, texts); diff != "" || before.Earlier != 2 || before.Gap {
		s.t.Errorf("%d earlier, gap %v:\n%s", before.Earlier, before.Gap, diff)
	}
	if s.Fault != nil && s.Fault(Read, Broken) != nil {
		if before, err := reader.Before(s.ctx, root.keys.Thread, last.event.Message.ExternalID, 3); s.heard(err) == nil && !before.Gap {
			s.t.Error("a thread that could not be read has no gap")
		}
	}
}
