package deliver_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/ingest/event"
	"parley/ingest/journal"
)

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var (
	sent    = journal.DeliverySent
	failed  = journal.DeliveryFailed
	unknown = journal.DeliveryUnknown
)

// TestOnceInOrder: whatever a call leaves behind, each text stands there once, in
// the order of its thread.
func TestOnceInOrder(t *testing.T) {
	for name, faults := range map[string][]fault{
		"nothing goes wrong":           nil,
		"not sent, three times":        {notSent, notSent, notSent},
		"refused for a while":          {{failure: adapters.RateLimited, after: 30 * time.Second}},
		"unclear, and lost":            {lost, lost},
		"unclear, and arrived":         {arrived},
		"unclear, and arrives late":    {arriveLate},
		"a panic":                      {{panics: true}},
		"everything, one by one":       {notSent, lost, {failure: adapters.RateLimited}, arriveLate},
		"the answer comes too late":    {{failure: adapters.Unclear, takes: 10 * time.Second}},
		"the time was over, unwritten": {{failure: adapters.NotSent, takes: 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(o *office) {
				o.chat.faults["two"] = faults
				o.reply("t", "one", "two", "three")
				o.send()
				pass(100 * time.Second)
				same(t, "posts", o.chat.texts(), []string{"one", "two", "three"})
				same(t, "states", o.settled(), []journal.DeliveryState{sent, sent, sent})
			})
		})
	}
}

// TestACallEndsAtItsTime: the deadline of a call is what the journal holds.
func TestACallEndsAtItsTime(t *testing.T) {
	inOffice(t, func(o *office) {
		o.reply("t", "one")
		o.send()
		o.settled()
		for _, c := range o.chat.calls {
			if c.Until != c.At+10*time.Second {
				t.Errorf("the call at %v ends at %v", c.At, c.Until)
			}
		}
	})
}

// TestNobodyAsksTooEarly: the platform is asked 5 s after the end of the call,
// since a request may take effect after its caller has gone.
func TestNobodyAsksTooEarly(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["one"] = []fault{lost}
		o.reply("t", "one")
		o.send()
		pass(time.Minute)
		same(t, "questions", len(o.chat.asked), 1)
		if asked := o.chat.asked[0].Sub(epoch); asked < 15*time.Second || asked > 16*time.Second {
			t.Errorf("asked after %v, want send_by (10 s) + 5 s", asked)
		}
	})
}

// TestQuestionsThatFailBackOff, and then the workspace's policy decides.
func TestQuestionsThatFailBackOff(t *testing.T) {
	inOffice(t, func(o *office) {
		o.platform.Unknown = func(string) string { return "hold" }
		o.chat.faults["one"] = []fault{lost}
		for range 1000 {
			o.chat.findings = append(o.chat.findings, errors.New("the platform is down"))
		}
		o.reply("t", "one")
		o.reply("t", "two")
		o.send()
		pass(25 * time.Minute)
		same(t, "states", o.settled(), []journal.DeliveryState{unknown, sent})
		for i := 2; i < len(o.chat.asked); i++ {
			if before, after := o.chat.asked[i-1].Sub(o.chat.asked[i-2]), o.chat.asked[i].Sub(o.chat.asked[i-1]); after < before-time.Second || after > time.Minute+time.Second {
				t.Errorf("after %v the next question waited %v", before, after)
			}
		}
		if n := len(o.chat.asked); n > 40 {
			t.Errorf("the platform was asked %d times", n)
		}
	})
}

// TestAQuestionWaitsAsLongAsThePlatformSays.
func TestAQuestionWaitsAsLongAsThePlatformSays(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["one"] = []fault{arrived}
		o.chat.findings = []error{&adapters.SendError{Failure: adapters.RateLimited, RetryAfter: 2 * time.Minute, Err: errors.New("slow down")}}
		o.reply("t", "one")
		o.send()
		pass(5 * time.Minute)
		same(t, "questions", len(o.chat.asked), 2)
		if wait := o.chat.asked[1].Sub(o.chat.asked[0]); wait < 2*time.Minute {
			t.Errorf("asked again after %v", wait)
		}
	})
}

// TestTheRestOfAFailedReplyIsNotSent; the next reply is.
func TestTheRestOfAFailedReplyIsNotSent(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["two"] = []fault{permanent}
		o.reply("t", "one", "two", "three")
		o.reply("t", "next")
		o.send()
		pass(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one", "next"})
		same(t, "states", o.settled(), []journal.DeliveryState{sent, failed, sent})
		same(t, "calls of what was refused", len(o.chat.times("two")), 1)
	})
}

