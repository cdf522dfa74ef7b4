package ingest

import (
	"context"
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
		pass(unknownFor)
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
