package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/slacktest"
)

// newConversation returns the n-th conversation of a run with the default channels.
func newConversation(n int) *Conversation { return NewRoom(n, DefaultChannels) }

// story is a made-up ledger with posts. Its clock counts seconds.
type story struct {
	*Ledger
	posts []slacktest.Post
}

func at(seconds float64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// newStory returns a story with a thread in a channel and a direct message. Each has
// three messages, which were acknowledged after one second.
func newStory(expect func(*Message, int) []string) *story {
	s := &story{Ledger: New()}
	s.Expect = expect
	room, direct := newConversation(0), newConversation(3)
	for range 3 {
		for _, c := range []*Conversation{room, direct} {
			s.Say(c).Revisions[0] = Span{at(0), at(1)}
		}
	}
	return s
}

// reply adds the posts of the reply to a message's revision.
func (s *story) reply(id, revision int, when time.Time) {
	m := s.Messages[id]
	for _, text := range s.Expect(m, revision) {
		n := int64(len(s.posts) + 1)
		s.posts = append(s.posts, slacktest.Post{N: n, TS: fmt.Sprintf("9.%06d", n), Channel: m.Place.Channel, ThreadTS: m.Place.Root, Text: text, At: when})
	}
}

func (s *story) edit(id int, acked time.Time) {
	s.Messages[id].Revisions = append(s.Messages[id].Revisions, Span{acked, acked})
}

func (s *story) delete(id int, acked time.Time) { s.Messages[id].Deleted = &Span{acked, acked} }

// wantViolations checks that the verdict has exactly these violations.
func (s *story) wantViolations(t *testing.T, want map[violation]int) {
	t.Helper()
	verdict := s.Check(s.posts)
	if diff := cmp.Diff(want, verdict.counts); diff != "" {
		t.Errorf("violations (-want +got):\n%s%v", diff, verdict)
	}
}

func echoStory() *story {
	s := newStory(echo)
	for id := range s.Messages {
		s.reply(id, 0, at(2))
	}
	return s
}

func TestVerdictOfACleanStory(t *testing.T) {
	s := echoStory()
	s.wantViolations(t, map[violation]int{})
	if got, want := s.Check(s.posts).String(),
		"6 messages (0 deleted later), 6 replies (0 to an edit) in 6 posts, 0 lost, 0 doubled, 0 out of order, 0 misrouted, 0 wrong\n"; got != want {
		t.Errorf("verdict %q, want %q", got, want)
	}
}

func TestViolations(t *testing.T) {
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
		"a revision never written": {func(s *story) { s.posts[1].Text = Mark(1, 1, 1) }, map[violation]int{wrong: 1}},
		"an apology": {func(s *story) { s.posts[1].Text = "Sorry, something went wrong." },
			map[violation]int{wrong: 1, lost: 1}},
		"a reply to no message": {func(s *story) { s.posts = append(s.posts, slacktest.Post{Text: Mark(99, 0, 1)}) },
			map[violation]int{wrong: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := echoStory()
			c.harm(s)
			s.wantViolations(t, c.want)
		})
	}
}

func TestOrderCountsOnlyWithinAThread(t *testing.T) {
	s := echoStory()
	s.posts[2], s.posts[3] = s.posts[3], s.posts[2]
	s.wantViolations(t, map[violation]int{})
}

func TestUnacknowledgedMessageNeedsNoReply(t *testing.T) {
	s := echoStory()
	s.Messages[5].Revisions[0].Acked = time.Time{}
	s.wantViolations(t, map[violation]int{})
	s.posts = s.posts[:5]
	s.wantViolations(t, map[violation]int{})
}

// modelReply returns the reply of a model whose answers are three posts.
func modelReply(m *Message, revision int) []string {
	return []string{Mark(m.ID, revision, 1), Mark(m.ID, revision, 2), Mark(m.ID, revision, 3)}
}

// modelStory returns a story in which each message reaches the model at 10 s. The model
// answers at 11 s, and the reply is posted at 12 s.
func modelStory(prepare func(s *story)) *story {
	s := newStory(modelReply)
	s.Model = true
	prepare(s)
	for id := range s.Messages {
		s.AddRequest(&Request{ID: id, Revision: 0, Arrived: at(10), Ended: at(11)})
		s.reply(id, 0, at(12))
	}
	return s
}

func TestIncompleteReplyIsLost(t *testing.T) {
	s := modelStory(func(*story) {})
	s.wantViolations(t, map[violation]int{})
	s.posts = s.posts[:len(s.posts)-1]
	s.wantViolations(t, map[violation]int{lost: 1})
}

func TestPartsOutOfOrder(t *testing.T) {
	s := modelStory(func(*story) {})
	s.posts[0], s.posts[1] = s.posts[1], s.posts[0]
	s.wantViolations(t, map[violation]int{disordered: 1})
}

