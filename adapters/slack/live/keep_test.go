package live_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/live"
	"parley/adapters/slack/slacktest"
)

// TestReplacementOpensBeforeTheOldSocketCloses sends events meanwhile.
func TestReplacementOpensBeforeTheOldSocketCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for reason, grace := range map[string]time.Duration{"warning": 400 * time.Millisecond, "refresh_requested": 4 * time.Second} {
			var inbox memoryInbox
			options := slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: grace}}
			p := runAdapter(t, options, 1, testapp.FastTimes, &inbox)
			p.up()
			var deliveries []slacktest.Delivery
			var want []string
			for round := range 5 {
				for n := range 20 {
					text := fmt.Sprintf("%s %d/%02d", reason, round, n)
					want = append(want, text)
					deliveries = append(deliveries, p.say(text))
					if n == 10 && p.server.Disconnect(reason, slacktest.All) != 1 {
						t.Error("want one open socket")
					}
				}
				p.sockets(1, round+2)
			}
			for i, d := range deliveries {
				if result := p.resultOf(d); result.State != slacktest.Acked {
					t.Errorf("%s: %+v", want[i], result)
				}
			}
			if diff := cmp.Diff(want, inbox.texts()); diff != "" {
				t.Error(diff)
			}
			if _, most := p.server.Sockets(); most != 2 || p.server.Missed() != 0 || len(p.Ups) != 0 {
				t.Errorf("%s: at most %d sockets, %d events missed, %d gaps", reason, most, p.server.Missed(), len(p.Ups))
			}
		}
	})
}

func TestSeveralSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inbox memoryInbox
		p := runAdapter(t, slacktest.Options{}, 3, testapp.FastTimes, &inbox)
		p.sockets(3, 3)
		p.up()
		var want []string
		for n := range 60 {
			text := fmt.Sprint("word ", n)
			want = append(want, text)
			defer p.resultOf(p.say(text))
		}
		over := map[int]int{}
		for _, ack := range p.acks(60) {
			over[ack.Socket]++
		}
		if len(over) != 3 || len(inbox.texts()) != len(want) {
			t.Errorf("%v, %d texts", over, len(inbox.texts()))
		}
		p.server.Cut(1)
		p.sockets(3, 4)
		if len(p.Ups) != 0 {
			t.Error("the loss of one socket of three is a gap")
		}
	})
}

func TestHalfOpenSocketIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := testapp.FastTimes
		times.Ping, times.Silence = 20*time.Millisecond, 200*time.Millisecond
		options := slacktest.Options{SocketOptions: slacktest.SocketOptions{PingEvery: 50 * time.Millisecond, AckWithin: 100 * time.Millisecond, Repeat: []time.Duration{0, time.Second}}}
		p := runAdapter(t, options, 1, times, &memoryInbox{})
		p.up()
		p.server.Mute(1)
		d := p.say("into the void")
		p.up()
		if result := p.resultOf(d); result.State != slacktest.Acked {
			t.Errorf("%+v", result)
		}
		p.sockets(1, 2)
	})
}

// TestQuietSocketStaysOpen uses a Slack that sends no pings and answers ours.
func TestQuietSocketStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := testapp.FastTimes
		times.Ping, times.Silence = time.Second, 3*time.Second
		p := runAdapter(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{PingEvery: time.Hour}}, 1, times, &memoryInbox{})
		p.up()
		<-time.After(10 * times.Silence)
		p.resultOf(p.say("hi"))
		if acks := p.acks(1); acks[0].Socket != 1 {
			t.Errorf("the socket was replaced\n%s", p.Log())
		}
	})
}

// TestSocketsThatEndAtOnceBackOff uses a proxy that cuts each socket after Slack's hello.
func TestSocketsThatEndAtOnceBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := runAdapter(t, slacktest.Options{}, 1, live.Times{BackoffMax: 3 * time.Second}, &memoryInbox{})
		begun := time.Now()
		for range 12 {
			p.up()
			p.server.Cut(1)
		}
		p.up()
		if took := time.Since(begun); took < 3*time.Second {
			t.Errorf("12 sockets were opened in %v", took)
		}
		<-time.After(time.Minute)
		p.server.Cut(1)
		cut := time.Now()
		p.up()
		if took := time.Since(cut); took > time.Second {
			t.Errorf("a socket that lasted a minute was replaced after %v", took)
		}
	})
}

// TestNoMoreThanTenConnections asks for the replacement of all sockets at once.
func TestNoMoreThanTenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{7, 8} {
			options := slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: 100 * time.Millisecond}}
			p := runAdapter(t, options, n, testapp.FastTimes, &memoryInbox{})
			for round := range 3 {
				p.sockets(n, n*(round+1))
				p.server.Disconnect("warning", slacktest.All)
				p.resultOf(p.say("hi"))
			}
			p.sockets(n, 4*n)
			if _, most := p.server.Sockets(); most > 10 || most <= n || len(p.Ups) != 1 || strings.Contains(p.Log(), "too_many") {
				t.Errorf("%d configured: at most %d open, %d times up\n%s", n, most, len(p.Ups), p.Log())
			}
		}
	})
}

