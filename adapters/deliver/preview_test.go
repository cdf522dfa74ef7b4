package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal/runs"
)

// TestAnAnswerGrowsInAStream proves that the text appears in one stream, without repeated
// text.
func TestAnAnswerGrowsInAStream(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		want := []string{"begin one", "sign", "append two", "append three", "end", "unsign"}
		if diff := cmp.Diff(want, h.board.did("")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnAnswerIsMeasuredOnce proves that only the first post of a run counts, be it a preview's or the answer's.
func TestAnAnswerIsMeasuredOnce(t *testing.T) {
	for name, set := range map[string]func(*harness){
		"a stream":        func(*harness) {},
		"edits":           func(h *harness) { h.platform.Limits.Preview = adapters.PreviewEdit },
		"a lost preview":  func(h *harness) { h.board.faults["begin"] = []fault{lost} },
		"without preview": func(h *harness) { h.platform.Limits.Preview = adapters.PreviewOff },
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				set(h)
				h.answer = says(2*time.Second, "one ", "two ", "three")
				asked := time.Now()
				h.ask("t")
				h.settles("one two three")
				if diff := cmp.Diff([]time.Time{asked.UTC()}, h.answered); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestTheEndOfEachDeliveryIsObserved once, however often its text has grown and whichever attempt it is of.
func TestTheEndOfEachDeliveryIsObserved(t *testing.T) {
	retries := func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
		if run.Attempts == 0 {
			_, _ = says(2*time.Second, "one ", "two ")(ctx, run, s)
			return "", errFailed
		}
		return says(2*time.Second, "one ", "two ", "three")(ctx, run, s)
	}
	for name, test := range map[string]struct {
		set  func(*harness)
		want []string
	}{
		"a stream":           {func(*harness) {}, []string{"post sent", "preview sent", "unsign sent"}},
		"edits":              {func(h *harness) { h.platform.Limits.Preview = adapters.PreviewEdit }, []string{"post sent", "preview sent", "unsign sent"}},
		"two attempts":       {func(h *harness) { h.answer = retries }, []string{"post sent", "preview sent", "unsign sent"}},
		"a refused stream":   {func(h *harness) { h.board.faults["begin"] = []fault{permanent} }, []string{"post sent", "preview failed", "preview sent", "unsign sent"}},
		"an unclear preview": {func(h *harness) { h.board.faults["begin"] = []fault{lost} }, []string{"post sent", "preview failed", "unsign sent"}},
		"a removed preview": {func(h *harness) {
			whole := h.answer
			h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
				h.answer = whole
				_, _ = says(2*time.Second, "one ", "two ")(ctx, run, s)
				return "", errInterrupted
			}
		}, []string{"post sent", "preview sent", "preview sent", "remove sent", "unsign sent", "unsign sent"}},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				h.answer = says(2*time.Second, "one ", "two ", "three")
				test.set(h)
				h.ask("t")
				advance(time.Minute)
				h.mu.Lock()
				defer h.mu.Unlock()
				slices.Sort(h.observed)
				if diff := cmp.Diff(test.want, h.observed); diff != "" {
					t.Errorf("%s\n%q", diff, h.board.did(""))
				}
			})
		})
	}
}

// TestWithoutStreamsThePostIsEdited covers a platform that refuses streams, and
// configured edits.
func TestWithoutStreamsThePostIsEdited(t *testing.T) {
	for name, set := range map[string]func(*harness){
		"refused":    func(h *harness) { h.board.faults["begin"] = []fault{permanent} },
		"configured": func(h *harness) { h.platform.Limits.Preview = adapters.PreviewEdit },
		"known":      func(h *harness) { h.thread = "direct" },
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				set(h)
				h.answer = says(2*time.Second, "one ", "two ", "three")
				h.ask(h.thread)
				h.settles("one two three")
				if begun := h.board.did("begin"); name != "refused" && len(begun) > 0 {
					t.Errorf("streams began: %q", begun)
				}
				if diff := cmp.Diff([]string{"send one"}, h.board.did("send")); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"edit one two", "edit one two three"}, h.board.did("edit")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestAPostAnswersItsMessage proves that each post carries the address of the last message
// of its turn.
func TestAPostAnswersItsMessage(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.answer = says(2*time.Second, "one ", "two")
		for range 2 {
			h.ask("t")
			advance(time.Minute)
		}
		h.settles("one two", "one two")
		for i, p := range h.board.posts {
			if want := (adapters.Address{Channel: "C1", Place: fmt.Sprint("t question", i+1)}); p.to != want {
				t.Errorf("post %d has the address %+v, want %+v", i+1, p.to, want)
			}
		}
	})
}

