package live_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/ingest/event"
)

// TestDropsLoseNothing drops the connection in every way that leaves the session, and checks that
// the session is resumed and every message arrives once and in order.
func TestDropsLoseNothing(t *testing.T) {
	kinds := []discordtest.Kind{discordtest.Clean, discordtest.Cut, discordtest.Zombie, discordtest.Reconnect, discordtest.InvalidTrue}
	l := testapp.Start(t, discordtest.Options{}, nil)
	var want []string
	for n, kind := range kinds {
		for part := range 3 {
			if part == 1 && l.Drop(kind) != 1 {
				t.Fatalf("%s: no connection to drop", kind)
			}
			want = append(want, fmt.Sprint(n, " ", part))
			l.MaraSays(testapp.Room, want[len(want)-1])
		}
		if diff := cmp.Diff(want, l.AwaitTexts(len(want))); diff != "" {
			t.Fatalf("%s:\n%s", kind, diff)
		}
	}
	if identifies, resumes := l.Starts(); identifies != 1 || resumes != len(kinds) {
		t.Errorf("%d identifies and %d resumes", identifies, resumes)
	}
	if len(l.Ups) != 0 {
		t.Error("Up was called although nothing was missed")
	}
}

// TestReactionsArrive checks that reactions arrive from servers and from direct messages, and that
// the session and the sequence identify each.
func TestReactionsArrive(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	for _, channel := range []string{testapp.Room, testapp.Direct} {
		l.AddReaction(channel, l.MaraSays(channel, "hi").ID, testapp.Mara, "🎉")
	}
	l.MaraSays(testapp.Direct, "bye")
	l.AwaitTexts(3)
	dedupe := map[string]bool{}
	for _, e := range l.Envelopes() {
		if keys := l.Adapter.Keys(e, l.Directory()); keys.Kind == event.KindReaction && strings.HasPrefix(keys.Dedupe, "reaction:") {
			dedupe[keys.Dedupe] = true
		}
	}
	if len(dedupe) != 2 {
		t.Errorf("the keys of the reactions are %v", dedupe)
	}
}

// TestForgottenSessionIsReplaced checks that Up reports the gap after a session that cannot be
// resumed, with one identify each.
func TestForgottenSessionIsReplaced(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	for n, drop := range []func(){
		func() { l.Drop(discordtest.InvalidFalse) }, func() { l.Drop(discordtest.Forget) }, func() { l.CloseWith(4003) }, func() { l.CloseWith(4007) }, func() { l.CloseWith(4009) },
	} {
		drop()
		l.Up()
		l.MaraSays(testapp.Room, "again")
		l.AwaitTexts(n + 1)
		if identifies, _ := l.Starts(); identifies != n+2 {
			t.Errorf("%d identifies after %d lost sessions", identifies, n+1)
		}
	}
}

// TestFatalCodesStop checks that a fatal close code ends the run with a hint.
func TestFatalCodesStop(t *testing.T) {
	for code, hint := range map[int]string{
		4004: "discord.token", 4010: "discord.shards", 4011: "discord.shards", 4012: "discord.api_url", 4013: "discord.api_url", 4014: "Message Content Intent",
	} {
		l := testapp.Start(t, discordtest.Options{}, nil)
		l.CloseWith(code)
		var refused *adapters.RefusedError
		if err := <-l.Ended; !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) {
			t.Errorf("%d: %v", code, err)
		}
	}
	l := testapp.Prepare(t, discordtest.Options{NoContent: true}, nil)
	l.Run()
	var refused *adapters.RefusedError
	if err := <-l.Ended; !errors.As(err, &refused) || !strings.Contains(refused.Hint, "Message Content Intent") {
		t.Errorf("without the intent: %v", err)
	}
	for _, code := range []int{4000, 4001, 4002, 4005, 4008} {
		l := testapp.Start(t, discordtest.Options{}, nil)
		l.CloseWith(code)
		l.AwaitSession()
		l.MaraSays(testapp.Room, "still here")
		l.AwaitTexts(1)
	}
}

