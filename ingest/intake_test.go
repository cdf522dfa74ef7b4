package ingest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// TestEachThreadKeepsItsOrder proves that concurrent envelopes of several threads are
// recorded in each thread's order of acceptance.
func TestEachThreadKeepsItsOrder(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		var senders sync.WaitGroup
		want := map[string][]string{}
		for _, thread := range []string{"a", "b", "c"} {
			var texts []string
			for i := range 30 {
				texts = append(texts, fmt.Sprint(thread, i))
			}
			want[thread] = texts
			senders.Go(func() {
				for _, text := range texts {
					h.accept(payload{ID: text, Thread: thread, Channel: "C1", Sender: "U1", Text: text})
				}
			})
		}
		senders.Wait()
		synctest.Wait()
		for thread, texts := range want {
			messages := h.thread(event.ThreadKey("slack:acme:" + thread))
			if diff := cmp.Diff(texts, contents(messages)); diff != "" {
				t.Errorf("thread %s (-want +got):\n%s", thread, diff)
			}
			for i, m := range messages {
				if m.Seq != int64(i+1) {
					t.Errorf("thread %s: message %d has thread_seq %d", thread, i, m.Seq)
				}
			}
		}
	})
}

// TestASlowThreadDelaysOnlyItself proves that a slow name lookup in one thread delays the
// later envelopes of that thread, and no other thread.
func TestASlowThreadDelaysOnlyItself(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.platform.slow["slow"] = make(chan struct{})
		h.work()
		slow := h.accept(payload{ID: "1", Thread: "a", Channel: "C1", Sender: "U1", Text: "slow"})
		behind := h.accept(payload{ID: "2", Thread: "a", Channel: "C1", Sender: "U1", Text: "behind"})
		if got := h.send(payload{ID: "3", Thread: "b", Text: "elsewhere"}); got.Disposition != event.Stored {
			t.Errorf("elsewhere: %+v", got.Result)
		}
		h.pending(slow.ID)
		h.pending(behind.ID)
		if n := h.claims(slow.ID); n != 0 {
			t.Errorf("an attempt that goes on: %d claims", n)
		}
		close(h.platform.slow["slow"])
		h.result(behind.ID)
		if diff := cmp.Diff([]string{"slow", "behind"}, contents(h.thread("slack:acme:a"))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnUnreadablePayloadIsADeadLetter proves that the dead letter has the normaliser's
// error, and that the thread continues.
func TestAnUnreadablePayloadIsADeadLetter(t *testing.T) {
	for trouble, words := range map[string]string{
		unreadable: "data.text: must be a string",
		incomplete: "metadata.source: is required and must not be empty",
	} {
		inBubble(t, func(h *harness) {
			h.work()
			dead := h.send(payload{ID: "1", Text: "?", Trouble: trouble})
			if dead.Disposition != event.Dead || !strings.HasPrefix(dead.Error, words) || dead.Kind != event.KindMessage {
				t.Errorf("%s: %+v of kind %s", trouble, dead.Result, dead.Kind)
			}
			if next := h.send(payload{ID: "2", Text: "next"}); next.Disposition != event.Stored {
				t.Errorf("the next envelope: %+v", next.Result)
			}
		})
	}
}

// TestAPanicIsRetried proves that a panic is a failure of one envelope, which is read
// again a second later.
func TestAPanicIsRetried(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		receipt := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "hello", Trouble: panicsOnce})
		h.pending(receipt.ID)
		advance(time.Second + 10*time.Millisecond)
		if got := h.result(receipt.ID); got.Disposition != event.Stored {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestARepeatedPanicIsADeadLetter proves that this takes nine attempts with growing
// waits, and that other threads continue.
func TestARepeatedPanicIsADeadLetter(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		poison := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Trouble: panicsAlways})
		behind := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "behind"})
		advance(4 * time.Minute)
		h.pending(poison.ID)
		h.send(payload{ID: "3", Thread: "other", Text: "elsewhere"})
		advance(time.Minute)
		if got := h.result(poison.ID); got.Disposition != event.Dead || got.Error != "panic: a bug in 1" || got.Kind != event.KindMessage {
			t.Errorf("result %+v of kind %s", got.Result, got.Kind)
		}
		if got := h.platform.panics.Load(); got != maxAttempts {
			t.Errorf("%d attempts, want %d", got, maxAttempts)
		}
		if got := h.result(behind.ID); got.Disposition != event.Stored {
			t.Errorf("the next envelope: %+v", got.Result)
		}
	})
}

