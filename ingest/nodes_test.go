package ingest

import (
	"context"
	"slices"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// twoNodes runs a test on two nodes that share a store; neither is working yet.
func twoNodes(t *testing.T, test func(one, other *house)) {
	t.Helper()
	inHouse(t, func(one *house) {
		one.open(journal.Options{Node: "one", Lease: time.Minute})
		other := &house{T: one.T, engine: one.engine, settings: one.settings, platform: one.platform}
		other.open(journal.Options{Node: "other", Lease: time.Minute})
		test(one, other)
	})
}

// TestANodeHearsWhoWeAreFromAnother: what waits to know it goes on with the next
// look into the store, and what we are known by is up to date soon after.
func TestANodeHearsWhoWeAreFromAnother(t *testing.T) {
	twoNodes(t, func(one, other *house) {
		one.work()
		waits := one.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Needs: "user"})
		pass(time.Minute)
		one.pending(waits.ID)
		tell := func(user string) {
			if err := other.SetSelf(one.Context(), event.Slack, "acme", event.Self{UserID: user}); err != nil {
				t.Fatal(err)
			}
		}
		tell("UBOT")
		pass(1100 * time.Millisecond)
		one.fate(waits.ID)
		tell("UNEW")
		pass(5 * time.Second)
		if got := one.said(payload{Kind: event.KindReaction, ID: "1", Sender: "UNEW"}); got.Reason != event.ReasonOwnMessage {
			t.Errorf("our own reaction: %+v", got.Fate)
		}
	})
}

// TestANodeHearsAChannelsTypeFromAnother, also when it has asked in vain before.
func TestANodeHearsAChannelsTypeFromAnother(t *testing.T) {
	twoNodes(t, func(one, other *house) {
		stop := one.work()
		if got := one.said(payload{ID: "1", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:t" {
			t.Errorf("while nobody knows it: %s", got.Thread)
		}
		stop()
		other.accept(payload{ID: "2", Thread: "t", Channel: "G7", Type: event.ChannelGroup, Sender: "U1"})
		one.work()
		if got := one.said(payload{ID: "3", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" {
			t.Errorf("once the other was told: %s", got.Thread)
		}
	})
}

// TestWhoWaitsHearsOfAnEndOnAnotherNode.
func TestWhoWaitsHearsOfAnEndOnAnotherNode(t *testing.T) {
	twoNodes(t, func(one, other *house) {
		ctx, cancel := context.WithTimeout(one.Context(), 2*time.Second)
		defer cancel()
		receipt := one.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "hello"})
		begun := time.Now()
		time.AfterFunc(time.Second, func() { other.start() })
		settled, err := one.Wait(ctx, receipt.ID)
		if took := time.Since(begun); err != nil || settled == nil || settled.Message.Content != "hello" || took > 1100*time.Millisecond {
			t.Errorf("%+v, %v after %v", settled, err, took)
		}
	})
}

// TestWhatADeadNodeKeptAsideIsLetIn by another one, but not before its time, and not
// where that one keeps aside what comes in itself.
func TestWhatADeadNodeKeptAsideIsLetIn(t *testing.T) {
	twoNodes(t, func(one, other *house) {
		w := one.workspace("acme")
		w.Gaps = &behind{channels: map[string]bool{"C1": true, "C2": true}}
		one.configure(w) // and dies
		w.Gaps = &behind{channels: map[string]bool{"C2": true}}
		other.configure(w)
		other.work()
		for _, channel := range []string{"C1", "C2"} {
			if !one.accept(payload{ID: channel, Thread: channel, Channel: channel, Sender: "U1", Text: "hi"}).Waits {
				t.Errorf("%s was not kept aside", channel)
			}
		}
		left := func(want ...string) {
			t.Helper()
			channels, err := other.journal.AsideChannels(one.Context(), "acme", time.Time{})
			if err != nil || !slices.Equal(channels, want) {
				t.Errorf("kept aside in %v, want %v: %v", channels, want, err)
			}
		}
		pass(29 * time.Second)
		left("C1", "C2")
		pass(10 * time.Second)
		left("C2")
		if got := contents(other.thread("slack:acme:C1")); !slices.Equal(got, []string{"hi"}) {
			t.Errorf("let in: %v", got)
		}
	})
}