// TestReplacementWaitsForASpareConnection uses a Slack that closes no socket with the
// reason "warning".
func TestReplacementWaitsForASpareConnection(t *testing.T) {
	for name, free := range map[string]func(*testapp.Memory){
		"a spare connection closes":   func(s *testapp.Memory) { s.Cut(1) },
		"slack closes the old socket": func(*testapp.Memory) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			times := testapp.FastTimes
			times.Drain = time.Hour
			p := runAdapter(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: time.Hour}}, 8, times, &memoryInbox{})
			p.sockets(8, 8)
			p.server.Disconnect("warning", 2)
			p.sockets(10, 10)
			p.server.Disconnect("refresh_requested", 1) // Slack closes it after six minutes
			synctest.Wait()
			free(p.server)
			p.sockets(10, 11)
			if err := p.server.AwaitFresh(p.ctx, 8); err != nil {
				t.Errorf("%s: %v\n%s", name, err, p.Log())
			}
			if len(p.Ups) != 1 || strings.Contains(p.Log(), "too_many") {
				t.Errorf("%s: %d times up\n%s", name, len(p.Ups), p.Log())
			}
		})
	}
}

// TestFramesOfTheOldSocketComeFirst delays the frames of the old socket.
func TestFramesOfTheOldSocketComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inbox memoryInbox
		server := testapp.StartMemory(t, slacktest.Options{})
		server.Listener.ReadDelay.Store(int64(300 * time.Millisecond))
		p := runAdapterOn(t, server, 1, testapp.FastTimes, &inbox)
		p.up()
		server.Listener.ReadDelay.Store(0)
		server.Disconnect("warning", 1)
		one := p.say("one")
		if err := server.AwaitFresh(p.ctx, 1); err != nil {
			t.Fatal(err)
		}
		p.resultOf(p.say("two"))
		p.resultOf(one)
		if diff := cmp.Diff([]string{"one", "two"}, inbox.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReplacedSocketIsClosedAfterTheDrain uses a Slack that closes no socket itself.
func TestReplacedSocketIsClosedAfterTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := testapp.FastTimes
		times.Drain = 10 * time.Second
		p := runAdapter(t, slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: time.Hour}}, 1, times, &memoryInbox{})
		p.up()
		p.server.Disconnect("warning", 1)
		p.sockets(2, 2)
		replaced := time.Now()
		p.sockets(1, 2)
		if took := time.Since(replaced).Round(time.Second); took != times.Drain {
			t.Errorf("closed after %v, want %v", took, times.Drain)
		}
	})
}

// TestReplacementAtTheLimitOpensWhenSlackClosesTheOldSocket opens the app's other nine
// connections elsewhere.
func TestReplacementAtTheLimitOpensWhenSlackClosesTheOldSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := slacktest.Options{SocketOptions: slacktest.SocketOptions{Grace: 50 * time.Millisecond}}
		p := runAdapter(t, options, 1, testapp.FastTimes, &memoryInbox{})
		p.up()
		runAdapterOn(t, p.server, 8, testapp.FastTimes, &memoryInbox{})
		runAdapterOn(t, p.server, 1, testapp.FastTimes, &memoryInbox{})
		p.sockets(10, 10)
		p.server.Disconnect("warning", 1)
		p.up()
		p.sockets(10, 11)
		if !strings.Contains(p.Log(), "too_many") {
			t.Error(p.Log())
		}
	})
}

func TestWorkspaceWithoutSocketsIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := testapp.FastTimes
		times.DownAfter = 50 * time.Millisecond
		var gone sync.Mutex
		down := false
		options := slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
			gone.Lock()
			defer gone.Unlock()
			if down && c.Method == "apps.connections.open" {
				return slacktest.Fault{Status: http.StatusServiceUnavailable}
			}
			return slacktest.Fault{}
		}}
		p := runAdapter(t, options, 2, times, &memoryInbox{})
		p.up()
		p.sockets(2, 2)
		set := func(to bool) {
			gone.Lock()
			defer gone.Unlock()
			down = to
		}
		set(true)
		p.server.Cut(slacktest.All)
		select {
		case err := <-p.Downs:
			if !strings.Contains(err.Error(), "no socket is open") {
				t.Errorf("%v", err)
			}
		case <-p.ctx.Done():
			t.Fatal(p.Log())
		}
		set(false)
		p.up()
		if warnings := strings.Count(p.Log(), "level=WARN"); warnings > 3 {
			t.Errorf("%d warnings:\n%s", warnings, p.Log())
		}
	})
}

// TestStopAcknowledgesAcceptedFrames stops Run while a frame is in flight.
func TestStopAcknowledgesAcceptedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := newGatedInbox()
		p := runAdapter(t, slacktest.Options{}, 1, testapp.FastTimes, inbox)
		p.up()
		d := p.say("hi")
		<-inbox.entered
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			p.stop()
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("Run ended with a frame in flight")
		default:
		}
		close(inbox.open)
		<-stopped
		if result := p.resultOf(d); result.State != slacktest.Acked || result.Attempts != 1 {
			t.Errorf("%+v", result)
		}
		p.sockets(0, 1)
	})
}

// TestStopClosesEverySocketSoon also stops a socket that is being replaced, and a
// half-open one. The bubble fails if the test leaves a goroutine.
func TestStopClosesEverySocketSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := fastRetries()
		options.Grace = time.Hour
		p := runAdapter(t, options, 3, testapp.FastTimes, &memoryInbox{})
		p.sockets(3, 3)
		p.server.Disconnect("warning", 1)
		p.sockets(4, 4)
		p.server.Mute(2)
		p.resultOf(p.say("hi"))
		begun := time.Now()
		p.stop()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("the stop took %v", took)
		}
	})
}
