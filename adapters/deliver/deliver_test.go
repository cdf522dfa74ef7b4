package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/assembly/turn"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
	"parley/ingest/work"
)

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var (
	sent    = outbox.Sent
	failed  = outbox.Failed
	unknown = outbox.Unknown
)

// TestOnceInOrder proves that, after any failure of a call, each text is posted once, in
// the order of its thread.
func TestOnceInOrder(t *testing.T) {
	for name, faults := range map[string][]fault{
		"no fault":                   nil,
		"not sent, three times":      {notSent, notSent, notSent},
		"refused for a while":        {{failure: adapters.RateLimited, after: 30 * time.Second}},
		"unclear, and lost":          {lost, lost},
		"unclear, and arrived":       {arrived},
		"unclear, and arrives late":  {arriveLate},
		"a panic":                    {{panics: true}},
		"each fault in turn":         {notSent, lost, {failure: adapters.RateLimited}, arriveLate},
		"the answer comes too late":  {{failure: adapters.Unclear, takes: 10 * time.Second}},
		"timed out before the write": {{failure: adapters.NotSent, takes: 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			withOutbox(t, func(o *fixture) {
				o.chat.faults["two"] = faults
				o.reply("t", "one", "two", "three")
				o.send()
				advance(100 * time.Second)
				same(t, "posts", o.chat.texts(), []string{"one", "two", "three"})
				same(t, "states", o.settled(), []outbox.State{sent, sent, sent})
			})
		})
	}
}

// TestACallEndsAtItsDeadline proves that the deadline of a call is the time in the
// journal.
func TestACallEndsAtItsDeadline(t *testing.T) {
	withOutbox(t, func(o *fixture) {
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

// TestAQueryWaits proves that the outbox asks the platform 5 s after the end of the call,
// because a request may take effect after its caller has given up.
func TestAQueryWaits(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["one"] = []fault{lost}
		o.reply("t", "one")
		o.send()
		advance(time.Minute)
		same(t, "questions", len(o.chat.asked), 1)
		if asked := o.chat.asked[0].Sub(epoch); asked < 15*time.Second || asked > 16*time.Second {
			t.Errorf("asked after %v, want send_by (10 s) + 5 s", asked)
		}
	})
}

// TestFailedQueriesBackOff proves that the waits grow until the workspace's policy
// decides.
func TestFailedQueriesBackOff(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.platform.Unknown = func(*outbox.Delivery) string { return "hold" }
		o.chat.faults["one"] = []fault{lost}
		for range 1000 {
			o.chat.findings = append(o.chat.findings, errors.New("the platform is down"))
		}
		o.reply("t", "one")
		o.reply("t", "two")
		o.send()
		advance(25 * time.Minute)
		same(t, "states", o.settled(), []outbox.State{unknown, sent})
		for i := 2; i < len(o.chat.asked); i++ {
			if before, after := o.chat.asked[i-1].Sub(o.chat.asked[i-2]), o.chat.asked[i].Sub(o.chat.asked[i-1]); after < before-time.Second || after > time.Minute+time.Second {
				t.Errorf("the query after %v waited %v", before, after)
			}
		}
		if n := len(o.chat.asked); n > 40 {
			t.Errorf("%d queries", n)
		}
	})
}

// TestAQueryObeysARateLimit proves that it waits as long as the platform asks for.
func TestAQueryObeysARateLimit(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["one"] = []fault{arrived}
		o.chat.findings = []error{&adapters.SendError{Failure: adapters.RateLimited, RetryAfter: 2 * time.Minute, Err: errors.New("slow down")}}
		o.reply("t", "one")
		o.send()
		advance(5 * time.Minute)
		same(t, "questions", len(o.chat.asked), 2)
		if wait := o.chat.asked[1].Sub(o.chat.asked[0]); wait < 2*time.Minute {
			t.Errorf("the next query came after %v", wait)
		}
	})
}

