package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
)

// TestKeptAnswers: an answer is kept for its time, a failure is not kept, and Forget forgets.
func TestKeptAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept adapters.Kept[int]
		asked, fails := 0, errors.New("no")
		get := func() int {
			n, err := kept.Get(t.Context(), "a", func(context.Context) (int, time.Duration, error) {
				asked++
				return asked, 10 * time.Minute, fails
			})
			if !errors.Is(err, fails) {
				t.Errorf("the error is %v, want %v", err, fails)
			}
			return n
		}
		get()
		fails = nil
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 2}, {10*time.Minute - 1, 2}, {1, 3}, {time.Minute, 3}} {
			advance(step.after)
			if got := get(); got != step.want {
				t.Errorf("%v later: answer %d, want %d", step.after, got, step.want)
			}
		}
		kept.Forget()
		if got := get(); got != 4 {
			t.Errorf("after Forget: answer %d, want 4", got)
		}
	})
}

// TestKeptRestsWhileThePlatformHangs: callers do not wait a second each, and kept answers are still known.
func TestKeptRestsWhileThePlatformHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept adapters.Kept[string]
		asked, hangs := 0, false
		get := func(key string) (string, error) {
			return kept.Get(t.Context(), key, func(ctx context.Context) (string, time.Duration, error) {
				if asked++; hangs {
					<-ctx.Done()
					return "", 0, ctx.Err()
				}
				return key, time.Hour, nil
			})
		}
		_, _ = get("known")
		hangs = true
		begun := time.Now()
		for i := range 100 {
			if _, err := get(fmt.Sprint(i)); err == nil {
				t.Error("an answer came")
			}
		}
		if waited := time.Since(begun); waited != 5*time.Second || asked != 6 {
			t.Errorf("100 looks took %v and %d calls, want 5s and 6", waited, asked)
		}
		if _, err := get("other"); !errors.Is(err, adapters.ErrResting) {
			t.Errorf("during the rest: %v", err)
		}
		if got, err := get("known"); got != "known" || err != nil {
			t.Errorf("a kept answer is %q, %v during the rest", got, err)
		}
		hangs = false
		advance(5 * time.Second)
		if got, err := get("other"); got != "other" || err != nil {
			t.Errorf("after the rest: %q, %v", got, err)
		}
	})
}