// TestWhatIsNeverTakenIsGivenUpAfterADay.
func TestWhatIsNeverTakenIsGivenUpAfterADay(t *testing.T) {
	inOffice(t, func(o *office) {
		for range 10 {
			o.chat.faults["one"] = append(o.chat.faults["one"], fault{failure: adapters.RateLimited, after: 5 * time.Hour})
		}
		o.reply("t", "one")
		stop, _ := o.send()
		for range 10 {
			stop()
			pass(3 * time.Hour)
			stop, _ = o.send()
			pass(2 * time.Second)
		}
		same(t, "states", o.settled(), []journal.DeliveryState{failed})
		same(t, "posts", len(o.chat.texts()), 0)
	})
}

// TestWhatNeverEndsClearlyIsGivenUpAfterADay, too: others of the thread wait behind it.
func TestWhatNeverEndsClearlyIsGivenUpAfterADay(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["one"] = []fault{{failure: adapters.RateLimited, after: 24*time.Hour + time.Minute}, lost, lost, lost}
		o.reply("t", "one")
		o.reply("t", "next")
		o.send()
		pass(24*time.Hour + 2*time.Minute)
		same(t, "posts", o.chat.texts(), []string{"next"})
		same(t, "states", o.settled(), []journal.DeliveryState{failed, sent})
	})
}

// TestUnknownEnds: where the platform can't tell, the policy decides.
func TestUnknownEnds(t *testing.T) {
	const mark = "(sent again, since it is not known whether it arrived) "
	for policy, want := range map[string]struct {
		posts  []string
		states []journal.DeliveryState
	}{
		"resend": {[]string{"one", "one", "two"}, []journal.DeliveryState{sent, sent}},
		"marked": {[]string{"one", mark + "one", "two"}, []journal.DeliveryState{sent, sent}},
		"hold":   {[]string{"one", "two"}, []journal.DeliveryState{unknown, sent}},
	} {
		t.Run(policy, func(t *testing.T) {
			inOffice(t, func(o *office) {
				o.platform.Sender = o.chat // which has no Find
				o.platform.Unknown = func(channel string) string {
					same(t, "channel", channel, "C1")
					return policy
				}
				o.chat.faults["one"] = []fault{arrived}
				o.reply("t", "one")
				o.reply("t", "two")
				o.send()
				pass(2 * time.Minute)
				same(t, "posts", o.chat.texts(), want.posts)
				same(t, "states", o.settled(), want.states)
			})
		})
	}
}

// TestAPlatformThatNeverTellsIsNotWrittenToWithoutEnd: its readers may have every
// one of these.
func TestAPlatformThatNeverTellsIsNotWrittenToWithoutEnd(t *testing.T) {
	inOffice(t, func(o *office) {
		o.platform.Sender = o.chat
		o.chat.faults["one"] = []fault{arrived, arrived, arrived, arrived, arrived}
		o.reply("t", "one")
		o.send()
		pass(5 * time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one", "one", "one"})
		same(t, "states", o.settled(), []journal.DeliveryState{unknown})
	})
}

// TestARefusalHoldsUpItsChannelAlone.
func TestARefusalHoldsUpItsChannelAlone(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["one"] = []fault{{failure: adapters.RateLimited, after: 30 * time.Second}}
		o.send()
		o.reply("a", "one")
		o.settled()
		o.reply("b", "same channel")
		o.replyIn("C2", "c", "other channel")
		pass(20 * time.Second)
		same(t, "meanwhile", o.chat.texts(), []string{"other channel"})
		pass(20 * time.Second)
		same(t, "posts in all", len(o.chat.texts()), 3)
		if at := o.chat.times("same channel")[0]; at < 30*time.Second {
			t.Errorf("the channel was used again after %v", at)
		}
	})
}

// TestThePaceOfAChannel: so many posts a second, over all of its threads, and
// room for calls that take unequally long to arrive.
func TestThePaceOfAChannel(t *testing.T) {
	inOffice(t, func(o *office) {
		o.platform.Limits.PostRate = 0.5
		for i := range 4 {
			o.reply(fmt.Sprint("t", i), fmt.Sprint("text", i))
		}
		o.replyIn("C2", "elsewhere", "elsewhere")
		o.send()
		pass(30 * time.Second)
		same(t, "posts", len(o.chat.texts()), 5)
		last := -time.Minute
		for _, c := range o.chat.calls {
			if c.Text == "elsewhere" {
				if c.At > time.Second {
					t.Errorf("another channel had to wait %v", c.At)
				}
				continue
			}
			if c.At-last < 2040*time.Millisecond {
				t.Errorf("%q followed after %v", c.Text, c.At-last)
			}
			last = c.At
		}
	})
}

