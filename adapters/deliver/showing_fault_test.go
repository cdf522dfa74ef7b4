package deliver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// TestAPanicWhileItGrows ends neither the process nor the answer.
func TestAPanicWhileItGrows(t *testing.T) {
	bug := []fault{{panics: true}}
	for name, set := range map[string]func(*house){
		"grow":   func(h *house) { h.board.stumble = "two" },
		"begin":  func(h *house) { h.board.faults["begin"] = bug },
		"append": func(h *house) { h.board.faults["append"] = bug },
		"send":   func(h *house) { h.thread, h.board.faults["send"] = "direct", bug },
		"edit":   func(h *house) { h.thread, h.board.faults["edit"] = "direct", bug },
		"sign":   func(h *house) { h.board.faults["sign"] = bug },
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				set(h)
				h.answer = says(2*time.Second, "one ", "two ", "three")
				h.ask(h.thread)
				h.settles("one two three")
			})
		})
	}
}

// TestTheStoresClockMayBeAnother than this node's: calls are bounded by a time from now.
func TestTheStoresClockMayBeAnother(t *testing.T) {
	inHouse(t, func(h *house) {
		h.kill()
		h.behind = time.Hour
		h.start()
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		want := []string{"begin one", "sign", "append two", "append three", "end", "unsign"}
		if diff := cmp.Diff(want, h.board.did("")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestASignThatCouldNotBeNoted keeps nobody waiting who takes away an earlier one.
func TestASignThatCouldNotBeNoted(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			switch run.Claims + run.Attempts {
			case 1: // it signs
				_, err := says(2*time.Second, "a beginning")(ctx, run, s)
				if err == nil {
					err = errFailed
				}
				return "", err
			case 2: // the thread is lost before it signs
				lease, err := h.journal.Claim(ctx, run.Thread, journal.Turns)
				if err != nil {
					return "", err
				}
				h.desk.Lost(&journal.Lease{Thread: run.Thread, Fence: lease.Fence - 1})
				return says(2*time.Second, "nobody's")(ctx, run, s)
			}
			return "the answer", nil
		}
		h.ask("t")
		h.settles("the answer")
	})
}

// TestAStaleReplyIsAskedForAgain with a newer message, and the run has one sign of work.
func TestAStaleReplyIsAskedForAgain(t *testing.T) {
	inHouse(t, func(h *house) {
		h.stale = "rerun"
		h.answer = says(3*time.Second, "the ", "answer")
		h.ask("t")
		pass(time.Second)
		h.ask("t")
		h.settles("the answer")
	})
}

// TestWhatWasHeardOfMeanwhile: that a call has ended while the outbox was about to wait
// for it is no lost thread, and no run that goes on there is asked again for it.
func TestWhatWasHeardOfMeanwhile(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.faults["begin"] = []fault{{failure: none.failure, takes: 500 * time.Millisecond}}
		answered, looked := false, 0
		h.looks = func() {
			if !answered {
				return
			}
			if looked++; looked == 2 { // behind the one for the bounds of the reply
				pass(time.Second)
			}
		}
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			if h.attempts > 1 {
				return says(10*time.Second, "the ", "second")(ctx, run, s)
			}
			defer func() { answered = true }()
			return says(100*time.Millisecond, "the first")(ctx, run, s)
		}
		h.ask("t")
		pass(200 * time.Millisecond)
		h.ask("t")
		h.settles("the first", "the second")
		if h.attempts != 2 {
			t.Errorf("the agent was asked %d times", h.attempts)
		}
	})
}

// TestASignThatStays holds no answer up.
func TestASignThatStays(t *testing.T) {
	inHouse(t, func(h *house) {
		for range 20 {
			h.board.faults["unsign"] = append(h.board.faults["unsign"], notSent, lost)
		}
		h.answer = says(2*time.Second, "an answer")
		h.ask("t")
		pass(time.Minute)
		h.answer = func(context.Context, *journal.Run, turn.Showing) (string, error) { return "another", nil }
		h.ask("t")
		pass(time.Second)
		if texts, _ := h.board.stands(); len(texts) != 2 {
			t.Errorf("after a second there are %q\n%q", texts, h.board.did(""))
		}
		h.board.locked(func() error { h.board.faults["unsign"] = nil; return nil })
		h.settles("an answer", "another")
	})
}

// TestASignsPaceIsItsOwn: that signs are to wait holds up no post of the channel.
func TestASignsPaceIsItsOwn(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.faults["unsign"] = []fault{{failure: adapters.RateLimited, after: time.Minute}}
		h.answer = says(2*time.Second, "an answer")
		h.ask("t")
		pass(10 * time.Second)
		h.answer = func(context.Context, *journal.Run, turn.Showing) (string, error) { return "another", nil }
		h.ask("another")
		pass(time.Second)
		if texts, _ := h.board.stands(); len(texts) != 2 {
			t.Errorf("after a second there are %q\n%q", texts, h.board.did(""))
		}
		h.settles("an answer", "another")
	})
}

// TestNothingIsShownOnceNobodyWaits: what begins to be shown while the process ends
// would be left behind.
func TestNothingIsShownOnceNobodyWaits(t *testing.T) {
	inHouse(t, func(h *house) {
		h.kill()
		run := &journal.Run{Workspace: "acme", ThreadKey: event.ThreadKey("t")}
		showing, err := h.box.Show(context.Background(), &journal.Lease{}, run, nil)
		if err != nil {
			t.Fatal(err)
		}
		showing.Grow("never")
		synctest.Wait()
		if n := len(h.board.did("")); n > 0 {
			t.Errorf("%d calls", n)
		}
	}) // the bubble does not end while somebody in it waits
}

// TestALongNothing is no file and no post.
func TestALongNothing(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.FileOver = 3
		h.answer = func(context.Context, *journal.Run, turn.Showing) (string, error) { return "      ", nil }
		h.ask("t")
		h.settles()
	})
}

// TestAFilesBoundCountsCharacters, while the text grows as at its end.
func TestAFilesBoundCountsCharacters(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.FileOver = 10
		h.answer = says(2*time.Second, "один ", "два ", "3")
		h.ask("t")
		h.settles("один два 3")
		want := []string{"begin один", "sign", "append два", "append 3", "end", "unsign"}
		if diff := cmp.Diff(want, h.board.did("")); diff != "" {
			t.Error(diff)
		}
	})
}
