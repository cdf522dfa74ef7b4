package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/ingest/journal"
)

// TestAnAnswerIsShownWhileItGrows in one stream, without repeated text.
func TestAnAnswerIsShownWhileItGrows(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		want := []string{"begin one", "sign", "append two", "append three", "end", "unsign"}
		if diff := cmp.Diff(want, h.board.did("")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWithoutStreamsThePostIsEdited if the platform refuses streams, or edits are
// configured.
func TestWithoutStreamsThePostIsEdited(t *testing.T) {
	for name, set := range map[string]func(*house){
		"refused":    func(h *house) { h.board.faults["begin"] = []fault{permanent} },
		"configured": func(h *house) { h.platform.Limits.Preview = adapters.PreviewEdit },
		"known":      func(h *house) { h.thread = "direct" },
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				set(h)
				h.answer = says(2*time.Second, "one ", "two ", "three")
				h.ask(h.thread)
				h.settles("one two three")
				if begun := h.board.did("begin"); name != "refused" && len(begun) > 0 {
					t.Errorf("streams were tried: %q", begun)
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

// TestNothingIsShown if the answer has no chunks, or previews are off.
func TestNothingIsShown(t *testing.T) {
	for name, set := range map[string]func(*house){
		"whole": func(h *house) {
			h.answer = func(context.Context, *journal.Run, turn.Showing) (string, error) { return "at once", nil }
		},
		"off": func(h *house) {
			h.platform.Limits.Preview, h.platform.Limits.Sign = adapters.PreviewOff, false
			h.answer = says(2*time.Second, "at ", "once")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
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

// TestTheFinalTextWins over the shown text.
func TestTheFinalTextWins(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			_, err := says(2*time.Second, strings.Repeat("a draft\n", 20), "that is ", "dropped")(ctx, run, s)
			return "the answer", err
		}
		h.ask("t")
		h.settles("the answer")
	})
}

// TestALongAnswer goes on in a further post.
func TestALongAnswer(t *testing.T) {
	inHouse(t, func(h *house) {
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("line %d\n", i))
		}
		h.answer = says(time.Second, lines...)
		h.ask("t")
		whole := strings.Join(lines, "")
		h.settles(h.board.Format(whole, nil)...)
		if edits := h.board.did("edit"); len(edits) > 0 {
			t.Errorf("the shown text was stated again: %q", edits)
		}
	})
}

// TestWhatStandsThereTakesNoPlace in the pace: only the last post of a long answer waits.
func TestWhatStandsThereTakesNoPlace(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.PostRate, h.platform.Limits.Sign, h.platform.Limits.StreamAge = 0.1, false, 0 // a post every 10 s
		whole := strings.Repeat("a line of it\n", 40)
		h.answer = says(4*time.Minute, whole, "end")
		h.ask("t")
		pass(8*time.Minute + 11*time.Second)
		texts, wrong := h.board.stands()
		if strings.Join(texts, "") != whole+"end" || len(wrong) > 0 {
			t.Errorf("%q, %q\n%s", texts, wrong, strings.Join(h.board.did(""), "\n"))
		}
	})
}

// TestAnOldStreamIsEndedBeforeThePlatformDoes, at the end of a line if possible. The text
// goes on in another stream.
func TestAnOldStreamIsEndedBeforeThePlatformDoes(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.closes, h.board.limit = 300*time.Second, 10_000
		chunks := []string{"begin "}
		for i := range 50 {
			chunks = append(chunks, fmt.Sprintf("%d ", i), "\n")
		}
		h.answer = says(10*time.Second, chunks...)
		h.ask("t")
		pass(18 * time.Minute)
		texts, _ := h.board.stands()
		h.settles(texts...)
		if got := strings.Join(texts, ""); got != strings.Join(chunks, "") || len(texts) != 4 {
			t.Errorf("%d posts: %q", len(texts), texts)
		}
		if edits := h.board.did("edit"); len(edits) > 0 || !strings.HasSuffix(texts[0], "\n") {
			t.Errorf("edits %q, the first post is %q", edits, texts[0])
		}
	})
}

