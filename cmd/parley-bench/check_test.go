package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
)

// story is a made-up history; its clock counts seconds.
type story struct {
	*ledger
	posts []slacktest.Post
}

func at(seconds float64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// newStory has a thread in a channel and a direct message, three messages in
// each, which were acknowledged in the first second.
func newStory(expect func(*message, int) []string) *story {
	s := &story{ledger: newLedger(expect)}
	room, direct := newConversation(0), newConversation(3)
	for range 3 {
		for _, c := range []*conversation{room, direct} {
			s.say(c).revisions[0] = span{at(0), at(1)}
		}
	}
	return s
}

// reply posts the reply to a message's revision.
func (s *story) reply(id, revision int, when time.Time) {
	m := s.messages[id]
	for _, text := range s.expect(m, revision) {
		n := int64(len(s.posts) + 1)
		s.posts = append(s.posts, slacktest.Post{N: n, TS: fmt.Sprintf("9.%06d", n), Channel: m.place.channel, ThreadTS: m.place.root, Text: text, At: when})
	}
}

func (s *story) edit(id int, acked time.Time) {
	s.messages[id].revisions = append(s.messages[id].revisions, span{acked, acked})
}

func (s *story) delete(id int, acked time.Time) { s.messages[id].deleted = &span{acked, acked} }

// holds checks that exactly these violations are found.
func (s *story) holds(t *testing.T, want map[violation]int) {
	t.Helper()
	verdict := s.check(s.posts)
	if diff := cmp.Diff(want, verdict.counts); diff != "" {
		t.Errorf("violations (-want +got):\n%s%v", diff, verdict)
	}
}

func echoStory() *story {
	s := newStory(echoed)
	for id := range s.messages {
		s.reply(id, 0, at(2))
	}
	return s
}

func TestAHistoryIsClean(t *testing.T) {
	s := echoStory()
	s.holds(t, map[violation]int{})
	if got, want := s.check(s.posts).String(),
		"6 acknowledged (0 deleted later), 6 replies (0 to an edit) in 6 posts, 0 lost, 0 doubled, 0 out of order, 0 misrouted, 0 wrong\n"; got != want {
		t.Errorf("it says %q", got)
	}
}

func TestViolationsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(s *story)
		want map[violation]int
	}{
		"a message without a reply": {func(s *story) { s.posts = slices.Delete(s.posts, 2, 3) }, map[violation]int{lost: 1}},
		"a reply twice":             {func(s *story) { s.reply(2, 0, at(3)) }, map[violation]int{doubled: 1}},
		"two replies of a thread swapped": {func(s *story) { s.posts[2], s.posts[4] = s.posts[4], s.posts[2] },
			map[violation]int{disordered: 1}},
		"another channel":          {func(s *story) { s.posts[0].Channel = "C0OTHER" }, map[violation]int{misrouted: 1}},
		"another thread":           {func(s *story) { s.posts[0].ThreadTS = "1.000001" }, map[violation]int{misrouted: 1}},
		"outside its thread":       {func(s *story) { s.posts[0].ThreadTS = "" }, map[violation]int{misrouted: 1}},
		"words added":              {func(s *story) { s.posts[1].Text += "!" }, map[violation]int{wrong: 1}},
		"a revision never written": {func(s *story) { s.posts[1].Text = mark(1, 1, 1) }, map[violation]int{wrong: 1}},
		"an apology": {func(s *story) { s.posts[1].Text = "Sorry, something went wrong." },
			map[violation]int{wrong: 1, lost: 1}},
		"an answer to nobody": {func(s *story) { s.posts = append(s.posts, slacktest.Post{Text: mark(99, 0, 1)}) },
			map[violation]int{wrong: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := echoStory()
			c.harm(s)
			s.holds(t, c.want)
		})
	}
}

func TestRepliesOfDifferentThreadsMayCross(t *testing.T) {
	s := echoStory()
	s.posts[2], s.posts[3] = s.posts[3], s.posts[2]
	s.holds(t, map[violation]int{})
}

