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
)

// TestEachThreadKeepsItsOrder: envelopes of several threads that come at once are
// recorded in the order in which each thread's were accepted.
func TestEachThreadKeepsItsOrder(t *testing.T) {
	inHouse(t, func(h *house) {
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

// TestASlowThreadDelaysOnlyItself: while one thread's name is waited for, others
// go on; what follows in the same thread waits for its turn.
func TestASlowThreadDelaysOnlyItself(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.slow["slow"] = make(chan struct{})
		h.work()
		slow := h.accept(payload{ID: "1", Thread: "a", Channel: "C1", Sender: "U1", Text: "slow"})
		behind := h.accept(payload{ID: "2", Thread: "a", Channel: "C1", Sender: "U1", Text: "behind"})
		if got := h.said(payload{ID: "3", Thread: "b", Text: "elsewhere"}); got.Disposition != event.Stored {
			t.Errorf("elsewhere: %+v", got.Fate)
		}
		h.pending(slow.ID)
		h.pending(behind.ID)
		close(h.platform.slow["slow"])
		h.fate(behind.ID)
		if diff := cmp.Diff([]string{"slow", "behind"}, contents(h.thread("slack:acme:a"))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWhatCanNotBeReadIsADeadLetter with the reader's words, and its thread goes on.
func TestWhatCanNotBeReadIsADeadLetter(t *testing.T) {
	for trouble, words := range map[string]string{
		unreadable: "data.text: must be a string",
		incomplete: "metadata.source: is required and must not be empty",
	} {
		inHouse(t, func(h *house) {
			h.work()
			dead := h.said(payload{ID: "1", Text: "?", Trouble: trouble})
			if dead.Disposition != event.Dead || !strings.HasPrefix(dead.Error, words) || dead.Kind != event.KindMessage {
				t.Errorf("%s: %+v of kind %s", trouble, dead.Fate, dead.Kind)
			}
			if next := h.said(payload{ID: "2", Text: "next"}); next.Disposition != event.Stored {
				t.Errorf("after it: %+v", next.Fate)
			}
		})
	}
}

// TestAPanicIsTriedAgain: a panic is that envelope's failure; a second later it
// is read again.
func TestAPanicIsTriedAgain(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		receipt := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "hello", Trouble: panicsOnce})
		h.pending(receipt.ID)
		pass(time.Second + 10*time.Millisecond)
		if got := h.fate(receipt.ID); got.Disposition != event.Stored {
			t.Errorf("fate %+v", got.Fate)
		}
	})
}

// TestWhatPanicsAlwaysIsDeadWithinMinutes: nine attempts, ever further apart,
// while other threads go on.
func TestWhatPanicsAlwaysIsDeadWithinMinutes(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		poison := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Trouble: panicsAlways})
		behind := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "behind"})
		pass(4 * time.Minute)
		h.pending(poison.ID)
		h.said(payload{ID: "3", Thread: "other", Text: "elsewhere"})
		pass(time.Minute)
		if got := h.fate(poison.ID); got.Disposition != event.Dead || got.Error != "panic: a bug in 1" || got.Kind != event.KindMessage {
			t.Errorf("fate %+v of kind %s", got.Fate, got.Kind)
		}
		if got := h.platform.panics.Load(); got != maxAttempts {
			t.Errorf("it was tried %d times, want %d", got, maxAttempts)
		}
		if got := h.fate(behind.ID); got.Disposition != event.Stored {
			t.Errorf("behind it: %+v", got.Fate)
		}
	})
}

// TestKeysThatPanicAreADeadLetterInCustody: the platform is told that we have it,
// and its payload is kept.
func TestKeysThatPanicAreADeadLetterInCustody(t *testing.T) {
	inHouse(t, func(h *house) {
		first := h.accept(payload{ID: "1", Trouble: panicsInKeys})
		if got := h.fate(first.ID); got.Disposition != event.Dead || got.Error != "panic: no keys for you" {
			t.Errorf("fate %+v", got.Fate)
		}
		if again := h.accept(payload{ID: "1", Trouble: panicsInKeys}); !again.Duplicate || again.ID != first.ID {
			t.Errorf("the same bytes again: %+v", again)
		}
	})
}