// TestNoPreview covers an answer without chunks, and previews that are off.
func TestNoPreview(t *testing.T) {
	for name, set := range map[string]func(*harness){
		"whole": func(h *harness) {
			h.answer = func(context.Context, *runs.Run, turn.LivePreview) (string, error) { return "at once", nil }
		},
		"off": func(h *harness) {
			h.platform.Limits.Preview, h.platform.Limits.Sign = adapters.PreviewOff, false
			h.answer = says(2*time.Second, "at ", "once")
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(h *harness) {
				set(h)
				h.ask("t")
				h.settles("at once")
				if diff := cmp.Diff([]string{"send at once"}, h.board.did("")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestTheFinalTextWins proves that the final text replaces the shown text.
func TestTheFinalTextWins(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
			_, err := says(2*time.Second, strings.Repeat("a draft\n", 20), "that is ", "dropped")(ctx, run, s)
			return "the answer", err
		}
		h.ask("t")
		h.settles("the answer")
	})
}

// TestALongAnswerContinuesInAnotherPost also proves that no shown text is sent again.
func TestALongAnswerContinuesInAnotherPost(t *testing.T) {
	withHarness(t, func(h *harness) {
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("line %d\n", i))
		}
		h.answer = says(time.Second, lines...)
		h.ask("t")
		whole := strings.Join(lines, "")
		h.settles(h.board.Format(whole, nil)...)
		if edits := h.board.did("edit"); len(edits) > 0 {
			t.Errorf("the shown text was sent again: %q", edits)
		}
	})
}

// TestShownTextNeedsNoPace proves that only the last post of a long answer waits for the
// pace.
func TestShownTextNeedsNoPace(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.platform.Limits.PostRate, h.platform.Limits.Sign = 0.1, false // a post every 10 s
		whole := strings.Repeat("a line of it\n", 40)
		h.answer = says(4*time.Minute, whole, "end")
		h.ask("t")
		advance(8*time.Minute + 11*time.Second)
		texts, wrong := h.board.stands()
		if strings.Join(texts, "") != whole+"end" || len(wrong) > 0 {
			t.Errorf("%q, %q\n%s", texts, wrong, strings.Join(h.board.did(""), "\n"))
		}
	})
}

// TestAnOldStreamIsEdited proves that a post grows by edits after the platform has ended its
// stream.
func TestAnOldStreamIsEdited(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.board.closes, h.board.limit = 300*time.Second, 10_000
		chunks := []string{"begin "}
		for i := range 50 {
			chunks = append(chunks, fmt.Sprintf("%d ", i), "\n")
		}
		h.answer = says(10*time.Second, chunks...)
		h.ask("t")
		advance(10 * time.Minute)
		shown, _ := h.board.stands()
		if whole := strings.Join(chunks, ""); len(shown) != 1 || len(shown[0]) < len(whole)/2 || !strings.HasPrefix(whole, shown[0]) {
			t.Errorf("while it grows: %q", shown)
		}
		advance(8 * time.Minute)
		h.settles(strings.Join(chunks, ""))
	})
}

// TestRefusedEditsAreReplacedByPosts proves that the text is posted again, and that the
// preview is removed.
func TestRefusedEditsAreReplacedByPosts(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.board.chance = func(does string) fault {
			if does == "edit" {
				return permanent
			}
			return none
		}
		h.board.faults["append"] = []fault{lost}
		h.answer = says(2*time.Second, strings.Repeat("line of it\n", 15), "two ", "three")
		h.ask("t")
		h.settles(h.board.Format(strings.Repeat("line of it\n", 15)+"two three", nil)...)
	})
}