// TestALongRateLimitIsLoggedOnce proves that the log has one entry until the limit ends.
func TestALongRateLimitIsLoggedOnce(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		var log bytes.Buffer
		o.log = slog.NewTextHandler(&log, nil)
		limits := func(after time.Duration) []fault {
			return []fault{{failure: adapters.RateLimited, scope: adapters.ScopeMethod, after: after}}
		}
		o.chat.faults["one"], o.chat.faults["two"] = limits(30*time.Second), limits(29*time.Second)
		o.chat.faults["three"], o.chat.faults["four"] = limits(2*time.Second), limits(30*time.Second)
		o.send()
		for i, want := range []int{1, 1, 1, 2} { // the first two rest together
			o.reply(fmt.Sprint(i), []string{"one", "two", "three", "four"}[i])
			o.settled()
			same(t, "lines", strings.Count(log.String(), "\n"), want)
			if i > 0 {
				advance(time.Minute)
			}
		}
	})
}

// TestTheRestOfAFailedReplyIsNotSent proves that people are told so where the rest would be, and that the next reply is sent.
func TestTheRestOfAFailedReplyIsNotSent(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["two"] = []fault{permanent}
		o.reply("t", "one", "two", "three")
		o.reply("t", "next")
		o.send()
		advance(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one", restRefused, "next"})
		same(t, "states", o.settled(), []outbox.State{sent, failed, sent, sent})
		same(t, "calls of the refused text", len(o.chat.times("two")), 1)
	})
}

// TestARateLimitedDeliveryEndsAfterADay proves that a delivery that is always rate
// limited is given up.
func TestARateLimitedDeliveryEndsAfterADay(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		for range 10 {
			o.chat.faults["one"] = append(o.chat.faults["one"], fault{failure: adapters.RateLimited, after: 5 * time.Hour})
		}
		o.reply("t", "one")
		stop, _ := o.send()
		for range 10 {
			stop()
			advance(3 * time.Hour)
			stop, _ = o.send()
			advance(2 * time.Second)
		}
		same(t, "states", o.settled(), []outbox.State{failed})
		same(t, "posts", len(o.chat.texts()), 0)
	})
}

// TestAnUnclearDeliveryEndsAfterADay proves that a delivery whose outcome is never clear
// is given up, because later deliveries of the thread wait for it.
func TestAnUnclearDeliveryEndsAfterADay(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["one"] = []fault{lost, lost, lost}
		o.reply("t", "one")
		o.reply("t", "next")
		advance(24*time.Hour + time.Minute)
		o.send()
		advance(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"next"})
		same(t, "states", o.settled(), []outbox.State{failed, sent})
	})
}

// TestUnknownOutcomes proves that the policy decides if the platform cannot report the
// outcome.
func TestUnknownOutcomes(t *testing.T) {
	const mark = "(sent again, since it is not known whether it arrived) "
	for name, want := range map[string]struct {
		policy string
		most   int // characters of a post; 0 for no bound
		posts  []string
		states []outbox.State
	}{
		"resend":  {"resend", 0, []string{"one", "one", "two"}, []outbox.State{sent, sent}},
		"marked":  {"marked", 0, []string{"one", mark + "one", "two"}, []outbox.State{sent, sent}},
		"room":    {"marked", len(mark) + 3, []string{"one", mark + "one", "two"}, []outbox.State{sent, sent}},
		"no room": {"marked", len(mark) + 2, []string{"one", "one", "two"}, []outbox.State{sent, sent}},
		"hold":    {"hold", 0, []string{"one", "two"}, []outbox.State{unknown, sent}},
	} {
		t.Run(name, func(t *testing.T) {
			withOutbox(t, func(o *fixture) {
				o.platform.Sender = o.chat // the chat has no Find
				o.platform.Limits.PostText = want.most
				o.platform.Unknown = func(d *outbox.Delivery) string {
					same(t, "channel", d.Channel, "C1")
					return want.policy
				}
				o.chat.faults["one"] = []fault{arrived}
				o.reply("t", "one")
				o.reply("t", "two")
				o.send()
				advance(2 * time.Minute)
				same(t, "posts", o.chat.texts(), want.posts)
				same(t, "states", o.settled(), want.states)
			})
		})
	}
}