// TestSuspectsRunOneAtATime: an envelope whose claims ended with their process three
// times stops no other thread.
func TestSuspectsRunOneAtATime(t *testing.T) {
	inHouse(t, func(h *house) {
		suspects := map[string]int64{}
		for _, text := range []string{"one", "two"} {
			suspects[text] = h.accept(payload{ID: text, Thread: text, Channel: "C1", Sender: "U1", Text: text}).ID
			h.platform.slow[text] = make(chan struct{})
		}
		h.sql(`UPDATE envelopes SET claims = 3`)
		h.work()
		for range suspects {
			text := <-h.platform.begun
			if alongside := h.platform.alongside(text); len(alongside) > 0 {
				t.Errorf("%s runs beside %q", text, alongside)
			}
			if got := h.said(payload{ID: "other" + text, Thread: "other"}); got.Disposition != event.Stored {
				t.Errorf("another thread's envelope: %+v", got.Fate)
			}
			h.pending(suspects[text])
			close(h.platform.slow[text])
		}
		for _, id := range suspects {
			if got := h.fate(id); got.Disposition != event.Stored {
				t.Errorf("a suspect: %+v", got.Fate)
			}
		}
	})
}

// TestASuspectThatEndedTheProcessTwiceMoreIsDead: it is not tried again, and its
// thread goes on.
func TestASuspectThatEndedTheProcessTwiceMoreIsDead(t *testing.T) {
	inHouse(t, func(h *house) {
		killer := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Trouble: panicsAlways})
		h.sql(`UPDATE envelopes SET claims = 5 WHERE id = ?`, killer.ID)
		next := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1"})
		h.work()
		if got := h.fate(killer.ID); got.Disposition != event.Dead || got.Error != "the process ended 5 times while it worked on this" {
			t.Errorf("fate %+v", got.Fate)
		}
		if h.platform.panics.Load() != 0 {
			t.Error("it was tried again")
		}
		if got := h.fate(next.ID); got.Disposition != event.Stored {
			t.Errorf("behind it: %+v", got.Fate)
		}
	})
}

// TestAWrongCountOfPendingEnvelopesIsCorrected: a thread's turns begin only if none
// is due.
func TestAWrongCountOfPendingEnvelopesIsCorrected(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		h.said(payload{ID: "1"})
		h.sql(`UPDATE threads SET pending = 2, intake_at = 1`)
		pass(2 * time.Second)
		var pending, due int64
		if err := h.engine.ReadOne(h.Context(), func(tx journal.Tx) error {
			_, err := tx.Row([]any{&pending, &due}, `SELECT pending, coalesce(intake_at, 0) FROM threads`)
			return err
		}); err != nil || pending != 0 || due != 0 {
			t.Errorf("%d envelopes are pending, due at %d: %v", pending, due, err)
		}
	})
}

// TestAnEnvelopeThatWasSettledIsPassedOver: the thread's next one is recorded.
func TestAnEnvelopeThatWasSettledIsPassedOver(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.slow["first"] = make(chan struct{})
		h.work()
		first := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "first"})
		<-h.platform.begun
		second := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "second"})
		h.sql(`UPDATE envelopes SET state = 'done', disposition = 'ignored' WHERE id = ?`, first.ID)
		h.sql(`UPDATE threads SET pending = 1`)
		close(h.platform.slow["first"])
		if got := h.fate(second.ID); got.Disposition != event.Stored {
			t.Errorf("fate %+v", got.Fate)
		}
	})
}