func TestModelGetsAcknowledgedEdits(t *testing.T) {
	for acked, want := range map[float64]map[violation]int{
		9:    {wrong: 1},
		9.9:  {}, // durable, but perhaps not recorded yet
		10.5: {},
		20:   {},
	} {
		s := modelStory(func(s *story) { s.edit(4, at(acked)) })
		s.wantViolations(t, want)
	}
}

func TestReplyMustBeTheModelsLastAnswer(t *testing.T) {
	s := modelStory(func(s *story) { s.edit(4, at(10.5)) })
	s.AddRequest(&Request{ID: 4, Revision: 1, Arrived: at(11.2)}) // a kill interrupted this answer
	s.wantViolations(t, map[violation]int{})
	s.AddRequest(&Request{ID: 4, Revision: 1, Arrived: at(11.5), Ended: at(11.9)})
	s.wantViolations(t, map[violation]int{wrong: 3}) // each of its posts is of revision 0
}

func TestReplyNeedsAnAnswerOfTheModel(t *testing.T) {
	s := modelStory(func(*story) {})
	s.Ledger.Requests = s.Ledger.Requests[1:]
	s.wantViolations(t, map[violation]int{wrong: 1})
}

func TestDeletedMessageMustGetNoReply(t *testing.T) {
	for acked, want := range map[float64]map[violation]int{
		9:    {wrong: 2}, // the request and the reply
		10.5: {wrong: 1}, // the reply
		10.9: {},         // the reply was perhaps committed before
		20:   {},
	} {
		s := modelStory(func(s *story) { s.delete(4, at(acked)) })
		s.wantViolations(t, want)
	}
}

func TestDeletedMessageNeedsNoReplyButNoPartOfOne(t *testing.T) {
	s := modelStory(func(s *story) { s.delete(5, at(20)) })
	s.posts = s.posts[:len(s.posts)-1]
	s.wantViolations(t, map[violation]int{lost: 1})
	s.posts = s.posts[:len(s.posts)-2]
	s.wantViolations(t, map[violation]int{})
}

func TestVerdictDescribesAFewViolations(t *testing.T) {
	s := echoStory()
	for range 2 * maxDetails {
		s.reply(0, 0, at(3))
	}
	verdict := s.Check(s.posts)
	if n := verdict.counts[wrong] + verdict.counts[doubled]; n != 2*maxDetails || len(verdict.Details) != maxDetails {
		t.Errorf("%v, %d described", verdict.counts, len(verdict.Details))
	}
}

func TestSilentMessageMustGetNoReply(t *testing.T) {
	s := newStory(echo)
	s.Messages[0].Silent = true
	for id := 1; id < 6; id++ {
		s.reply(id, 0, at(2))
	}
	s.wantViolations(t, map[violation]int{})
	if got := s.Due(); got != 5 {
		t.Errorf("%d messages need a reply, want 5", got)
	}
	s.reply(0, 0, at(3))
	s.wantViolations(t, map[violation]int{wrong: 1, disordered: 1})
}

func TestReadableMessageNeedsAReply(t *testing.T) {
	s := echoStory()
	s.Messages[5].Revisions[0].Acked, s.Messages[5].OnSlack = time.Time{}, true
	s.posts = s.posts[:5]
	s.wantViolations(t, map[violation]int{lost: 1})
}

func TestWaitsEndWithTheFirstPost(t *testing.T) {
	s := newStory(echo)
	s.reply(1, 0, at(2))
	s.reply(2, 0, at(3))
	s.reply(2, 0, at(5))
	want := map[int]time.Duration{1: 2 * time.Second, 2: 3 * time.Second}
	if diff := cmp.Diff(want, s.Waits(s.posts)); diff != "" {
		t.Error(diff)
	}
}

func TestReadMark(t *testing.T) {
	id, revision, part, ok := ReadMark("[Human 1 (<@U1>)]: <@U0BOT> " + Mark(17, 2, 3) + " words m1 r1 p1")
	if id != 17 || revision != 2 || part != 3 || !ok {
		t.Error(id, revision, part, ok)
	}
	for _, text := range []string{"", "m1 r2", "Sorry, something went wrong.", "am1 r2 p3", Mark(1, 2, 3) + "4x"} {
		if _, _, _, ok := ReadMark(text); ok {
			t.Errorf("a mark in %q", text)
		}
	}
}

// TestAViolationNamesItsDaemon and the suspensions before the request.
func TestAViolationNamesItsDaemon(t *testing.T) {
	s := modelStory(func(s *story) { s.edit(4, at(1)) })
	s.Suspended = func(daemon string, arrived time.Time) string {
		return fmt.Sprintf(", suspended %v before it", arrived.Sub(at(2)))
	}
	for _, r := range s.Requests {
		r.Daemon = "parley-1"
	}
	details := strings.Join(s.Check(s.posts).Details, "\n")
	if !strings.Contains(details, "from parley-1, suspended 8s before it") {
		t.Error(details)
	}
}