// TestARefusedQuery proves that the policy decides without a wait if the platform refuses for good
// to report the outcome.
func TestARefusedQuery(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.platform.Unknown = func(*outbox.Delivery) string { return "hold" }
		o.chat.findings = []error{&adapters.SendError{Failure: adapters.Permanent, Err: errors.New("a scope is missing")}}
		o.chat.faults["one"] = []fault{arrived}
		o.reply("t", "one")
		o.reply("t", "two")
		o.send()
		advance(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one", "two"})
		same(t, "states", o.settled(), []outbox.State{unknown, sent})
	})
}

// TestPostsThatLookAlike checks posts with the same text on a platform that has forgotten their
// keys: a post that another delivery has is not the wanted one.
func TestPostsThatLookAlike(t *testing.T) {
	for name, unclear := range map[string]fault{"arrived": arrived, "lost": lost} {
		t.Run(name, func(t *testing.T) {
			withOutbox(t, func(o *fixture) {
				o.platform.Sender = forgetful{o.chat}
				o.reply("t", "Done.")
				o.send()
				o.settled()
				o.chat.faults["Done."] = []fault{unclear}
				o.reply("t", "Done.")
				advance(2 * time.Minute)
				same(t, "posts", o.chat.texts(), []string{"Done.", "Done."})
				same(t, "states", o.settled(), []outbox.State{sent, sent})
			})
		})
	}
}

// TestResendsAreBounded matters because readers may see the text of every call.
func TestResendsAreBounded(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.platform.Sender = o.chat
		o.chat.faults["one"] = []fault{arrived, arrived, arrived, arrived, arrived}
		o.reply("t", "one")
		o.send()
		advance(5 * time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one", "one", "one"})
		same(t, "states", o.settled(), []outbox.State{unknown})
	})
}

// TestARateLimitDelaysItsScopeAlone also proves that the posts in the scope wait as long as
// the platform asks for. The adapter refuses the calls of a method by itself.
func TestARateLimitDelaysItsScopeAlone(t *testing.T) {
	for scope, meanwhile := range map[adapters.Scope][]string{
		adapters.ScopeChannel:   {"other channel"},
		adapters.ScopeMethod:    {"same channel", "other channel"},
		adapters.ScopeWorkspace: nil,
	} {
		t.Run(fmt.Sprint(scope), func(t *testing.T) {
			withOutbox(t, func(o *fixture) {
				o.chat.faults["one"] = []fault{{failure: adapters.RateLimited, scope: scope, after: 30 * time.Second}}
				o.send()
				o.reply("a", "one")
				o.settled()
				o.reply("b", "same channel")
				o.settled()
				o.replyIn("C2", "c", "other channel")
				advance(20 * time.Second)
				same(t, "meanwhile", o.chat.texts(), meanwhile)
				advance(20 * time.Second)
				same(t, "all posts", len(o.chat.texts()), 3)
				for _, text := range []string{"same channel", "other channel"} {
					if at := o.chat.times(text)[0]; !slices.Contains(meanwhile, text) && at < 30*time.Second {
						t.Errorf("%s: a call after %v", text, at)
					}
				}
			})
		})
	}
}