// TestAWorkspaceThatIsGoneAndComesBack: what waited is sent, and what has no
// clear end is asked for, not sent again.
func TestAWorkspaceThatIsGoneAndComesBack(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["unclear"] = []fault{arrived}
		o.reply("a", "unclear")
		o.send()
		o.settled()
		o.setGone(true)
		o.reply("b", "waiting")
		pass(10 * time.Minute)
		same(t, "while it is gone", o.chat.texts(), []string{"unclear"})
		o.setGone(false)
		pass(2 * time.Minute)
		same(t, "when it is back", o.chat.texts(), []string{"unclear", "waiting"})
		same(t, "states", o.settled(), []journal.DeliveryState{sent, sent})
	})
}

// TestARestartInEachState: what a dead process has left pending is sent, what it
// was sending is asked for first, what it had sent stays.
func TestARestartInEachState(t *testing.T) {
	for name, left := range map[string][]fault{
		"pending":                      {notSent},
		"sending, and it had arrived":  {arrived},
		"sending, and it was lost":     {lost},
		"sending, and it arrives late": {arriveLate},
		"sent":                         nil,
	} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(o *office) {
				o.chat.faults["one"] = left
				o.reply("t", "one", "two")
				stop, _ := o.send()
				o.settled()
				stop()
				o.must(o.journal.Close())
				o.open()
				o.send()
				pass(2 * time.Minute)
				same(t, "posts", o.chat.texts(), []string{"one", "two"})
			})
		})
	}
}

// TestStoppingEndsTheCallUnderWay, whose end is then asked for.
func TestStoppingEndsTheCallUnderWay(t *testing.T) {
	inOffice(t, func(o *office) {
		o.chat.faults["one"] = []fault{{failure: adapters.Unclear, takes: 5 * time.Second}}
		o.reply("t", "one")
		stop, abandon := o.send()
		o.settled()
		abandon()
		stop()
		o.send()
		pass(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one"})
	})
}

// TestFormat: a reply goes where its thread is; one that is read from the journal
// needs no post.
func TestFormat(t *testing.T) {
	c := &chat{}
	platform := deliver.Platform{Sender: c}
	box := deliver.New(deliver.Parts{Platform: func(id string) (deliver.Platform, bool) { return platform, id == "acme" }})
	format := func(workspace string, thread event.ThreadKey, text string, files ...journal.File) ([]journal.Post, error) {
		showing, err := box.Show(t.Context(), nil, &journal.Run{Workspace: workspace, ThreadKey: thread}, nil)
		if err != nil {
			return nil, err
		}
		showing.Stop()
		return showing.Format(text, files), nil
	}
	posts, err := format("acme", "slack:acme:C1:1", "hello", journal.File{Name: "plot.png"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "posts", posts, []journal.Post{
		{Channel: "C1", Root: "slack:acme:C1:1", Text: "hello"},
		{Channel: "C1", Root: "slack:acme:C1:1", File: &journal.File{Name: "plot.png"}},
	})
	if posts, err := format("acme", "t", ""); err != nil || len(posts) != 0 {
		t.Errorf("of no text: %v, %v", posts, err)
	}
	if _, err := format("acme", "", "hello"); err == nil {
		t.Error("a thread that has no address was given one")
	}
	if _, err := format("other", "t", "hello"); err == nil {
		t.Error("a workspace that is not configured has a way out")
	}
	platform.Limits.FileOver = 4
	posts, err = format("acme", "t", "hello")
	same(t, "error", err, nil)
	same(t, "a long reply", posts, []journal.Post{
		{Channel: "C1", Root: "t", Text: "hello"},
		{Channel: "C1", Root: "t", File: &journal.File{Name: "reply.md", MimeType: "text/markdown", Size: 5, Text: "hello"}},
	})
	platform.Sender = nil
	if posts, err := format("acme", "t", "hello"); err != nil || posts != nil {
		t.Errorf("of a workspace that is read: %v, %v", posts, err)
	}
}
