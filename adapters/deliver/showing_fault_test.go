package deliver_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal"
)

// TestAPanicWhileItGrows stops neither the process nor the answer.
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

// TestTheStoresClockMayBeAnother checks the bounds of calls if the clocks differ.
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

// TestASignThatCouldNotBeNoted does not delay the removal of an earlier sign.
func TestASignThatCouldNotBeNoted(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			switch h.attempts {
			case 1: // it signs
				_, err := says(2*time.Second, "a beginning")(ctx, run, s)
				if err == nil {
					err = errFailed
				}
				return "", err
			case 2: // the thread is lost before it signs
				if err := h.steal(run.Thread); err != nil {
					return "", err
				}
				return says(2*time.Second, "lost")(ctx, run, s)
			}
			return "the answer", nil
		}
		h.ask("t")
		h.settles("the answer")
	})
}

// TestAStaleReplyIsAskedForAgain checks that the run has one sign of work.
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

// TestASignThatStays delays no answer.
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

// TestASignsPaceIsItsOwn: a rate limit of signs delays no post of the channel.
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

// TestALongNothing makes no file and no post.
func TestALongNothing(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.FileOver = 3
		h.answer = func(context.Context, *journal.Run, turn.Showing) (string, error) { return "      ", nil }
		h.ask("t")
		h.settles()
	})
}

// TestAFilesBoundCountsCharacters checks a growing text and its final text.
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