// TestThePaceOfAChannel proves the rate of the posts of all its threads, with a margin.
func TestThePaceOfAChannel(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.platform.Limits.PostRate = 0.5
		for i := range 4 {
			o.reply(fmt.Sprint("t", i), fmt.Sprint("text", i))
		}
		o.replyIn("C2", "elsewhere", "elsewhere")
		o.send()
		advance(30 * time.Second)
		same(t, "posts", len(o.chat.texts()), 5)
		last := -time.Minute
		for _, c := range o.chat.calls {
			if c.Text == "elsewhere" {
				if c.At > time.Second {
					t.Errorf("another channel waited %v", c.At)
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

// TestAWorkspaceReturns proves that pending deliveries of a workspace that was not
// configured are sent when it is configured again. The outbox asks the platform about
// unclear ones before it sends them again.
func TestAWorkspaceReturns(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["unclear"] = []fault{arrived}
		o.reply("a", "unclear")
		o.send()
		o.settled()
		o.setGone(true)
		o.reply("b", "waiting")
		advance(10 * time.Minute)
		same(t, "without the workspace", o.chat.texts(), []string{"unclear"})
		o.setGone(false)
		advance(2 * time.Minute)
		same(t, "with the workspace again", o.chat.texts(), []string{"unclear", "waiting"})
		same(t, "states", o.settled(), []outbox.State{sent, sent})
	})
}

// TestARestartInEachState proves that the next process sends pending deliveries, asks
// about sending ones first, and leaves sent ones.
func TestARestartInEachState(t *testing.T) {
	for name, left := range map[string][]fault{
		"pending":               {notSent},
		"sending, arrived":      {arrived},
		"sending, lost":         {lost},
		"sending, arrives late": {arriveLate},
		"sent":                  nil,
	} {
		t.Run(name, func(t *testing.T) {
			withOutbox(t, func(o *fixture) {
				o.chat.faults["one"] = left
				o.reply("t", "one", "two")
				stop, _ := o.send()
				o.settled()
				stop()
				o.close()
				o.open()
				o.send()
				advance(2 * time.Minute)
				same(t, "posts", o.chat.texts(), []string{"one", "two"})
			})
		})
	}
}

// TestAStopEndsTheCall proves that the outbox asks the platform about it later.
func TestAStopEndsTheCall(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		o.chat.faults["one"] = []fault{{failure: adapters.Unclear, takes: 5 * time.Second}}
		o.reply("t", "one")
		stop, abandon := o.send()
		o.settled()
		abandon()
		stop()
		o.send()
		advance(time.Minute)
		same(t, "posts", o.chat.texts(), []string{"one"})
	})
}

// TestAPostWaitsForTheStore proves that the wait is bounded, and that the outbox then
// asks the platform.
func TestAPostWaitsForTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		down  time.Duration
		asked bool
	}{"half a minute": {30 * time.Second, false}, "an hour": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			withOutbox(t, func(o *fixture) {
				o.chat.posting = func() {
					o.engine.down.Store(true)
					time.AfterFunc(c.down, func() { o.engine.down.Store(false) })
				}
				o.reply("t", "one")
				o.send()
				advance(c.down + 10*time.Second)
				same(t, "posts", o.chat.texts(), []string{"one"})
				same(t, "queries", len(o.chat.asked) > 0, c.asked)
				same(t, "states", o.settled(), []outbox.State{sent})
			})
		})
	}
}