// TestAPanicInKeysIsADeadLetter proves that the payload is stored and acknowledged.
func TestAPanicInKeysIsADeadLetter(t *testing.T) {
	inBubble(t, func(h *harness) {
		first := h.accept(payload{ID: "1", Trouble: panicsInKeys})
		if got := h.result(first.ID); got.Disposition != event.Dead || got.Error != "panic: a bug in Keys" {
			t.Errorf("result %+v", got.Result)
		}
		if again := h.accept(payload{ID: "1", Trouble: panicsInKeys}); !again.Duplicate || again.ID != first.ID {
			t.Errorf("the same bytes again: %+v", again)
		}
	})
}

// TestSuspectsRunOneAtATime proves that envelopes whose claims ended with their process
// three times delay no other thread.
func TestSuspectsRunOneAtATime(t *testing.T) {
	inBubble(t, func(h *harness) {
		suspects := map[string]int64{}
		for _, text := range []string{"one", "two"} {
			suspects[text] = h.accept(payload{ID: text, Thread: text, Channel: "C1", Sender: "U1", Text: text}).ID
			h.platform.slow[text] = make(chan struct{})
		}
		h.sql(`UPDATE envelopes SET claims = 3`)
		h.work()
		for range suspects {
			text := <-h.platform.begun
			if others := h.platform.others(text); len(others) > 0 {
				t.Errorf("%s runs concurrently with %q", text, others)
			}
			if got := h.send(payload{ID: "other" + text, Thread: "other"}); got.Disposition != event.Stored {
				t.Errorf("another thread's envelope: %+v", got.Result)
			}
			h.pending(suspects[text])
			if n := h.claims(suspects[text]); n != 4 {
				t.Errorf("an attempt at a suspect that goes on: %d claims", n)
			}
			close(h.platform.slow[text])
		}
		for _, id := range suspects {
			if got := h.result(id); got.Disposition != event.Stored {
				t.Errorf("a suspect: %+v", got.Result)
			}
		}
	})
}

// TestAnAttemptAtASuspectThatEndsIsNotCounted: only the end of the process during the attempt
// counts.
func TestAnAttemptAtASuspectThatEndsIsNotCounted(t *testing.T) {
	inBubble(t, func(h *harness) {
		suspect := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Trouble: panicsAlways})
		h.sql(`UPDATE envelopes SET claims = 3`)
		h.work()
		advance(30 * time.Second)
		h.pending(suspect.ID)
		if got := h.platform.panics.Load(); got < 2 || h.claims(suspect.ID) != envelopes.SuspectClaims {
			t.Errorf("%d attempts, %d claims", got, h.claims(suspect.ID))
		}
	})
}

// TestASuspectWithTwoMoreClaimsIsADeadLetter proves that the suspect is not tried again,
// and that its thread continues.
func TestASuspectWithTwoMoreClaimsIsADeadLetter(t *testing.T) {
	inBubble(t, func(h *harness) {
		suspect := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Trouble: panicsAlways})
		h.sql(`UPDATE envelopes SET claims = 5 WHERE id = ?`, suspect.ID)
		next := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1"})
		h.work()
		if got := h.result(suspect.ID); got.Disposition != event.Dead || got.Error != "the process ended 5 times while it worked on this" {
			t.Errorf("result %+v", got.Result)
		}
		if h.platform.panics.Load() != 0 {
			t.Error("the suspect was tried again")
		}
		if got := h.result(next.ID); got.Disposition != event.Stored {
			t.Errorf("the next envelope: %+v", got.Result)
		}
	})
}

// TestAWrongPendingCountIsCorrected matters because a thread's turns begin only if no
// envelope is pending.
func TestAWrongPendingCountIsCorrected(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.send(payload{ID: "1"})
		h.sql(`UPDATE threads SET pending = 2, intake_at = 1`)
		advance(2 * time.Second)
		var pending, due int64
		if err := h.engine.ReadOne(h.Context(), func(tx storage.Tx) error {
			_, err := tx.Row([]any{&pending, &due}, `SELECT pending, coalesce(intake_at, 0) FROM threads`)
			return err
		}); err != nil || pending != 0 || due != 0 {
			t.Errorf("%d envelopes are pending, due at %d: %v", pending, due, err)
		}
	})
}