// TestSlowStoreResumes lets the store fail, and checks that an event that it has not taken is not acknowledged, and that
// every message arrives once and in order: the session is resumed when the store has taken the events.
func TestSlowStoreResumes(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	var refusals atomic.Int64
	refusals.Store(math.MaxInt64)
	offered := make(chan struct{}, 1)
	l.Inbox.Mu.Lock()
	l.Inbox.Refuse = func(event.Envelope) error {
		if refusals.Add(-1) < 0 {
			return nil
		}
		select {
		case offered <- struct{}{}:
		default:
		}
		return adapters.ErrBusy
	}
	l.Inbox.Mu.Unlock()
	m, sent := l.Say(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Content: "0"})
	want := []string{m.Content}
	for n := range 9 {
		want = append(want, l.MaraSays(testapp.Room, fmt.Sprint(n+1)).Content)
	}
	<-offered
	l.Drop(discordtest.Cut)
	if acked, err := sent.Acked(t.Context()); acked || err != nil {
		t.Errorf("an event that the store did not take is acknowledged: %v, %v", acked, err)
	}
	refusals.Store(2) // the next offers fail, too
	l.AwaitSession()
	if diff := cmp.Diff(append(want, l.MaraSays(testapp.Room, "10").Content), l.AwaitTexts(11)); diff != "" {
		t.Error(diff)
	}
	if identifies, resumes := l.Starts(); identifies != 1 || resumes != 1 {
		t.Errorf("%d identifies and %d resumes", identifies, resumes)
	}
}

// TestTooManyEventsAreSentAgain checks that a connection ends while too many bytes wait for the
// store, and that the session is resumed when the store has taken them.
func TestTooManyEventsAreSentAgain(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.Adapter.Live.Limits.Waiting = 100_000
	busy, big := make(chan struct{}), strings.Repeat("a", 40_000)
	l.Inbox.Refuse = func(event.Envelope) error { <-busy; return nil }
	l.Run()
	l.Up()
	for range 3 {
		l.Push(testapp.Garden, "UNHEARD_OF", map[string]any{"x": big})
	}
	l.AwaitSessions(0)
	close(busy)
	l.MaraSays(testapp.Room, "hi")
	l.AwaitTexts(1)
	if identifies, resumes := l.Starts(); identifies != 1 || resumes != 1 || len(l.Envelopes()) != 4 {
		t.Errorf("%d identifies, %d resumes and %d events", identifies, resumes, len(l.Envelopes()))
	}
}

// TestAPanicOfTheStoreIsAFailure checks that an event is offered again after a panic.
func TestAPanicOfTheStoreIsAFailure(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	var calls atomic.Int64
	l.Inbox.Refuse = func(event.Envelope) error {
		if calls.Add(1) == 1 {
			panic("a bug")
		}
		return nil
	}
	l.Run()
	l.Up()
	l.MaraSays(testapp.Room, "hi")
	l.AwaitTexts(1)
}

// TestSilentGatewayHangsNothing checks that a gateway without a hello delays neither the next
// attempt nor the end.
func TestSilentGatewayHangsNothing(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.Adapter.Live.Limits.DownAfter, l.Adapter.Live.Limits.Open = time.Minute, 50*time.Millisecond
	l.Script(discordtest.Hello, discordtest.Fault{Hold: make(chan struct{})})
	l.Run()
	if err := <-l.Ended; err == nil {
		t.Error("Run ended without an error")
	}
	l.Adapter.Live.Limits.DownAfter, l.Adapter.Live.Limits.Open = time.Minute, time.Minute
	l.Script(discordtest.Hello, discordtest.Fault{Hold: make(chan struct{})})
	l.Run()
	begun := time.Now()
	l.Stop()
	if took := time.Since(begun); took >= l.Adapter.Live.Limits.Open {
		t.Errorf("Run returned after %v", took)
	}
}

// TestUnreachableGatewayIsDown checks that the workspace is down after a while, and up again, and
// that the whole time counts as missed: the watermark moves on if another node has other shards.
func TestUnreachableGatewayIsDown(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.Adapter.Live.Limits.DownAfter, l.Adapter.Live.Limits.Open = 20*time.Millisecond, time.Second
	l.Run()
	l.Up()
	for range 20 {
		l.Script(discordtest.Connect, discordtest.Fault{Status: http.StatusServiceUnavailable})
		l.Script(discordtest.GetGateway, discordtest.Fault{Status: http.StatusServiceUnavailable})
	}
	lost := time.Now()
	l.Drop(discordtest.Forget)
	if err := <-l.Downs; err == nil {
		t.Error("Down has no reason")
	}
	l.Up()
	select {
	case since := <-l.Missed:
		if since.After(lost.Add(-time.Minute)) {
			t.Errorf("missed since %v, the connection was lost at %v", since, lost)
		}
	default:
		t.Error("nothing counts as missed")
	}
}

