package call_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/slack/call"
)

// TestPace checks that the background keeps a steady pace after a burst and leaves a fifth of
// a minute's calls, and that urgent calls do not wait.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, urgent := time.Now(), make(chan struct{})
		close(urgent)
		var pace call.Pace
		wait := func(urgent <-chan struct{}) int {
			if err := pace.Wait(t.Context(), urgent); err != nil {
				t.Fatal(err)
			}
			return int(time.Since(begun).Seconds())
		}
		check := func(what string, got, want int) {
			t.Helper()
			if got != want {
				t.Errorf("%s: after %d s, want %d s", what, got, want)
			}
		}
		for i := range 20 {
			check(fmt.Sprint("in the background, ", i), wait(nil), 0)
		}
		for i := range 10 {
			check(fmt.Sprint("at a steady pace, ", i), wait(nil), (i+1)*61/40)
		}
		hurried := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(hurried) })
		check("becomes urgent", wait(hurried), 16)
		for i := range 39 {
			check(fmt.Sprint("urgent, ", i), wait(urgent), 16)
		}
		check("in the background behind urgent calls", wait(nil), 77)
	})
}
