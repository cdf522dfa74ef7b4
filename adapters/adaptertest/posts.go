package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/adapters"
	"parley/ingest/event"
)

// senderPromises are the promises of a Sender and a Finder.
var senderPromises = []promise{
	{"Send posts once, in the question's thread", sendPostsOnce},
	{"with Limits.Once, a post that is sent again is the same post", sentAgainIsOne},
	{"our own post arrives with the id that Send returned", ownPostArrives},
	{"Find finds the post with the key, and no other", findFindsByKey},
	{"Find ignores a key in a foreign post", findIgnoresForeignPosts},
	{"Find finds a post whose call ended unclearly", findAfterUnclearSend},
	{"Find fails if its read fails", findFails},
	{"List returns our posts with the same text, the oldest first, and no others", listReturnsAlike},
	{"List returns a post whose call ended unclearly", listAfterUnclearSend},
	{"List fails if its read fails", listFails},
	{"Address refuses other platforms' threads", addressRefusesOthers},
}

func sendPostsOnce(s *fixture) {
	s.start()
	s.require(s.Shown != nil, "view of posts")
	for _, channel := range s.channels() {
		post := s.ask(channel, "k1")
		s.showsOnly(post, s.send(post))
	}
}

func sentAgainIsOne(s *fixture) {
	s.require(s.Adapter.Limits().Once, "promise to do a key once")
	post, id := s.posted()
	if again := s.send(post); again != id {
		s.t.Errorf("the post is %s, and %s when it is sent again", id, again)
	}
	s.showsOnly(post, id)
}

func ownPostArrives(s *fixture) {
	s.start()
	for _, channel := range s.channels() {
		question, to := s.thread(channel, "a question")
		post := s.reply("k1", to)
		a := s.await(event.KindMessage, s.send(post))
		_, byKey := s.Adapter.(adapters.Finder) // otherwise the id alone shows that the post is ours
		if m := a.event.Message; m == nil || byKey && !m.Own && m.OwnKey != post.Key {
			s.t.Errorf("the post is not recognised as ours: %s", a.envelope.Body)
		}
		if a.keys.Thread != question.keys.Thread {
			s.t.Errorf("the answer is in %s, the question in %s", a.keys.Thread, question.keys.Thread)
		}
	}
}

func findFindsByKey(s *fixture) {
	finder := ability[adapters.Finder](s)
	s.start()
	for _, channel := range s.channels() {
		post := s.ask(channel, "")
		ids := map[string]string{}
		for _, key := range []string{"k1", "k2", "k3"} {
			post.Key = key // all have the same text
			ids[key] = s.send(post)
		}
		for _, key := range []string{"k2", "k3", "k1", "k4", "k"} {
			post.Key = key
			id, found, err := finder.Find(s.ctx, post)
			if s.must(err); id != ids[key] || found != (id != "") {
				s.t.Errorf("Find returns %[2]q, %[3]v for %[1]s; want %[4]q", key, id, found, ids[key])
			}
		}
	}
}

func findIgnoresForeignPosts(s *fixture) {
	finder := ability[adapters.Finder](s)
	s.require(s.Forge != nil, "way to post as somebody else")
	s.start()
	post := s.ask(s.Room.ID, "k1")
	s.Forge(post)
	id, found, err := finder.Find(s.ctx, post)
	if s.must(err); found {
		s.t.Errorf("Find returns the foreign post %s", id)
	}
}

func findAfterUnclearSend(s *fixture) {
	finder := ability[adapters.Finder](s)
	s.start()
	s.require(s.Fault != nil, "faults")
	n := 0
	for failure := range s.failures(Post, Lost, LostLate, Broken, BrokenLate) {
		n++
		there, post := failure == LostLate || failure == BrokenLate, s.ask(s.Room.ID, fmt.Sprint("k", n))
		_, err := ability[adapters.Sender](s).Send(s.ctx, post)
		s.fails(err, adapters.Unclear, "%s", failure)
		id, found, err := finder.Find(s.ctx, post)
		if s.must(err); found != there {
			s.t.Errorf("%s: found is %v", failure, found)
		}
		if _, shown := s.shown(post.To, id); there && !shown {
			s.t.Errorf("%s: Find returns %q, which is not shown", failure, id)
		}
	}
}

func findFails(s *fixture) {
	finder := ability[adapters.Finder](s)
	post, _ := s.posted()
	s.readFails(Read, func(ctx context.Context) error {
		id, found, err := finder.Find(ctx, post)
		if found {
			s.t.Errorf("Find returns %q, %v", id, err)
		}
		return err
	})
}

func listReturnsAlike(s *fixture) {
	lister := ability[adapters.Lister](s)
	s.start()
	for _, channel := range s.channels() {
		post := s.ask(channel, "k1")
		want := []string{s.send(post)}
		other := post
		other.Key, other.Text = "k2", "other words"
		s.send(other)
		if s.Forge != nil {
			s.Forge(post)
		}
		post.Key = "k3"
		want = append(want, s.send(post))
		ids, err := lister.List(s.ctx, post)
		if s.must(err); !slices.Equal(ids, want) {
			s.t.Errorf("List returns %q, want %q", ids, want)
		}
	}
}

func listAfterUnclearSend(s *fixture) {
	lister := ability[adapters.Lister](s)
	s.start()
	s.require(s.Fault != nil, "faults")
	n := 0
	for _, call := range []Call{Post, Upload} {
		for failure := range s.failures(call, Lost, LostLate, Broken, BrokenLate) {
			n++
			there, post := failure == LostLate || failure == BrokenLate, s.ask(s.Room.ID, fmt.Sprint("k", n))
			if post.Text = fmt.Sprint(call, failure); call == Upload {
				post = s.withFile(post, []byte("content"))
				post.File.Name = fmt.Sprintf("%s.txt", failure)
			}
			_, err := ability[adapters.Sender](s).Send(s.ctx, post)
			s.fails(err, adapters.Unclear, "%s, %s", call, failure)
			ids, err := lister.List(s.ctx, post)
			if s.must(err); len(ids) > 1 || (len(ids) == 1) != there {
				s.t.Errorf("%s, %s: List returns %q", call, failure, ids)
			}
		}
	}
}

func listFails(s *fixture) {
	lister := ability[adapters.Lister](s)
	post, _ := s.posted()
	s.readFails(Read, func(ctx context.Context) error {
		_, err := lister.List(ctx, post)
		return err
	})
}

func addressRefusesOthers(s *fixture) {
	sender := ability[adapters.Sender](s)
	for _, thread := range []event.ThreadKey{"", "nowhere:" + event.ThreadKey(s.Workspace) + ":1", "a thread"} {
		if to, err := sender.Address(thread, ""); s.record(err) == nil {
			s.t.Errorf("Address returns %+[2]v for %[1]q", thread, to)
		}
	}
}

// fails checks that err is a SendError with the wanted failure.
func (s *fixture) fails(err error, want adapters.SendFailure, about string, args ...any) *adapters.SendError {
	s.t.Helper()
	failed := new(adapters.SendError)
	if !errors.As(s.record(err), &failed) {
		s.t.Errorf(about+": %v is not a SendError", append(args, err)...)
		return &adapters.SendError{Failure: -1}
	}
	if failed.Failure != want {
		s.t.Errorf(about+": failure %d, want %d: %v", append(args, failed.Failure, want, err)...)
	}
	return failed
}