// TestSessionStartsAreCounted checks that the adapter does not identify without a start left.
func TestSessionStartsAreCounted(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{Starts: 1}, nil)
	l.Stop()
	l.Run()
	var failure *adapters.SendError
	if err := <-l.Ended; !errors.As(err, &failure) || failure.Failure != adapters.RateLimited {
		t.Errorf("Run returned %v", err)
	}
	if identifies, _ := l.Starts(); identifies != 1 {
		t.Errorf("%d identifies", identifies)
	}
}

// TestADeadAddressOfASessionIsReplaced checks that the session is resumed at the gateway's address
// if its own cannot be reached.
func TestADeadAddressOfASessionIsReplaced(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Start(t, discordtest.Options{OnCall: calls.Note}, nil)
	l.Script(discordtest.Connect, discordtest.Fault{Status: http.StatusServiceUnavailable})
	l.Drop(discordtest.Cut)
	l.AwaitSession()
	if _, resumes := l.Starts(); resumes != 1 || len(calls.Of(discordtest.GetGateway)) != 2 {
		t.Errorf("%d resumes, %d calls for the gateway's address", resumes, len(calls.Of(discordtest.GetGateway)))
	}
}

// TestIdentifiesArePaced checks that a node identifies once in a while for each rate-limit key.
func TestIdentifiesArePaced(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{Shards: 3, Concurrency: 2}, func(c *discord.Config) { c.Shards = 0 })
	l.Adapter.Live.Limits.IdentifyEvery = time.Hour
	l.Run()
	l.Up()
	l.Up()
	if identifies, _ := l.Starts(); identifies != 2 {
		t.Errorf("%d identifies", identifies)
	}
}

// TestRecommendedShards checks that shards: 0 opens as many as Discord recommends, that each event
// comes from its shard, and that the first alone registers the commands.
func TestRecommendedShards(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{Shards: 3}, func(c *discord.Config) { c.Shards = 0 })
	for n, c := range l.Connections() {
		if c.Name != fmt.Sprint("shard-", n) || !c.Exclusive {
			t.Errorf("connection %d is %q, exclusive: %t", n, c.Name, c.Exclusive)
		}
	}
	l.Run()
	for range 3 {
		l.Up()
	}
	for _, id := range []string{"800000000000000001", "800000000005000001", "800000000010000001"} {
		l.AddGuild(discordtest.Guild{ID: id})
		l.SetChannel(discordtest.Channel{ID: id + "0", Guild: id})
		l.MaraSays(id+"0", "hi")
	}
	l.AwaitTexts(3)
	l.Stop()
	if identifies, _ := l.Starts(); identifies != 3 {
		t.Errorf("%d identifies", identifies)
	}
	if commands, upserts := l.Commands(); upserts > len(commands) {
		t.Errorf("%d commands were registered %d times", len(commands), upserts)
	}
}

// TestUnreadableFrameIsStored checks that a frame that is no JSON is stored as it came, and that
// the next events arrive.
func TestUnreadableFrameIsStored(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	broken := []byte(`{"op":0,"t":"MESSAGE_CREATE","d":{"content":"\u00`)
	l.PushRaw(broken)
	l.Push(testapp.Garden, "UNHEARD_OF", map[string]any{})
	l.MaraSays(testapp.Room, "hi")
	l.AwaitTexts(1)
	var dead, ignored int
	for _, e := range l.Envelopes() {
		keys := l.Adapter.Keys(e, l.Directory())
		if bytes.Equal(e.Body, broken) && keys.Result != nil && keys.Result.Disposition == event.Dead {
			dead++
		}
		if keys.Result != nil && keys.Result.Reason == event.ReasonNotAnEvent {
			ignored++
		}
	}
	if dead != 1 || ignored != 1 {
		t.Errorf("%d dead letters and %d ignored events", dead, ignored)
	}
}

// TestEventsAreABatch checks that no event can overtake one that the store does not take.
func TestEventsAreABatch(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.MaraSays(testapp.Room, "hi")
	l.AwaitTexts(1)
	for _, e := range l.Envelopes() {
		if e.Batch == nil {
			t.Errorf("an event belongs to no batch: %s", e.Body)
		}
	}
}
