package adaptertest

import (
	"context"
	"errors"

	"parley/adapters"
	"parley/ingest/event"
)

// ofPosts is what holds for a Sender and a Finder.
var ofPosts = []promise{
	{"Send posts once, where the question was asked", sendPostsOnce},
	{"our own post comes back with the id that Send returned", ownPostComesBack},
	{"Find finds the post with the key, and no other", findFindsByKey},
	{"Find does not believe another's key", findBelievesUsAlone},
	{"Find finds a post whose call had no clear end", findAfterAnUnclearEnd},
	{"Find fails where it can't tell", findCannotTell},
	{"an address is of this platform's threads alone", addressIsOurs},
}

func sendPostsOnce(s *stage) {
	s.play()
	s.needs(s.Shown != nil, "way to look at posts")
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		post := s.asks(channel, "k1")
		id := s.send(post)
		if shown := s.Shown(post.To); len(shown) != 1 || shown[0].ID != id || shown[0].Text != post.Text {
			s.t.Errorf("%s shows %+v, want %q as %s", channel, shown, post.Text, id)
		}
	}
}

func ownPostComesBack(s *stage) {
	s.play()
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		post := s.asks(channel, "k1")
		a := s.arrives(event.KindMessage, s.send(post))
		if m := a.event.Message; m == nil || !m.Own && m.OwnKey != post.Key {
			s.t.Errorf("not known as ours: %s", a.envelope.Body)
		}
		if a.keys.Thread != post.Thread {
			s.t.Errorf("the answer is in %s, the question in %s", a.keys.Thread, post.Thread)
		}
	}
}

func findFindsByKey(s *stage) {
	finder := able[adapters.Finder](s)
	s.play()
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		post := s.asks(channel, "")
		ids := map[string]string{}
		for _, key := range []string{"k1", "k2", "k3"} {
			post.Key = key // the text is the same
			ids[key] = s.send(post)
		}
		for _, key := range []string{"k2", "k3", "k1", "k4", "k"} {
			post.Key = key
			id, found, err := finder.Find(s.ctx, post)
			if s.must(err); id != ids[key] || found != (id != "") {
				s.t.Errorf("%s is %q, %v; want %q", key, id, found, ids[key])
			}
		}
	}
}

func findBelievesUsAlone(s *stage) {
	finder := able[adapters.Finder](s)
	s.needs(s.Forge != nil, "way to post as another")
	s.play()
	post := s.asks(s.Room.ID, "k1")
	s.Forge(post)
	id, found, err := finder.Find(s.ctx, post)
	if s.must(err); found {
		s.t.Errorf("took %s", id)
	}
}

func findAfterAnUnclearEnd(s *stage) {
	finder := able[adapters.Finder](s)
	s.play()
	s.needs(s.Fault != nil, "faults")
	for trouble, there := range map[Trouble]bool{Lost: false, LostLate: true, Broken: false, BrokenLate: true} {
		post := s.asks(s.Room.ID, "k1")
		if s.Fault(Post, trouble) == nil {
			continue
		}
		_, err := able[adapters.Sender](s).Send(s.ctx, post)
		s.fails(err, adapters.Unclear, "%s", trouble)
		id, found, err := finder.Find(s.ctx, post)
		if s.must(err); found != there {
			s.t.Errorf("%s: found %v", trouble, found)
		}
		if _, stands := s.shown(post.To, id); there && !stands {
			s.t.Errorf("%s: found %q, which is not there", trouble, id)
		}
	}
}

func findCannotTell(s *stage) {
	finder := able[adapters.Finder](s)
	s.play()
	s.needs(s.Fault != nil, "faults")
	post := s.asks(s.Room.ID, "k1")
	s.send(post)
	for _, trouble := range []Trouble{Limited, Denied, Broken, Lost} {
		if s.Fault(Read, trouble) == nil {
			continue
		}
		if id, found, err := finder.Find(s.ctx, post); found || s.heard(err) == nil {
			s.t.Errorf("%s: found %q, %v", trouble, id, err)
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, found, err := finder.Find(ctx, post); found || s.heard(err) == nil {
		s.t.Errorf("its time was over: found %v, %v", found, err)
	}
}

func addressIsOurs(s *stage) {
	sender := able[adapters.Sender](s)
	for _, thread := range []event.ThreadKey{"", "nowhere:" + event.ThreadKey(s.Workspace) + ":1", "a thread"} {
		if to, err := sender.Address(thread); s.heard(err) == nil {
			s.t.Errorf("%q is at %+v", thread, to)
		}
	}
}

// fails checks what a call has left behind.
func (s *stage) fails(err error, want adapters.SendFailure, about string, args ...any) *adapters.SendError {
	s.t.Helper()
	failed := new(adapters.SendError)
	if !errors.As(s.heard(err), &failed) {
		s.t.Errorf(about+": %v is no SendError", append(args, err)...)
		return &adapters.SendError{Failure: -1}
	}
	if failed.Failure != want {
		s.t.Errorf(about+": failure %d, want %d: %v", append(args, failed.Failure, want, err)...)
	}
	return failed
}