// TestAStalledNodeKeepsOrder stalls one node between the commit of a reply and its call.
// Another node takes over, posts, and ends before it can record that.
func TestAStalledNodeKeepsOrder(t *testing.T) {
	withOutbox(t, func(o *fixture) {
		node := func(name string) (*journal.Journal, *work.Scheduler) {
			return journal.New(o.engine, journal.Options{Node: name, Lease: 8 * time.Second}),
				work.New(o.engine, work.Options{Node: name, Lease: 8 * time.Second, Log: slog.New(slog.DiscardHandler)})
		}
		a, schedulerA := node("A")
		b, schedulerB := node("B")
		box := o.box(a, schedulerA)
		question := o.accept(a, "C1", "t", false)

		ctx, cancel := context.WithCancel(o.Context())
		var working sync.WaitGroup
		serve := func(s *work.Scheduler, kind work.Kind, do func(c *work.Claim) error) {
			working.Go(func() {
				_ = s.Serve(ctx, work.Queue{Kind: kind, Slots: 1, Do: func(_ context.Context, c *work.Claim) error { return do(c) }})
			})
			synctest.Wait()
		}
		goesOn, answered := make(chan struct{}), false
		serve(schedulerA, work.Intake, func(c *work.Claim) error { // no scheduler runs, so A's lease ends
			if answered {
				return nil
			}
			answered = true
			ended, err := o.answer(a, &c.Claim, "C1", &outbox.Send{Timeout: 10 * time.Second}, "hello")
			if err == nil && ended.Begun == nil {
				err = errors.New("the first delivery is not marked as sending")
			}
			if err != nil {
				t.Error(err)
			}
			box.Posted(c, ended.Begun)
			<-goesOn
			return nil
		})
		schedulerA.Wake(work.Intake, "", question.Thread)

		advance(16 * time.Second)
		serve(schedulerB, work.Deliveries, func(c *work.Claim) error {
			d, err := b.Outbox.NextDelivery(ctx, c.Thread)
			if err != nil {
				return err
			}
			if d.State == outbox.Sending && len(o.chat.texts()) == 0 {
				if err = b.Outbox.Resend(ctx, d, time.Now(), "the post had not arrived"); err == nil {
					_, err = b.Outbox.BeginSend(ctx, &c.Claim, d, outbox.Send{Timeout: 10 * time.Second})
				}
				o.chat.post(adapters.Post{Key: d.Key, Text: d.Post.Text}) // the post arrives, and B ends
			}
			return err
		})
		schedulerB.Wake(work.Deliveries, "", question.Thread)
		advance(time.Second)
		same(t, "posts by B", o.chat.texts(), []string{"hello"})

		working.Go(func() { _ = box.Run(ctx, ctx) })
		synctest.Wait()
		schedulerA.Wake(work.Deliveries, "", question.Thread)
		advance(9 * time.Second) // B's lease ends
		close(goesOn)
		advance(2 * time.Minute)
		same(t, "posts", o.chat.texts(), []string{"hello"})
		cancel()
		working.Wait()
	})
}

// buttoned is a chat whose posts can have two buttons with labels of three characters, below a
// text of six.
type buttoned struct{ *chat }

func (buttoned) ButtonLimits() adapters.ButtonLimits {
	return adapters.ButtonLimits{Buttons: 2, Label: 3, Text: 6}
}

