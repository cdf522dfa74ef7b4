package live_test

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
)

// TestOtherPrograms: a hello with more connections than ours tells of another program with the same app. The next count, with a socket
// that replaces one, tells of its end. Our own connections are none of another's, also while one is replaced.
func TestOtherPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := testapp.FastTimes
		times.CountAgain = time.Minute
		var inbox memoryInbox
		first := runAdapter(t, slacktest.Options{}, 2, times, &inbox)
		first.up()
		first.sockets(2, 2)
		first.server.Disconnect("refresh_requested", slacktest.All)
		first.sockets(2, 4)
		for len(first.Others) > 0 {
			if n := <-first.Others; n != 0 {
				t.Errorf("%d connections of its own are another program's", n)
			}
		}
		second := runAdapterOn(t, first.server, 1, times, &inbox)
		second.up()
		counted := func() int {
			t.Helper()
			select {
			case n := <-second.Others:
				return n
			case <-second.ctx.Done():
				t.Fatalf("nothing is counted\n%s", second.Log())
				return 0
			}
		}
		if n := counted(); n < 1 || n > 2 {
			t.Errorf("%d connections of another program", n)
		}
		first.stop()
		n := counted()
		for n > 0 {
			n = counted()
		}
		if open, _ := second.server.Sockets(); open < 1 {
			t.Error("the count has left no socket")
		}
	})
}
