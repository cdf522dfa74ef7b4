package adaptertest

import (
	"context"
	"slices"

	"parley/adapters"
)

// ofPeople is what holds for an Ephemeral, a Signer and a Namer.
var ofPeople = []promise{
	{"what is told is seen by the asker alone", toldToOne},
	{"nobody is told what nobody asked", nobodyIsTold},
	{"the sign of work is shown once, and taken away", signIsShown},
	{"names are looked up", namesAreLookedUp},
	{"a name that could not be looked up is an error", namesMayFail},
}

func toldToOne(s *stage) {
	ephemeral := able[adapters.Ephemeral](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	post.Text = "Sorry."
	s.must(ephemeral.PostEphemeral(s.ctx, post))
	if told := s.Told(s.Asker.ID); !slices.Equal(told, []string{post.Text}) {
		s.t.Errorf("the asker was told %q", told)
	}
	if others, all := s.Told(s.Other.ID), s.Shown(post.To); len(others) != 0 || len(all) != 0 {
		s.t.Errorf("others see %q, all %+v", others, all)
	}
}

func nobodyIsTold(s *stage) {
	ephemeral := able[adapters.Ephemeral](s)
	s.play()
	post := s.asks(s.Room.ID, "k1")
	post.Asker = ""
	s.fails(ephemeral.PostEphemeral(s.ctx, post), adapters.Permanent, "an asker whom nobody knows")
}

func signIsShown(s *stage) {
	signer := able[adapters.WorkingIndicator](s)
	s.play()
	for _, channel := range []string{s.Room.ID, s.Direct.ID} {
		question := s.says(adapters.Address{Channel: channel}, "a question")
		to, err := able[adapters.Sender](s).Address(question.keys.Thread)
		s.must(err)
		sign := adapters.Sign{Thread: question.keys.Thread, To: to, Message: question.event.Message.ExternalID}
		for range 2 {
			if s.must(signer.ShowWorking(s.ctx, sign)); !s.Signed(sign) {
				s.t.Errorf("%s: no sign", channel)
			}
		}
		for range 2 {
			if s.must(signer.ClearWorking(s.ctx, sign)); s.Signed(sign) {
				s.t.Errorf("%s: the sign is still there", channel)
			}
		}
	}
}

func namesAreLookedUp(s *stage) {
	namer := able[adapters.Namer](s)
	for _, person := range []Person{s.Asker, s.Other} {
		if user, err := namer.LookupUser(s.ctx, person.ID); s.heard(err) != nil || user.DisplayName != person.Name || user.IsBot {
			s.t.Errorf("%s is %+v, %v; want %q", person.ID, user, err, person.Name)
		}
	}
}

func namesMayFail(s *stage) {
	namer := able[adapters.Namer](s)
	if user, err := namer.LookupUser(s.ctx, s.Asker.ID+"0"); s.heard(err) == nil {
		s.t.Errorf("a user whom nobody knows is %+v", user)
	}
	for _, trouble := range []Trouble{Limited, Denied, Broken, Lost} {
		if s.Fault == nil || s.Fault(Name, trouble) == nil {
			continue
		}
		if user, err := namer.LookupUser(s.ctx, s.Asker.ID); s.heard(err) == nil {
			s.t.Errorf("%s: %+v", trouble, user)
		}
	}
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := namer.LookupUser(ended, s.Asker.ID); s.heard(err) == nil {
		s.t.Error("looked up after its time")
	}
}