// TestARunWithoutAnswerRemovesItsPreview proves that it leaves nothing on the platform.
func TestARunWithoutAnswerRemovesItsPreview(t *testing.T) {
	for _, end := range []error{errHopeless, errInterrupted, errFailed} {
		t.Run(end.Error(), func(t *testing.T) {
			withHarness(t, func(h *harness) {
				first := true
				h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
					if first {
						first = false
						_, _ = says(2*time.Second, "a beginning ", "of it")(ctx, run, s)
						return "", end
					}
					return says(2*time.Second, "the ", "answer")(ctx, run, s)
				}
				h.ask("t")
				if errors.Is(end, errHopeless) {
					h.settles()
					if diff := cmp.Diff([]string{"U1: Sorry."}, h.board.told); diff != "" {
						t.Error(diff)
					}
					return
				}
				h.settles("the answer")
			})
		})
	}
}

// TestARetryTakesOverThePost proves that a retry continues the post of the attempt
// before.
func TestARetryTakesOverThePost(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
			if run.Attempts == 0 {
				_, _ = says(2*time.Second, "a beginning ", "of it")(ctx, run, s)
				return "", errFailed
			}
			return says(20*time.Second, "the ", "answer")(ctx, run, s)
		}
		h.ask("t")
		h.settles("the answer")
		if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
			t.Errorf("%d posts: %q", n, h.board.did(""))
		}
	})
}

// oneGrows sets the rate of posts and the answers: that of the thread "slow" grows by one text each
// second, and the others are whole at once.
func (h *harness) oneGrows(rate float64, texts ...string) {
	h.platform.Limits.PostRate, h.platform.Limits.Sign = rate, false
	h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
		if run.ThreadKey == "slow" {
			return says(time.Second, texts...)(ctx, run, s)
		}
		return "whole in " + string(run.ThreadKey), nil
	}
}

// TestFinalPostsGoFirst proves that previews wait for final posts. Both share one pace.
func TestFinalPostsGoFirst(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.oneGrows(0.1, strings.Split(strings.Repeat("word ", 60), "")...) // a post every 10 s
		h.ask("slow")
		advance(time.Second)
		for i := range 5 {
			h.ask(fmt.Sprint("t", i))
		}
		advance(62 * time.Second)
		texts, _ := h.board.stands()
		if len(texts) != 6 {
			t.Errorf("posts after a minute: %q\n%s", texts, strings.Join(h.board.did(""), "\n"))
		}
	})
}

// TestThePaceAloneDelaysAnAnswer proves that the end of a preview, whose calls have ended, waits
// for its place in the pace and no longer.
func TestThePaceAloneDelaysAnAnswer(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.oneGrows(0.5, "a ", "growing ", "answer") // a post every 2 s
		h.ask("slow")
		advance(time.Second)
		for i := range 3 {
			h.ask(fmt.Sprint("t", i))
		}
		advance(9 * time.Second)
		texts, wrong := h.board.stands()
		if len(texts) != 4 || len(wrong) > 0 || !slices.Contains(texts, "a growing answer") {
			t.Errorf("posts after ten seconds: %q, %q\n%s", texts, wrong, strings.Join(h.board.did(""), "\n"))
		}
	})
}

