package ingest

import (
	"context"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// twoNodes runs a test on two nodes that share a store. Neither runs yet.
func twoNodes(t *testing.T, test func(one, other *harness)) {
	t.Helper()
	inBubble(t, func(one *harness) {
		one.open(journal.Options{Node: "one", Lease: time.Minute})
		other := &harness{T: one.T, engine: one.engine, settings: one.settings, platform: one.platform}
		other.open(journal.Options{Node: "other", Lease: time.Minute})
		test(one, other)
	})
}

// TestANodeReadsOurIdentityFromAnother proves that a waiting envelope continues with the
// next read of the store, and that a changed identity is known soon after.
func TestANodeReadsOurIdentityFromAnother(t *testing.T) {
	twoNodes(t, func(one, other *harness) {
		one.work()
		waits := one.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Needs: "user"})
		advance(time.Minute)
		one.pending(waits.ID)
		tell := func(user string) {
			if err := other.SetSelf(one.Context(), event.Slack, "acme", event.Self{UserID: user}); err != nil {
				t.Fatal(err)
			}
		}
		tell("UBOT")
		advance(1100 * time.Millisecond)
		one.result(waits.ID)
		tell("UNEW")
		advance(5 * time.Second)
		if got := one.send(payload{Kind: event.KindReaction, ID: "1", Sender: "UNEW"}); got.Reason != event.ReasonOwnMessage {
			t.Errorf("our own reaction: %+v", got.Result)
		}
	})
}

// TestANodeReadsAChannelTypeFromAnother proves this also for a node that had read the
// store too early.
func TestANodeReadsAChannelTypeFromAnother(t *testing.T) {
	twoNodes(t, func(one, other *harness) {
		stop := one.work()
		if got := one.send(payload{ID: "1", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:t" {
			t.Errorf("with an unknown type: %s", got.Thread)
		}
		stop()
		other.accept(payload{ID: "2", Thread: "t", Channel: "G7", Type: event.ChannelGroup, Sender: "U1"})
		one.work()
		if got := one.send(payload{ID: "3", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" {
			t.Errorf("after the other node learnt it: %s", got.Thread)
		}
	})
}

func TestWaitSeesAResultOfAnotherNode(t *testing.T) {
	twoNodes(t, func(one, other *harness) {
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

// TestTheFirstEventAfterAnotherNodeKnowsUs is recorded at once.
func TestTheFirstEventAfterAnotherNodeKnowsUs(t *testing.T) {
	twoNodes(t, func(one, other *harness) {
		w := one.workspace("acme")
		w.Introduce = func(_ event.Envelope, known event.Self) event.Self { return known }
		one.configure(w)
		one.work()
		if err := other.SetSelf(one.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			t.Fatal(err)
		}
		if got := one.send(payload{ID: "1"}); got.Disposition != event.Stored {
			t.Errorf("the event: %+v", got.Result)
		}
	})
}
