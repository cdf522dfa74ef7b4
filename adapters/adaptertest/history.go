package adaptertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
)

// ofHistory is what holds for a Historian and a ContextReader.
var ofHistory = []promise{
	{"what was missed has the keys that it would have had", missedHasItsKeys},
	{"what was missed is handed over from its oldest message on, within its bounds", missedWithinBounds},
	{"what was missed ends where it can't be handed over", missedEnds},
	{"a channel that can't be read is refused only where that will not pass", pastRefused},
	{"a thread is read from its root and with its newest messages", threadIsRead},
}

// missed reads a gap, as custody would that knows some dedupe keys.
func (s *stage) missed(gap event.Gap, messages int, known map[string]bool) (read []arrival, cut bool) {
	s.t.Helper()
	last := time.Time{}
	cut, err := able[adapters.Historian](s).Missed(s.ctx, gap, adapters.Bounds{Messages: messages},
		func(at time.Time, envelope event.Envelope) (bool, error) {
			if at.Before(last) || envelope.Transport != event.CatchUp || envelope.Workspace != s.Workspace {
				s.t.Errorf("at %v, after %v, of %q over %q", at, last, envelope.Workspace, envelope.Transport)
			}
			last = at
			read = append(read, s.read(envelope))
			return known[read[len(read)-1].keys.Dedupe], nil
		})
	s.must(err)
	return read, cut
}

// around is a gap about what was said.
func around(channel string, first, last arrival) event.Gap {
	return event.Gap{Place: channel, From: first.event.Message.SentAt, Until: last.event.Message.SentAt}
}

func missedHasItsKeys(s *stage) {
	historian := able[adapters.Historian](s)
	s.play()
	places, err := historian.Places(s.ctx)
	s.must(err)
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
		if diff := cmp.Diff(keysOf(live), keysOf(read)); diff != "" {
			s.t.Errorf("of %s (-live +missed):\n%s", channel, diff)
		}
	}
	if places, err = historian.Places(s.ctx); err != nil || !slices.Contains(places, s.Room.ID) || !slices.Contains(places, s.Direct.ID) {
		s.t.Errorf("places: %q, %v", places, err)
	}
}

func keysOf(all []arrival) (keys []event.Keys) {
	for _, a := range all {
		keys = append(keys, a.keys)
	}
	return keys
}

func missedWithinBounds(s *stage) {
	able[adapters.Historian](s)
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
		var texts []string
		for _, a := range read {
			texts = append(texts, a.event.Message.Content)
		}
		if got := strings.Join(texts, ", "); got != c.want || cut != c.cut {
			s.t.Errorf("of %d at the most: %q, cut %v; want %q, %v", c.messages, got, cut, c.want, c.cut)
		}
	}
}

func missedEnds(s *stage) {
	historian := able[adapters.Historian](s)
	s.play()
	first := s.says(adapters.Address{Channel: s.Room.ID}, "first")
	second := s.says(adapters.Address{Channel: s.Room.ID}, "second")
	handed, full := 0, errors.New("the disk is full")
	_, err := historian.Missed(s.ctx, around(s.Room.ID, first, second), adapters.Bounds{Messages: 100},
		func(time.Time, event.Envelope) (bool, error) {
			handed++
			return false, full
		})
	if handed != 1 || !errors.Is(s.heard(err), full) {
		s.t.Errorf("%d were handed over, %v", handed, err)
	}
}

func pastRefused(s *stage) {
	historian := able[adapters.Historian](s)
	s.play()
	said := s.says(adapters.Address{Channel: s.Room.ID}, "hi")
	read := func() error {
		_, err := historian.Missed(s.ctx, around(s.Room.ID, said, said), adapters.Bounds{Messages: 100},
			func(time.Time, event.Envelope) (bool, error) { return false, nil })
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
		_, err := historian.Places(s.ctx)
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
	if diff := cmp.Diff(want, texts); diff != "" || before.Earlier != 2 || before.Gap {
		s.t.Errorf("%d earlier, gap %v:\n%s", before.Earlier, before.Gap, diff)
	}
	if s.Fault != nil && s.Fault(Read, Broken) != nil {
		if before, err := reader.Before(s.ctx, root.keys.Thread, last.event.Message.ExternalID, 3); s.heard(err) == nil && !before.Gap {
			s.t.Error("a thread that could not be read has no gap")
		}
	}
}
