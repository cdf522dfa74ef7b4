package deliver_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal/runs"
	"parley/ingest/work"
)

// TestAPanicDuringAPreview proves that it stops neither the process nor the answer.
func TestAPanicDuringAPreview(t *testing.T) {
	bug := []fault{{panics: true}}
	for name, set := range map[string]func(*harness){
		"grow":   func(h *harness) { h.board.stumble = "two" },
		"begin":  func(h *harness) { h.board.faults["begin"] = bug },
		"append": func(h *harness) { h.board.faults["append"] = bug },
		"send":   func(h *harness) { h.thread, h.board.faults["send"] = "direct", bug },
		"edit":   func(h *harness) { h.thread, h.board.faults["edit"] = "direct", bug },
		"sign":   func(h *harness) { h.board.faults["sign"] = bug },
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				set(h)
				h.answer = says(2*time.Second, "one ", "two ", "three")
				h.ask(h.thread)
				h.settles("one two three")
			})
		})
	}
}

// TestThePreviewOfAnEndedRunIsKnown proves that the outbox ends a stream that began after its
// run had ended, although it looks for work before the preview knows that the begin is stored.
func TestThePreviewOfAnEndedRunIsKnown(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.platform.Limits.Sign = false
		h.board.faults["begin"] = []fault{{failure: none.failure, takes: 2 * time.Second}}
		h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
			h.mu.Lock()
			h.written = func() {
				if texts, _ := h.board.stands(); len(texts) == 0 {
					return
				}
				h.mu.Lock()
				h.written = nil
				h.mu.Unlock()
				h.scheduler.Wake(work.Deliveries, "", run.Thread)
				advance(time.Second)
			}
			h.mu.Unlock()
			return says(time.Second, "one")(ctx, run, s)
		}
		h.ask("t")
		h.settles("one")
		if diff := cmp.Diff([]string{"begin one", "end"}, h.board.did("")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestClocksMayDiffer proves the bounds of calls if the store's clock differs from the
// node's.
func TestClocksMayDiffer(t *testing.T) {
	withHarness(t, func(h *harness) {
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

// TestAnUnrecordedSign proves that it does not delay the removal of an earlier sign.
func TestAnUnrecordedSign(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
			switch h.attempts {
			case 1: // the sign is shown
				_, err := says(2*time.Second, "a beginning")(ctx, run, s)
				if err == nil {
					err = errFailed
				}
				return "", err
			case 2: // the thread is lost before the sign
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

// TestASignOfThePlatformEndsWithTheRun proves that a run clears it, however short the run is, whether
// it fails, and whether a sign of ours was shown.
func TestASignOfThePlatformEndsWithTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(context.Context, *runs.Run, turn.LivePreview) (string, error)
		signs  bool
		unread error
		want   []string
	}{
		"a quick answer":          {says(0, "one"), true, nil, []string{"send one", "unsign"}},
		"an answer without signs": {says(2*time.Second, "one"), false, nil, []string{"send one", "unsign"}},
		"a slow answer":           {says(2*time.Second, "one"), true, nil, []string{"sign", "send one", "unsign"}},
		"a failure":               {func(context.Context, *runs.Run, turn.LivePreview) (string, error) { return "", errHopeless }, false, nil, []string{"tell Sorry.", "unsign"}},
		"a failure of its input":  {nil, false, errHopeless, []string{"tell Sorry.", "unsign"}},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				h.platform.Limits.Preview, h.platform.Limits.Sign, h.board.selfSigned = adapters.PreviewOff, c.signs, true
				h.answer, h.unread = c.answer, c.unread
				h.ask("t")
				advance(30 * time.Second)
				if diff := cmp.Diff(c.want, h.board.did("")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestALateSign proves that the removal of a sign waits for the call of a process that
// ended, even if the next process has shown the sign again.
func TestALateSign(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.platform.Limits.Preview = adapters.PreviewOff
		h.board.faults["sign"] = []fault{{failure: adapters.Unclear, takes: 9 * time.Second, effect: 9 * time.Second}}
		h.answer = says(2*time.Second, "an answer")
		h.ask("t")
		advance(time.Second)
		h.kill()
		h.start()
		h.settles("an answer")
	})
}

// TestALateRepeatOfASign proves that the removal of a sign waits for the last call that shows it.
func TestALateRepeatOfASign(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.platform.Limits.Preview, h.platform.Limits.SignEvery = adapters.PreviewOff, 8*time.Second
		h.board.faults["sign"] = []fault{none, none, {failure: adapters.Unclear, effect: 4 * time.Second}}
		h.answer = says(17*time.Second, "an answer")
		h.ask("t")
		h.settles("an answer")
	})
}

// TestARerunHasOneSign proves that the repeated run of a stale reply has one sign of
// work.
func TestARerunHasOneSign(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.stale = "rerun"
		h.answer = says(3*time.Second, "the ", "answer")
		h.ask("t")
		advance(time.Second)
		h.ask("t")
		h.settles("the answer")
	})
}

// TestAFailedRemovalOfASign proves that it delays no answer.
func TestAFailedRemovalOfASign(t *testing.T) {
	withHarness(t, func(h *harness) {
		for range 20 {
			h.board.faults["unsign"] = append(h.board.faults["unsign"], notSent, lost)
		}
		h.answer = says(2*time.Second, "an answer")
		h.ask("t")
		advance(time.Minute)
		h.answer = func(context.Context, *runs.Run, turn.LivePreview) (string, error) { return "another", nil }
		h.ask("t")
		advance(time.Second)
		if texts, _ := h.board.stands(); len(texts) != 2 {
			t.Errorf("posts after a second: %q\n%q", texts, h.board.did(""))
		}
		h.board.locked(func() error { h.board.faults["unsign"] = nil; return nil })
		h.settles("an answer", "another")
	})
}

// TestSignsHaveTheirOwnPace proves that a rate limit of signs delays no post of the
// channel.
func TestSignsHaveTheirOwnPace(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.board.faults["unsign"] = []fault{{failure: adapters.RateLimited, scope: adapters.ScopeMethod, after: time.Minute}}
		h.answer = says(2*time.Second, "an answer")
		h.ask("t")
		advance(10 * time.Second)
		h.answer = func(context.Context, *runs.Run, turn.LivePreview) (string, error) { return "another", nil }
		h.ask("another")
		advance(time.Second)
		if texts, _ := h.board.stands(); len(texts) != 2 {
			t.Errorf("posts after a second: %q\n%q", texts, h.board.did(""))
		}
		h.settles("an answer", "another")
	})
}