func TestWhatWasNeverAcknowledgedMayGoUnanswered(t *testing.T) {
	s := echoStory()
	s.messages[5].revisions[0].acked = time.Time{}
	s.holds(t, map[violation]int{})
	s.posts = s.posts[:5]
	s.holds(t, map[violation]int{})
}

// answered is the reply of a model that answers at length.
func answered(m *message, revision int) []string { return answerOf(m.id, revision) }

// modelStory has each message asked at 10 s and answered at 11, and posted at 12.
func modelStory(prepare func(s *story)) *story {
	s := newStory(answered)
	s.agent = true
	prepare(s)
	for id := range s.messages {
		s.asked(ask{id: id, revision: 0, arrived: at(10), ended: at(11)})
		s.reply(id, 0, at(12))
	}
	return s
}

func TestAPartOfAReplyIsNoReply(t *testing.T) {
	s := modelStory(func(*story) {})
	s.holds(t, map[violation]int{})
	s.posts = s.posts[:len(s.posts)-1]
	s.holds(t, map[violation]int{lost: 1})
}

func TestPartsComeInOrder(t *testing.T) {
	s := modelStory(func(*story) {})
	s.posts[0], s.posts[1] = s.posts[1], s.posts[0]
	s.holds(t, map[violation]int{disordered: 1})
}

func TestAnEditBeforeTheRunIsInIt(t *testing.T) {
	for acked, want := range map[float64]map[violation]int{
		9:    {wrong: 1},
		9.9:  {}, // in custody, and perhaps not recorded
		10.5: {},
		20:   {},
	} {
		s := modelStory(func(s *story) { s.edit(4, at(acked)) })
		s.holds(t, want)
	}
}

func TestAReplyIsTheAgentsLastAnswer(t *testing.T) {
	s := modelStory(func(s *story) { s.edit(4, at(10.5)) })
	s.asked(ask{id: 4, revision: 1, arrived: at(11.2)}) // broken off by a kill
	s.holds(t, map[violation]int{})
	s.asked(ask{id: 4, revision: 1, arrived: at(11.5), ended: at(11.9)})
	s.holds(t, map[violation]int{wrong: 3}) // each of its posts is of revision 0
}

func TestAReplyHasASource(t *testing.T) {
	s := modelStory(func(*story) {})
	s.ledger.asks = s.ledger.asks[1:]
	s.holds(t, map[violation]int{wrong: 1})
}

func TestADeletedMessageIsNotAnswered(t *testing.T) {
	for acked, want := range map[float64]map[violation]int{
		9:    {wrong: 2}, // asked and answered
		10.5: {wrong: 1}, // answered
		10.9: {},         // perhaps committed already
		20:   {},
	} {
		s := modelStory(func(s *story) { s.delete(4, at(acked)) })
		s.holds(t, want)
	}
}

func TestADeleteExcusesSilenceAndNothingLess(t *testing.T) {
	s := modelStory(func(s *story) { s.delete(5, at(20)) })
	s.posts = s.posts[:len(s.posts)-1]
	s.holds(t, map[violation]int{lost: 1})
	s.posts = s.posts[:len(s.posts)-2]
	s.holds(t, map[violation]int{})
}

func TestFewViolationsAreDescribed(t *testing.T) {
	s := echoStory()
	for range 2 * maxDetails {
		s.reply(0, 0, at(3))
	}
	verdict := s.check(s.posts)
	if verdict.total() != 2*maxDetails || len(verdict.details) != maxDetails {
		t.Errorf("%d violations, %d described", verdict.total(), len(verdict.details))
	}
}

func TestWhatAsksForNothingIsNotAnswered(t *testing.T) {
	for _, ask := range []func(*message){func(m *message) { m.unaddressed = true }, func(m *message) { m.early = true }} {
		s := newStory(echoed)
		ask(s.messages[0])
		for id := 1; id < 6; id++ {
			s.reply(id, 0, at(2))
		}
		s.holds(t, map[violation]int{})
		if got := s.owed(); got != 5 {
			t.Errorf("%d answers are owed", got)
		}
		s.reply(0, 0, at(3))
		s.holds(t, map[violation]int{wrong: 1, disordered: 1})
	}
}