// TestASettledEnvelopeIsSkipped proves that the thread's next envelope is recorded.
func TestASettledEnvelopeIsSkipped(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.platform.slow["first"] = make(chan struct{})
		h.work()
		first := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "first"})
		<-h.platform.begun
		second := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "second"})
		h.sql(`UPDATE envelopes SET state = 'done', disposition = 'ignored' WHERE id = ?`, first.ID)
		h.sql(`UPDATE threads SET pending = 1`)
		close(h.platform.slow["first"])
		if got := h.result(second.ID); got.Disposition != event.Stored {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestAnEnvelopeWaitsForOurIdentity proves that a message that may be ours waits, with
// its thread, and continues as soon as our identity is known.
func TestAnEnvelopeWaitsForOurIdentity(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		waiting := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "first", Needs: "user"})
		behind := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "second"})
		h.send(payload{ID: "3", Thread: "other"})
		advance(20 * time.Second)
		h.pending(waiting.ID)
		h.pending(behind.ID)
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			t.Fatal(err)
		}
		known := time.Now()
		for len(h.thread("slack:acme:t")) < 2 {
			advance(time.Millisecond)
		}
		if waited := time.Since(known); waited > 100*time.Millisecond {
			t.Errorf("the thread continued %v after the identity was known", waited)
		}
		if diff := cmp.Diff([]string{"first", "second"}, contents(h.thread("slack:acme:t"))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOurIdentityBecomesKnownMeanwhile proves that a message does not wait if our identity becomes known between the look at
// it and the decision to wait for it.
func TestOurIdentityBecomesKnownMeanwhile(t *testing.T) {
	inBubble(t, func(h *harness) {
		var armed atomic.Bool
		h.Ingest.Now = func() time.Time {
			if armed.Swap(false) {
				if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
					t.Error(err)
				}
			}
			return time.Now()
		}
		h.work()
		advance(time.Millisecond)
		armed.Store(true) // the attempt reads the clock before it waits
		accepted := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Needs: "user"})
		advance(time.Second)
		if got := h.result(accepted.ID); got.Disposition != event.Stored {
			t.Errorf("after a second: %+v", got.Result)
		}
	})
}

// TestNothingIsRecordedBeforeOurIdentityIsKnown proves that an event waits even if its payload
// needs nothing, because it may be another team's, and that it is tried more seldom as it
// grows older.
func TestNothingIsRecordedBeforeOurIdentityIsKnown(t *testing.T) {
	inBubble(t, func(h *harness) {
		w := h.workspace("acme")
		var tries atomic.Int64
		w.Introduce = func(_ event.Envelope, known event.Self) event.Self { tries.Add(1); return known }
		h.configure(w)
		h.work()
		waiting := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Mention: true})
		advance(time.Hour)
		h.pending(waiting.ID)
		if n := tries.Load(); n > 70 {
			t.Errorf("tried %d times in an hour", n)
		}
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			t.Fatal(err)
		}
		advance(time.Second)
		if got := h.result(waiting.ID); got.Trigger != messages.TriggerRun {
			t.Errorf("the event after our identity is known: %+v", got.Result)
		}
	})
}

// TestPayloadsDoNotUndoOurIdentity proves that a payload that names nothing keeps an identity
// that became known while the payload was read.
func TestPayloadsDoNotUndoOurIdentity(t *testing.T) {
	inBubble(t, func(h *harness) {
		w := h.workspace("acme")
		w.Introduce = func(_ event.Envelope, known event.Self) event.Self {
			if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
				t.Error(err)
			}
			return known
		}
		h.configure(w)
		h.work()
		if got := h.send(payload{ID: "1"}); got.Disposition != event.Stored {
			t.Errorf("the event: %+v", got.Result)
		}
	})
}

// TestOurIdentitySurvivesARestart also proves that a payload can supply it.
func TestOurIdentitySurvivesARestart(t *testing.T) {
	inBubble(t, func(h *harness) {
		stop := h.work()
		w := h.workspace("acme")
		w.Introduce = func(_ event.Envelope, known event.Self) event.Self {
			known.UserID = "UBOT"
			return known
		}
		h.configure(w)
		if got := h.send(payload{ID: "1", Needs: "user"}); got.Disposition != event.Stored {
			t.Errorf("the payload with our identity: %+v", got.Result)
		}
		stop()
		next := restart(h)
		next.work()
		if got := next.send(payload{ID: "2", Needs: "user"}); got.Disposition != event.Stored {
			t.Errorf("after the restart: %+v", got.Result)
		}
		if got := next.send(payload{Kind: event.KindReaction, ID: "1", Sender: "UBOT"}); got.Reason != event.ReasonOwnMessage {
			t.Errorf("our own reaction: %+v", got.Result)
		}
	})
}