// TestALongBlankText proves that it makes no file and no post.
func TestALongBlankText(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.platform.Limits.FileOver = 3
		h.answer = func(context.Context, *runs.Run, turn.LivePreview) (string, error) { return "      ", nil }
		h.ask("t")
		h.settles()
	})
}

// TestFileOverCountsCharacters proves this for a growing text and its final text.
func TestFileOverCountsCharacters(t *testing.T) {
	withHarness(t, func(h *harness) {
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

// notes returns an agent that notes a text every 900 ms and then answers.
func notes(texts ...string) func(context.Context, *runs.Run, turn.LivePreview) (string, error) {
	return func(_ context.Context, _ *runs.Run, s turn.LivePreview) (string, error) {
		for _, text := range texts {
			s.Note(text)
			advance(900 * time.Millisecond)
		}
		return "an answer", nil
	}
}

// TestNotesAreTheTextOfTheSign proves that the sign shows the agent's notes in one short line, and
// no more often than it may. A sign without a text does not change.
func TestNotesAreTheTextOfTheSign(t *testing.T) {
	for limit, want := range map[int][]string{
		12: {"sign reads a file", "sign calls a too…", "unsign", "send an answer"},
		0:  {"sign", "unsign", "send an answer"},
	} {
		withHarness(t, func(h *harness) {
			h.platform.Limits.Preview, h.platform.Limits.SignText = adapters.PreviewOff, limit
			h.answer = notes("reads a\n file", "thinks", "calls a tool of the house", " \n")
			h.ask("t")
			h.settles("an answer")
			got := h.board.did("")
			slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(order(a), order(b)) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("limit %d: %s", limit, diff)
			}
		})
	}
}

// order puts the removal of a sign before the post, because either may come first.
func order(call string) string {
	switch {
	case strings.HasPrefix(call, "sign"):
		return "1"
	case call == "unsign":
		return "2"
	}
	return "3"
}
