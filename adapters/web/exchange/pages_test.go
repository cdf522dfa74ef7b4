package exchange

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestAnswersAreBounded checks the bounds of one token and of all: a further answer waits until
// one of them has ended, or until its request ends.
func TestAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		var ends []func()
		begin := func(token string) {
			end, err := a.begin(t.Context(), Owner{Workspace: "ours", Token: token})
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		waits := func(token string) (begun chan struct{}) {
			begun = make(chan struct{})
			go func() {
				if end, err := a.begin(t.Context(), Owner{Workspace: "ours", Token: token}); err == nil {
					end()
				}
				close(begun)
			}()
			synctest.Wait()
			select {
			case <-begun:
				t.Errorf("an answer to %s begins", token)
			default:
			}
			return begun
		}
		for range maxAnswersOfOne {
			begin("a")
		}
		more := waits("a")
		begin("b")
		ends[0]()
		<-more
		for n := a.all; n < maxAnswers; n++ {
			begin(string(rune('c' + n)))
		}
		more = waits("z")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.begin(gone, Owner{Workspace: "ours", Token: "z"}); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the request: %v", err)
		}
		for _, end := range ends[1:] {
			end()
		}
		<-more
		if a.all != 0 || len(a.of) != 0 {
			t.Errorf("%d answers remain", a.all)
		}
	})
}