// TestWhereEditsAreRefused the text is posted again, and the preview is removed.
func TestWhereEditsAreRefused(t *testing.T) {
	inHouse(t, func(h *house) {
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

// TestARunWithoutAnAnswerLeavesNothing on the platform.
func TestARunWithoutAnAnswerLeavesNothing(t *testing.T) {
	for _, end := range []error{errHopeless, errInterrupted, errFailed} {
		t.Run(end.Error(), func(t *testing.T) {
			inHouse(t, func(h *house) {
				first := true
				h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
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

// TestARetryTakesOverThePost of the attempt before.
func TestARetryTakesOverThePost(t *testing.T) {
	inHouse(t, func(h *house) {
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			if run.Attempts == 0 {
				_, _ = says(2*time.Second, "a beginning ", "of it")(ctx, run, s)
				return "", errFailed
			}
			return says(20*time.Second, "the ", "answer")(ctx, run, s)
		}
		h.ask("t")
		h.settles("the answer")
		if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
			t.Errorf("%d posts were made: %q", n, h.board.did(""))
		}
	})
}

// TestFinalsGoFirst: previews wait for final posts. Both share one pace.
func TestFinalsGoFirst(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.PostRate, h.platform.Limits.Sign = 0.1, false // a post every 10 s
		h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
			if run.ThreadKey == "slow" {
				return says(time.Second, strings.Split(strings.Repeat("word ", 60), "")...)(ctx, run, s)
			}
			return "whole in " + string(run.ThreadKey), nil
		}
		h.ask("slow")
		pass(time.Second)
		for i := range 5 {
			h.ask(fmt.Sprint("t", i))
		}
		pass(62 * time.Second)
		texts, _ := h.board.stands()
		if len(texts) != 6 {
			t.Errorf("a minute later there are %q\n%s", texts, strings.Join(h.board.did(""), "\n"))
		}
	})
}

// TestAnyTroubleEndsInTheAnswer: after any failures and ends of the process, the board
// shows the last attempt's answer and nothing else.
func TestAnyTroubleEndsInTheAnswer(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inHouse(t, func(h *house) { h.trouble(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func (h *house) trouble(random *rand.Rand) {
	var mu sync.Mutex // of random
	h.board.closes = []time.Duration{0, 30 * time.Second}[random.IntN(2)]
	h.platform.Limits.StreamAge = []time.Duration{0, 40 * time.Second, 25 * time.Second}[random.IntN(3)]
	h.platform.Limits.PostRate = []float64{0, 1}[random.IntN(2)]
	if random.IntN(3) == 0 {
		h.platform.Limits.Preview = adapters.PreviewEdit
	}
	refuses := random.IntN(8) == 0
	troubled := true
	h.board.chance = func(does string) fault {
		mu.Lock()
		defer mu.Unlock()
		if refuses && does == "edit" {
			return permanent
		}
		if !troubled || random.IntN(4) > 0 {
			return none
		}
		faults := []fault{lost, arrived, {failure: adapters.Unclear, effect: 4 * time.Second}, notSent,
			{failure: adapters.RateLimited, after: 2 * time.Second}, {failure: none.failure, takes: 3 * time.Second}}
		return faults[random.IntN(len(faults))]
	}
	var answer string
	h.answer = func(ctx context.Context, run *journal.Run, s turn.Showing) (string, error) {
		mu.Lock()
		var chunks []string
		for range random.IntN(30) {
			chunks = append(chunks, fmt.Sprintf("%d%s", random.IntN(1000), []string{" ", "\n", " and more "}[random.IntN(3)]))
		}
		chunks = append(chunks, "end")
		every := time.Duration(random.IntN(3000)) * time.Millisecond
		fails := random.IntN(5) == 0 && troubled
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
		pass(time.Duration(roll(40_000)) * time.Millisecond)
		h.kill()
		h.start()
	}
	pass(time.Minute)
	mu.Lock()
	troubled = false
	mu.Unlock()
	pass(20 * time.Minute)
	texts, _ := h.board.stands()
	if got := strings.Join(texts, ""); got != answer || answer == "" {
		h.Errorf("on the board:\n%q\nthe answer:\n%q\ncalls:\n%s", texts, answer, strings.Join(h.board.did(""), "\n"))
	}
	h.settles(texts...)
}

// TestALateChangeIsAwaited before the final text is stated, because it would overwrite
// that.
func TestALateChangeIsAwaited(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.Limits.Preview = adapters.PreviewEdit
		h.board.faults["edit"] = []fault{{failure: adapters.Unclear, effect: 12 * time.Second}}
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
	})
}

// TestALateStreamIsFound without a key: it belongs to no delivery.
func TestALateStreamIsFound(t *testing.T) {
	inHouse(t, func(h *house) {
		h.board.faults["begin"] = []fault{{failure: adapters.Unclear, effect: 8 * time.Second}}
		h.answer = says(2*time.Second, "one ", "two ", "three")
		h.ask("t")
		h.settles("one two three")
		if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
			t.Errorf("%d posts were made: %q", n, h.board.did(""))
		}
	})
}

// TestAKilledProcessIsFollowed: the next process takes over the post, and waits for calls
// that may still take effect.
func TestAKilledProcessIsFollowed(t *testing.T) {
	for _, preview := range []adapters.Preview{adapters.PreviewStream, adapters.PreviewEdit} {
		t.Run(string(preview), func(t *testing.T) {
			inHouse(t, func(h *house) {
				h.platform.Limits.Preview = preview
				late := fault{failure: adapters.Unclear, effect: 12 * time.Second}
				h.board.faults["append"], h.board.faults["edit"] = []fault{late}, []fault{late}
				h.answer = says(2*time.Second, "a draft ", "of it, ", "and more")
				h.ask("t")
				pass(2500 * time.Millisecond)
				h.kill()
				h.answer = says(time.Second, "the ", "answer")
				h.start()
				h.settles("the answer")
				if n := len(h.board.did("begin")) + len(h.board.did("send")); n != 1 {
					t.Errorf("%d posts were made: %q", n, h.board.did(""))
				}
			})
		})
	}
}