// parser is a platform that counts the bodies that it parses.
type parser struct {
	*platform
	bodies atomic.Int64
}

func (p *parser) parsed(envelope event.Envelope) any {
	if envelope.Parsed == nil {
		p.bodies.Add(1)
		return "parsed"
	}
	return envelope.Parsed
}

func (p *parser) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	keys := p.platform.Keys(envelope, facts)
	keys.Parsed = p.parsed(envelope)
	return keys
}

func (p *parser) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	p.parsed(envelope)
	return p.platform.Normalize(ctx, envelope, directory)
}

// TestAPayloadIsParsedOnce proves that one parse serves the keys, our identity, the
// second read of the keys, and the event. The recorded message has the id that it got at
// the durable accept.
func TestAPayloadIsParsedOnce(t *testing.T) {
	inBubble(t, func(h *harness) {
		w, reader := h.workspace("acme"), &parser{platform: h.platform}
		w.Normalizer = reader
		w.Introduce = func(envelope event.Envelope, known event.Self) event.Self {
			reader.parsed(envelope)
			known.UserID, known.AppID = "UBOT", "A1"
			return known
		}
		h.configure(w)
		h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1"})
		stop := h.work()
		if got := reader.bodies.Swap(0); got != 2 {
			t.Errorf("a stored body was parsed %d times, want once before and once after", got)
		}
		h.send(payload{ID: "2", Thread: "t"})
		stop()
		if got := reader.bodies.Load(); got != 1 {
			t.Errorf("a body in memory was parsed %d times", got)
		}
		h.work()
		reader.bodies.Store(0)
		h.send(payload{ID: "3", Thread: "t", Text: strings.Repeat("x", maxPayload)})
		if got := reader.bodies.Load(); got != 2 {
			t.Errorf("a large body was parsed %d times, want it read from the store", got)
		}
		var same int64
		if err := h.engine.ReadOne(h.Context(), func(tx storage.Tx) error {
			_, err := tx.Row([]any{&same}, `SELECT count(*) FROM envelopes e JOIN messages m ON m.id = e.message_uuid`)
			return err
		}); err != nil || same != 3 {
			t.Errorf("%d messages have the id of their envelope: %v", same, err)
		}
	})
}

// restart closes the harness's store and opens it again.
func restart(h *harness) *harness {
	h.Helper()
	h.close()
	h.journal = journal.New(closedEngine{}, journal.Options{})
	return newHarness(h.T, h.path)
}

// closedEngine is a store that is closed already.
type closedEngine struct{ storage.Engine }

func (closedEngine) Close() error { return nil }

// TestAChannelTypeSurvivesARestart proves that a payload without a channel type gets the
// type that an earlier payload had, from memory and from the store.
func TestAChannelTypeSurvivesARestart(t *testing.T) {
	inBubble(t, func(h *harness) {
		stop := h.work()
		h.send(payload{ID: "1", Thread: "t", Channel: "G7", Type: event.ChannelGroup})
		if got := h.send(payload{ID: "2", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" {
			t.Errorf("the next message is in %s", got.Thread)
		}
		advance(unknownFor)
		h.engine.blind.Store(true)
		h.accept(payload{ID: "2 again", Thread: "t", Channel: "G7"}) // the type is in memory
		h.engine.blind.Store(false)
		if got := h.send(payload{ID: "2", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" {
			t.Errorf("after a message without a type, the next one is in %s", got.Thread)
		}
		stop()
		next := restart(h)
		next.work()
		if got := next.send(payload{ID: "3", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" {
			t.Errorf("after the restart, the next message is in %s", got.Thread)
		}
		if got := next.send(payload{ID: "4", Thread: "t", Channel: "G8"}); got.Thread != "slack:acme:t" {
			t.Errorf("in an unknown channel: %s", got.Thread)
		}
	})
}

// TestAnUnknownChannelTypeIsCached proves that the store is not read again before
// unknownFor has passed.
func TestAnUnknownChannelTypeIsCached(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.accept(payload{ID: "1", Thread: "t", Channel: "G8", Sender: "U1"})
		h.engine.blind.Store(true)
		h.accept(payload{ID: "2", Thread: "t", Channel: "G8", Sender: "U1"})
		advance(unknownFor)
		if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "3", Thread: "t", Channel: "G8", Sender: "U1"})); err == nil {
			t.Error("the store was not read again")
		}
	})
}