// TestWhatNeedsToKnowUsWaits: a message that may be ours waits, with its thread,
// and goes on as soon as we know who we are.
func TestWhatNeedsToKnowUsWaits(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		unsure := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "first", Needs: "user"})
		behind := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "second"})
		h.said(payload{ID: "3", Thread: "other"})
		pass(20 * time.Second)
		h.pending(unsure.ID)
		h.pending(behind.ID)
		if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
			t.Fatal(err)
		}
		told := time.Now()
		for len(h.thread("slack:acme:t")) < 2 {
			pass(time.Millisecond)
		}
		if waited := time.Since(told); waited > 100*time.Millisecond {
			t.Errorf("what waited went on %v after we knew", waited)
		}
		if diff := cmp.Diff([]string{"first", "second"}, contents(h.thread("slack:acme:t"))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWhoWeAreIsKnownAfterARestart, and a payload can tell it.
func TestWhoWeAreIsKnownAfterARestart(t *testing.T) {
	inHouse(t, func(h *house) {
		stop := h.work()
		w := h.workspace("acme")
		w.Introduce = func(_ event.Envelope, known event.Self) event.Self {
			known.UserID = "UBOT"
			return known
		}
		h.configure(w)
		if got := h.said(payload{ID: "1", Needs: "user"}); got.Disposition != event.Stored {
			t.Errorf("the payload that told it: %+v", got.Fate)
		}
		stop()
		next := newHouseAfter(h)
		next.work()
		if got := next.said(payload{ID: "2", Needs: "user"}); got.Disposition != event.Stored {
			t.Errorf("after the restart: %+v", got.Fate)
		}
		if got := next.said(payload{Kind: event.KindReaction, ID: "1", Sender: "UBOT"}); got.Reason != event.ReasonOwnMessage {
			t.Errorf("our own reaction: %+v", got.Fate)
		}
	})
}

// parser is a platform that counts the bodies that it reads.
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

// TestAPayloadIsReadOnce for its keys, our identity, the keys again and its meaning. The
// recorded message has the id that it got when it was accepted.
func TestAPayloadIsReadOnce(t *testing.T) {
	inHouse(t, func(h *house) {
		w, reader := h.workspace("acme"), &parser{platform: h.platform}
		w.Normalizer = reader
		w.Introduce = func(envelope event.Envelope, known event.Self) event.Self {
			reader.parsed(envelope)
			known.AppID = "A1"
			return known
		}
		h.configure(w)
		h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1"})
		stop := h.work()
		if got := reader.bodies.Swap(0); got != 2 {
			t.Errorf("a body was read %d times before it was stored and after it", got)
		}
		h.said(payload{ID: "2", Thread: "t"})
		stop()
		if got := reader.bodies.Load(); got != 1 {
			t.Errorf("a body that was handed over in memory was read %d times", got)
		}
		var same int64
		if err := h.engine.ReadOne(h.Context(), func(tx journal.Tx) error {
			_, err := tx.Row([]any{&same}, `SELECT count(*) FROM envelopes e JOIN messages m ON m.id = e.message_id`)
			return err
		}); err != nil || same != 2 {
			t.Errorf("%d messages have the id of their envelope: %v", same, err)
		}
	})
}

// newHouseAfter opens the house's store anew, once it is closed.
func newHouseAfter(h *house) *house {
	h.Helper()
	h.close()
	h.journal = journal.New(nothing{}, journal.Options{})
	return newHouse(h.T, h.path)
}

// nothing is a store that is closed already.
type nothing struct{ journal.Engine }

func (nothing) Close() error { return nil }

// TestAChannelsTypeIsRememberedAcrossARestart: what tells no type follows what
// told it, in memory and from the store.
func TestAChannelsTypeIsRememberedAcrossARestart(t *testing.T) {
	inHouse(t, func(h *house) {
		stop := h.work()
		h.said(payload{ID: "1", Thread: "t", Channel: "G7", Type: event.ChannelGroup})
		if got := h.said(payload{ID: "2", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" {
			t.Errorf("the next one is in %s", got.Thread)
		}
		stop()
		next := newHouseAfter(h)
		next.work()
		if got := next.said(payload{ID: "3", Thread: "t", Channel: "G7"}); got.Thread != "slack:acme:tgroup" || got.Message.Seq != 3 {
			t.Errorf("after the restart it is in %s", got.Thread)
		}
		if got := next.said(payload{ID: "4", Thread: "t", Channel: "G8"}); got.Thread != "slack:acme:t" {
			t.Errorf("of a channel that nobody told of: %s", got.Thread)
		}
	})
}

// TestAnUnknownChannelTypeCostsNoReadEachTime.
func TestAnUnknownChannelTypeCostsNoReadEachTime(t *testing.T) {
	inHouse(t, func(h *house) {
		h.accept(payload{ID: "1", Thread: "t", Channel: "G8", Sender: "U1"})
		h.engine.blind.Store(true)
		h.accept(payload{ID: "2", Thread: "t", Channel: "G8", Sender: "U1"})
		pass(unknownFor)
		if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "3", Thread: "t", Channel: "G8", Sender: "U1"})); err == nil {
			t.Error("the store was not asked again")
		}
	})
}