// TestAnyFaultEndsInTheAnswer proves that, after any failures and ends of the process,
// the board shows the last attempt's answer and nothing else.
func TestAnyFaultEndsInTheAnswer(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			withHarness(t, func(h *harness) { h.faultyRun(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func (h *harness) faultyRun(random *rand.Rand) {
	var mu sync.Mutex // guards random
	h.board.closes = []time.Duration{0, 30 * time.Second}[random.IntN(2)]
	h.platform.Limits.PostRate = []float64{0, 1}[random.IntN(2)]
	if random.IntN(3) == 0 {
		h.platform.Limits.Preview = adapters.PreviewEdit
	}
	refuses := random.IntN(8) == 0
	faulty := true
	h.board.chance = func(does string) fault {
		mu.Lock()
		defer mu.Unlock()
		if refuses && does == "edit" {
			return permanent
		}
		if !faulty || random.IntN(4) > 0 {
			return none
		}
		faults := []fault{lost, arrived, {failure: adapters.Unclear, effect: 4 * time.Second}, notSent,
			{failure: adapters.RateLimited, after: 2 * time.Second}, {failure: none.failure, takes: 3 * time.Second}}
		return faults[random.IntN(len(faults))]
	}
	var answer string
	h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
		mu.Lock()
		var chunks []string
		for range random.IntN(30) {
			chunks = append(chunks, fmt.Sprintf("%d%s", random.IntN(1000), []string{" ", "\n", " and more "}[random.IntN(3)]))
		}
		chunks = append(chunks, "end")
		every := time.Duration(random.IntN(3000)) * time.Millisecond
		fails := random.IntN(5) == 0 && faulty
		mu.Unlock()
		text, err := says(every, chunks...)(ctx, run, s)
		if fails && err == nil {
			err = errFailed
		}
		if err == nil {
			answer = text
		}
		return text, err
	}
	h.ask("t")
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	for range roll(4) {
		advance(time.Duration(roll(40_000)) * time.Millisecond)
		h.kill()
		h.start()
	}
	advance(time.Minute)
	mu.Lock()
	faulty = false
	mu.Unlock()
	advance(20 * time.Minute)
	texts, _ := h.board.stands()
	if got := strings.Join(texts, ""); got != answer || answer == "" {
		h.Errorf("on the board:\n%q\nthe answer:\n%q\ncalls:\n%s", texts, answer, strings.Join(h.board.did(""), "\n"))
	}
	h.settles(texts...)
}

// TestALateEditIsAwaited proves that the final text waits for the edit, which would
// overwrite it.
func TestALateEditIsAwaited(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.platform.Limits.Preview = adapters.PreviewEdit
		h.board.faults["edit"] = []fault{{failure: adapters.Unclear, effect: 12 * time.Second}}
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
	})
}

// TestALateStreamIsFound proves that it is found without a key, because it belongs to no
// delivery.
func TestALateStreamIsFound(t *testing.T) {
	withHarness(t, func(h *harness) {
		h.board.faults["begin"] = []fault{{failure: adapters.Unclear, effect: 8 * time.Second}}
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
			t.Errorf("%d posts: %q", n, h.board.did(""))
		}
	})
}

// TestARestartTakesOverThePost proves that the next process takes over the post, and
// waits for calls that may still take effect.
func TestARestartTakesOverThePost(t *testing.T) {
	for _, preview := range []adapters.Preview{adapters.PreviewStream, adapters.PreviewEdit} {
		t.Run(string(preview), func(t *testing.T) {
			withHarness(t, func(h *harness) {
				h.platform.Limits.Preview = preview
				late := fault{failure: adapters.Unclear, effect: 12 * time.Second}
				h.board.faults["append"], h.board.faults["edit"] = []fault{late}, []fault{late}
				h.answer = says(2*time.Second, "a draft ", "of it, ", "and more")
				h.ask("t")
				advance(2500 * time.Millisecond)
				h.kill()
				h.answer = says(time.Second, "the ", "answer")
				h.start()
				h.settles("the answer")
				if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
					t.Errorf("%d posts: %q", n, h.board.did(""))
				}
			})
		})
	}
}

// TestTheNextAttemptTakesOverThePost proves that a further attempt in the same process changes
// the post without a wait, because every earlier call about it has ended.
func TestTheNextAttemptTakesOverThePost(t *testing.T) {
	for _, preview := range []adapters.Preview{adapters.PreviewStream, adapters.PreviewEdit} {
		t.Run(string(preview), func(t *testing.T) {
			withHarness(t, func(h *harness) {
				h.platform.Limits.Preview, h.stale = preview, "rerun"
				h.answer = func(ctx context.Context, run *runs.Run, s turn.LivePreview) (string, error) {
					return says(2*time.Second, fmt.Sprintf("answer %d ", h.attempts), "of two")(ctx, run, s)
				}
				h.ask("t")
				advance(time.Second)
				h.ask("t")
				advance(8 * time.Second)
				texts, _ := h.board.stands()
				if diff := cmp.Diff([]string{"answer 2 of two"}, texts); diff != "" {
					t.Errorf("%s\ncalls: %q", diff, h.board.did(""))
				}
				h.settles("answer 2 of two")
			})
		})
	}
}
