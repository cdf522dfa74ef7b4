package adaptertest

import (
	"context"
	"errors"
	"slices"

	"parley/adapters"
)

// peoplePromises are the promises of an Ephemeral, a Signer and a Namer.
var peoplePromises = []promise{
	{"only the asker sees an ephemeral message", ephemeralIsPrivate},
	{"an ephemeral message without an asker fails permanently", ephemeralNeedsAsker},
	{"the sign of work can be shown twice and cleared twice", workingIsShown},
	{"LookupUser returns a user's name", namesAreLookedUp},
	{"a failed lookup of a name returns an error", failedLookupIsError},
}

func ephemeralIsPrivate(s *fixture) {
	ephemeral := ability[adapters.Ephemeral](s)
	s.start()
	question, to := s.thread(s.Room.ID, "a question")
	post := s.reply("k1", ephemeral.EphemeralAddress(to, question.event.Message.ExternalID))
	post.Text = "Sorry."
	s.must(ephemeral.PostEphemeral(s.ctx, post))
	if got := s.Ephemerals(s.Asker.ID); !slices.Equal(got, []string{post.Text}) {
		s.t.Errorf("the asker sees %q", got)
	}
	if got := s.Ephemerals(s.Other.ID); len(got) != 0 {
		s.t.Errorf("another user sees %q", got)
	}
	s.showsNothing(post)
}

func ephemeralNeedsAsker(s *fixture) {
	ephemeral := ability[adapters.Ephemeral](s)
	s.start()
	post := s.ask(s.Room.ID, "k1")
	post.Asker = ""
	s.fails(ephemeral.PostEphemeral(s.ctx, post), adapters.Permanent, "no asker")
}

func workingIsShown(s *fixture) {
	signer := ability[adapters.WorkingIndicator](s)
	s.start()
	for _, channel := range s.channels() {
		question, to := s.thread(channel, "a question")
		sign := adapters.Sign{To: to, Message: question.event.Message.ExternalID}
		for range 2 {
			if s.must(signer.ShowWorking(s.ctx, sign)); !s.Working(sign) {
				s.t.Errorf("%s: the sign is not shown", channel)
			}
		}
		for range 2 {
			if s.must(signer.ClearWorking(s.ctx, sign)); s.Working(sign) {
				s.t.Errorf("%s: the sign is still shown", channel)
			}
		}
	}
}

func namesAreLookedUp(s *fixture) {
	namer := ability[adapters.Namer](s)
	for _, person := range []Person{s.Asker, s.Other} {
		if user, err := namer.LookupUser(s.ctx, person.ID); s.record(err) != nil || user.DisplayName != person.Name || user.IsBot {
			s.t.Errorf("LookupUser(%s) returns %+v, %v; want %q", person.ID, user, err, person.Name)
		}
	}
}

func failedLookupIsError(s *fixture) {
	namer := ability[adapters.Namer](s)
	if user, err := namer.LookupUser(s.ctx, s.Asker.ID+"0"); !errors.Is(s.record(err), adapters.ErrNoName) {
		s.t.Errorf("an unknown user is %+v, %v", user, err)
	}
	s.readFails(Name, func(ctx context.Context) error {
		_, err := namer.LookupUser(ctx, s.Asker.ID)
		return err
	})
}