// TestOptions proves that a question's options are buttons if the platform can show them, and
// else lines of the text.
func TestOptions(t *testing.T) {
	yes, no := stream.Option{ID: "y", Label: "Yes"}, stream.Option{ID: "n", Label: "No"}
	buttons := []outbox.PostButton{{ID: runs.Button("run-1", 0), Label: "Yes"}, {ID: runs.Button("run-1", 1), Label: "No"}}
	for name, c := range map[string]struct {
		sender adapters.Sender
		text   string
		ask    []stream.Option
		want   []outbox.Post
	}{
		"no buttons":      {&chat{}, "May I?", []stream.Option{yes, no}, []outbox.Post{{Text: "May I?\n\n1. Yes\n2. No"}}},
		"buttons":         {buttoned{&chat{}}, "May I?", []stream.Option{yes, no}, []outbox.Post{{Text: "May I?", Buttons: buttons}}},
		"a long question": {buttoned{&chat{}}, "May I now?", []stream.Option{yes, no}, []outbox.Post{{Text: "May I now?"}, {Text: "Please choose:", Buttons: buttons}}},
		"a long label":    {buttoned{&chat{}}, "May I?", []stream.Option{{ID: "y", Label: "Yess"}}, []outbox.Post{{Text: "May I?\n\n1. Yess"}}},
		"many options":    {buttoned{&chat{}}, "May I?", []stream.Option{yes, no, yes}, []outbox.Post{{Text: "May I?\n\n1. Yes\n2. No\n3. Yes"}}},
		"no options":      {buttoned{&chat{}}, "May I?", nil, []outbox.Post{{Text: "May I?"}}},
	} {
		box := deliver.New(deliver.Parts{Work: work.New(nil, work.Options{}), Platform: func(string) (deliver.Platform, bool) { return deliver.Platform{Sender: c.sender}, true }})
		preview, err := box.Show(t.Context(), nil, &runs.Run{ID: "run-1", Place: threads.Place{Workspace: "acme", ThreadKey: "t"}}, turn.Mentions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		preview.Stop()
		posts, _ := preview.Format(c.text, stream.Ask{Options: c.ask}, nil, nil)
		for i := range c.want {
			c.want[i].Channel, c.want[i].Place = "C1", "t"
		}
		same(t, name, posts, c.want)
	}
}

// carded is a chat that shows a card in two posts.
type carded struct{ *chat }

func (carded) FormatCard(v card.View) []adapters.CardPost {
	return []adapters.CardPost{{Text: "first", Card: v}, {Text: "second", Card: v}}
}

// TestCards proves that a card comes behind the text and its buttons, before the files, and that it is text on a platform without cards.
func TestCards(t *testing.T) {
	shown := card.View{Status: "info", Parts: []card.Part{{Kind: card.KindText, Text: "Room *7*"}}}
	file := outbox.File{Name: "a.txt"}
	for name, c := range map[string]struct {
		sender adapters.Sender
		want   []outbox.Post
	}{
		"cards":    {carded{&chat{}}, []outbox.Post{{Text: "Here."}, {Text: "first", Card: &shown}, {Text: "second", Card: &shown}, {File: &file}}},
		"no cards": {&chat{}, []outbox.Post{{Text: "Here."}, {Text: `Room \*7\*`}, {File: &file}}},
	} {
		box := deliver.New(deliver.Parts{Work: work.New(nil, work.Options{}), Platform: func(string) (deliver.Platform, bool) { return deliver.Platform{Sender: c.sender}, true }})
		preview, err := box.Show(t.Context(), nil, &runs.Run{ID: "run-1", Place: threads.Place{Workspace: "acme", ThreadKey: "t"}}, turn.Mentions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		preview.Stop()
		posts, _ := preview.Format("Here.", stream.Ask{}, &shown, []outbox.File{file})
		for i := range c.want {
			c.want[i].Channel, c.want[i].Place = "C1", "t"
		}
		same(t, name, posts, c.want)
	}
}

// TestNamesOfFiles proves that a file's name breaks no form, leads to no other folder, and shows its true end.
func TestNamesOfFiles(t *testing.T) {
	box := deliver.New(deliver.Parts{Work: work.New(nil, work.Options{}), Platform: func(string) (deliver.Platform, bool) { return deliver.Platform{Sender: &chat{}}, true }})
	preview, err := box.Show(t.Context(), nil, &runs.Run{Place: threads.Place{Workspace: "acme", ThreadKey: "t"}}, turn.Mentions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	preview.Stop()
	for name, want := range map[string]string{
		"Q3 \"ü\".png": "Q3 \"ü\".png", "a\r\nb\x00.txt": "a__b_.txt", "../../.zshrc": ".._.._.zshrc", `c:\x`: "c:_x", "..": "file", ".": "file", "a\xff": "a_", "invoice\u202egnp.exe": "invoice_gnp.exe", "\u2067a\u2069\u200f\u2028.md": "_a___.md",
		strings.Repeat("я", 200) + ".md": strings.Repeat("я", 75) + ".md", strings.Repeat("a", 90) + ". " + strings.Repeat("b", 90): strings.Repeat("a", 90) + ". " + strings.Repeat("b", 58),
	} {
		posts, _ := preview.Format("", stream.Ask{}, nil, []outbox.File{{Name: name}})
		if len(posts) != 1 || posts[0].File.Name != want {
			t.Errorf("%q: %+v, want %q", name, posts, want)
		}
	}
}

// TestFormat proves that a reply goes to its thread's destination. A reply that clients
// read from the journal needs no post.
func TestFormat(t *testing.T) {
	c := &chat{}
	platform := deliver.Platform{Sender: c}
	box := deliver.New(deliver.Parts{Work: work.New(nil, work.Options{}), Platform: func(id string) (deliver.Platform, bool) { return platform, id == "acme" }})
	format := func(workspace string, thread event.ThreadKey, text string, files ...outbox.File) ([]outbox.Post, error) {
		preview, err := box.Show(t.Context(), nil, &runs.Run{Place: threads.Place{Workspace: workspace, ThreadKey: thread}}, turn.Mentions{}, nil)
		if err != nil {
			return nil, err
		}
		preview.Stop()
		posts, _ := preview.Format(text, stream.Ask{}, nil, files)
		return posts, nil
	}
	posts, err := format("acme", "slack:acme:C1:1", "hello", outbox.File{Name: "plot.png"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "posts", posts, []outbox.Post{
		{Channel: "C1", Place: "slack:acme:C1:1", Text: "hello"},
		{Channel: "C1", Place: "slack:acme:C1:1", File: &outbox.File{Name: "plot.png"}},
	})
	if posts, err := format("acme", "t", ""); err != nil || len(posts) != 0 {
		t.Errorf("posts of an empty text: %v, %v", posts, err)
	}
	if _, err := format("acme", "", "hello"); err == nil {
		t.Error("a thread without an address has posts")
	}
	if _, err := format("other", "t", "hello"); err == nil {
		t.Error("an unconfigured workspace has posts")
	}
	platform.Limits.FileOver = 4
	posts, err = format("acme", "t", "hello")
	same(t, "error", err, nil)
	same(t, "a long reply", posts, []outbox.Post{
		{Channel: "C1", Place: "t", Text: "hello"},
		{Channel: "C1", Place: "t", File: &outbox.File{Name: "reply.md", MimeType: "text/markdown", Size: 5, Text: "hello"}},
	})
	long := strings.Repeat("я", 100_000)
	posts, err = format("acme", "t", long)
	same(t, "error", err, nil)
	if len(c.formatted) > 50_000 || len(posts) != 2 || posts[1].File.Text != long {
		t.Errorf("a reply that becomes a file: %d of %d bytes were formatted, %d posts", len(c.formatted), len(long), len(posts))
	}
	if posts, err = format("acme", "t", strings.Repeat(" ", 30_000)+"hello"); err != nil || len(posts) == 0 || posts[len(posts)-1].File == nil {
		t.Errorf("a reply that begins with white space: %+v, %v", posts, err)
	}
	platform.Limits.FileOver = 0
	if _, err = format("acme", "t", long); err != nil || c.formatted != long {
		t.Errorf("a reply without a limit: %v, %d bytes were formatted", err, len(c.formatted))
	}
	platform.Sender = nil
	if posts, err := format("acme", "t", "hello"); err != nil || posts != nil {
		t.Errorf("posts of a web workspace: %v, %v", posts, err)
	}
}

// clumsy is a chat whose formatter has a bug.
type clumsy struct{ *chat }

func (clumsy) Format(string, []string) []string { panic("a bug") }

// TestANoticeThatFailsHasNoPosts: it disturbs nothing else.
func TestANoticeThatFailsHasNoPosts(t *testing.T) {
	senders := map[string]adapters.Sender{"acme": &chat{}, "clumsy": clumsy{&chat{}}}
	box := deliver.New(deliver.Parts{Log: slog.New(slog.DiscardHandler), Platform: func(id string) (deliver.Platform, bool) {
		return deliver.Platform{Sender: senders[id]}, senders[id] != nil
	}})
	for _, c := range []struct {
		run  runs.Run
		want []outbox.Post
	}{
		{runs.Run{Place: threads.Place{Workspace: "acme", ThreadKey: "t"}}, []outbox.Post{{Channel: "C1", Place: "t", Text: "Sorry."}}},
		{runs.Run{Place: threads.Place{Workspace: "acme"}}, nil}, // without an address
		{runs.Run{Place: threads.Place{Workspace: "clumsy", ThreadKey: "t"}}, nil},
		{runs.Run{Place: threads.Place{Workspace: "other", ThreadKey: "t"}}, nil},
	} {
		same(t, c.run.Workspace, box.Notice(&c.run, "Sorry."), c.want)
	}
}
