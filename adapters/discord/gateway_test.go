package discord_test

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
	"parley/ingest/event"
)

// TestDropsLoseNothing drops the connection in every way that leaves the session, and checks that
// the session is resumed and every message arrives once and in order.
func TestDropsLoseNothing(t *testing.T) {
	kinds := []discordtest.Kind{discordtest.Clean, discordtest.Cut, discordtest.Zombie, discordtest.Reconnect, discordtest.InvalidTrue}
	l := startLive(t, discordtest.Options{Heartbeat: 100 * time.Millisecond}, nil)
	var want []string
	for n, kind := range kinds {
		for part := range 3 {
			if part == 1 && l.Drop(kind) != 1 {
				t.Fatalf("%s: no connection to drop", kind)
			}
			want = append(want, fmt.Sprint(n, " ", part))
			l.say(roomID, want[len(want)-1])
		}
		if diff := cmp.Diff(want, l.await(len(want))); diff != "" {
			t.Fatalf("%s:\n%s", kind, diff)
		}
	}
	if identifies, resumes := l.Starts(); identifies != 1 || resumes != len(kinds) {
		t.Errorf("%d identifies and %d resumes", identifies, resumes)
	}
	if len(l.ups) != 0 {
		t.Error("Up was called although nothing was missed")
	}
}

// TestReactionsArrive checks that reactions arrive from servers and from direct messages, and that
// the session and the sequence identify each.
func TestReactionsArrive(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	for _, channel := range []string{roomID, directID} {
		l.AddReaction(channel, l.say(channel, "hi").ID, mara, "🎉")
	}
	l.say(directID, "bye")
	l.await(3)
	dedupe := map[string]bool{}
	for _, e := range l.envelopes() {
		if keys := l.adapter.Keys(e, l.directory()); keys.Kind == event.KindReaction && strings.HasPrefix(keys.Dedupe, "reaction:") {
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
	l := startLive(t, discordtest.Options{}, nil)
	for n, drop := range []func(){
		func() { l.Drop(discordtest.InvalidFalse) }, func() { l.Drop(discordtest.Forget) }, func() { l.CloseWith(4003) }, func() { l.CloseWith(4007) }, func() { l.CloseWith(4009) },
	} {
		drop()
		l.up()
		l.say(roomID, "again")
		l.await(n + 1)
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
		l := startLive(t, discordtest.Options{}, nil)
		l.CloseWith(code)
		var refused *adapters.RefusedError
		if err := <-l.ended; !errors.As(err, &refused) || !strings.Contains(refused.Hint, hint) {
			t.Errorf("%d: %v", code, err)
		}
	}
	l := prepareLive(t, discordtest.Options{NoContent: true}, nil)
	l.run()
	var refused *adapters.RefusedError
	if err := <-l.ended; !errors.As(err, &refused) || !strings.Contains(refused.Hint, "Message Content Intent") {
		t.Errorf("without the intent: %v", err)
	}
	for _, code := range []int{4000, 4001, 4002, 4005, 4008} {
		l := startLive(t, discordtest.Options{}, nil)
		l.CloseWith(code)
		l.awaitSession()
		l.say(roomID, "still here")
		l.await(1)
	}
}

// TestSlowStoreResumes lets the store fail, and checks that heartbeats go on with the last
// committed sequence, and that every message arrives once and in order: the session is resumed when
// the store has taken the events.
func TestSlowStoreResumes(t *testing.T) {
	l := startLive(t, discordtest.Options{Heartbeat: 50 * time.Millisecond}, nil)
	var refusals atomic.Int64
	refusals.Store(math.MaxInt64)
	offered := make(chan struct{}, 1)
	l.inbox.mu.Lock()
	l.inbox.refuse = func(event.Envelope) error {
		if refusals.Add(-1) < 0 {
			return nil
		}
		select {
		case offered <- struct{}{}:
		default:
		}
		return adapters.ErrBusy
	}
	l.inbox.mu.Unlock()
	m, sent := l.Say(discordtest.Message{Channel: roomID, Author: mara, Content: "0"})
	want := []string{m.Content}
	for n := range 9 {
		want = append(want, l.say(roomID, fmt.Sprint(n+1)).Content)
	}
	<-offered
	l.Drop(discordtest.Cut)
	if acked, err := sent.Acked(t.Context()); acked || err != nil {
		t.Errorf("an event that the store did not take is acknowledged: %v, %v", acked, err)
	}
	refusals.Store(2) // the next offers fail, too
	l.awaitSession()
	if diff := cmp.Diff(append(want, l.say(roomID, "10").Content), l.await(11)); diff != "" {
		t.Error(diff)
	}
	if identifies, resumes := l.Starts(); identifies != 1 || resumes != 1 {
		t.Errorf("%d identifies and %d resumes", identifies, resumes)
	}
}

// TestTooManyEventsAreSentAgain checks that a connection ends while too many bytes wait for the
// store, and that the session is resumed when the store has taken them.
func TestTooManyEventsAreSentAgain(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.adapter.SetWaiting(100_000)
	busy, big := make(chan struct{}), strings.Repeat("a", 40_000)
	l.inbox.refuse = func(event.Envelope) error { <-busy; return nil }
	l.run()
	l.up()
	for range 3 {
		l.Push(gardenID, "UNHEARD_OF", map[string]any{"x": big})
	}
	l.awaitShards(0)
	close(busy)
	l.say(roomID, "hi")
	l.await(1)
	if identifies, resumes := l.Starts(); identifies != 1 || resumes != 1 || len(l.envelopes()) != 4 {
		t.Errorf("%d identifies, %d resumes and %d events", identifies, resumes, len(l.envelopes()))
	}
}

// TestAPanicOfTheStoreIsAFailure checks that an event is offered again after a panic.
func TestAPanicOfTheStoreIsAFailure(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	var calls atomic.Int64
	l.inbox.refuse = func(event.Envelope) error {
		if calls.Add(1) == 1 {
			panic("a bug")
		}
		return nil
	}
	l.run()
	l.up()
	l.say(roomID, "hi")
	l.await(1)
}

// TestSilentGatewayHangsNothing checks that a gateway without a hello delays neither the next
// attempt nor the end.
func TestSilentGatewayHangsNothing(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.adapter.SetTimes(time.Minute, 50*time.Millisecond)
	l.Script(discordtest.Hello, discordtest.Fault{Hold: make(chan struct{})})
	l.run()
	if err := <-l.ended; err == nil {
		t.Error("Run ended without an error")
	}
	l.adapter.SetTimes(time.Minute, time.Minute)
	l.Script(discordtest.Hello, discordtest.Fault{Hold: make(chan struct{})})
	l.run()
	begun := time.Now()
	l.stop()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("Run returned after %v", took)
	}
}

// TestUnreachableGatewayIsDown checks that the workspace is down after a while, and up again, and
// that the whole time counts as missed: the watermark moves on if another node has other shards.
func TestUnreachableGatewayIsDown(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.adapter.SetTimes(20*time.Millisecond, time.Second)
	l.run()
	l.up()
	for range 20 {
		l.Script(discordtest.Connect, discordtest.Fault{Status: http.StatusServiceUnavailable})
		l.Script(discordtest.GetGateway, discordtest.Fault{Status: http.StatusServiceUnavailable})
	}
	lost := time.Now()
	l.Drop(discordtest.Forget)
	if err := <-l.downs; err == nil {
		t.Error("Down has no reason")
	}
	l.up()
	select {
	case since := <-l.missed:
		if since.After(lost.Add(-time.Minute)) {
			t.Errorf("missed since %v, the connection was lost at %v", since, lost)
		}
	default:
		t.Error("nothing counts as missed")
	}
}

// TestSessionStartsAreCounted checks that the adapter does not identify without a start left.
func TestSessionStartsAreCounted(t *testing.T) {
	l := startLive(t, discordtest.Options{Starts: 1}, nil)
	l.stop()
	l.run()
	var failure *adapters.SendError
	if err := <-l.ended; !errors.As(err, &failure) || failure.Failure != adapters.RateLimited {
		t.Errorf("Run returned %v", err)
	}
	if identifies, _ := l.Starts(); identifies != 1 {
		t.Errorf("%d identifies", identifies)
	}
}

// TestADeadAddressOfASessionIsReplaced checks that the session is resumed at the gateway's address
// if its own cannot be reached.
func TestADeadAddressOfASessionIsReplaced(t *testing.T) {
	var calls calls
	l := startLive(t, discordtest.Options{OnCall: calls.note}, nil)
	l.Script(discordtest.Connect, discordtest.Fault{Status: http.StatusServiceUnavailable})
	l.Drop(discordtest.Cut)
	l.awaitSession()
	if _, resumes := l.Starts(); resumes != 1 || len(calls.of(discordtest.GetGateway)) != 2 {
		t.Errorf("%d resumes, %d calls for the gateway's address", resumes, len(calls.of(discordtest.GetGateway)))
	}
}

// TestIdentifiesArePaced checks that a node identifies once in a while for each rate-limit key.
func TestIdentifiesArePaced(t *testing.T) {
	l := prepareLive(t, discordtest.Options{Shards: 3, Concurrency: 2}, func(c *discord.Config) { c.Shards = 0 })
	l.adapter.SetIdentifyEvery(time.Hour)
	l.run()
	l.up()
	l.up()
	if identifies, _ := l.Starts(); identifies != 2 {
		t.Errorf("%d identifies", identifies)
	}
}

// TestRecommendedShards checks that shards: 0 opens as many as Discord recommends, that each event
// comes from its shard, and that the first alone registers the commands.
func TestRecommendedShards(t *testing.T) {
	l := prepareLive(t, discordtest.Options{Shards: 3}, func(c *discord.Config) { c.Shards = 0 })
	for n, c := range l.connections() {
		if c.Name != fmt.Sprint("shard-", n) || !c.Exclusive {
			t.Errorf("connection %d is %q, exclusive: %t", n, c.Name, c.Exclusive)
		}
	}
	l.run()
	for range 3 {
		l.up()
	}
	for _, id := range []string{"800000000000000001", "800000000005000001", "800000000010000001"} {
		l.AddGuild(discordtest.Guild{ID: id})
		l.SetChannel(discordtest.Channel{ID: id + "0", Guild: id})
		l.say(id+"0", "hi")
	}
	l.await(3)
	l.stop()
	if identifies, _ := l.Starts(); identifies != 3 {
		t.Errorf("%d identifies", identifies)
	}
	if _, upserts := l.Commands(); upserts > 5 {
		t.Errorf("%d commands were registered", upserts)
	}
}

// TestUnreadableFrameIsStored checks that a frame that is no JSON is stored as it came, and that
// the next events arrive.
func TestUnreadableFrameIsStored(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	broken := []byte(`{"op":0,"t":"MESSAGE_CREATE","d":{"content":"\u00`)
	l.PushRaw(broken)
	l.Push(gardenID, "UNHEARD_OF", map[string]any{})
	l.say(roomID, "hi")
	l.await(1)
	var dead, ignored int
	for _, e := range l.envelopes() {
		keys := l.adapter.Keys(e, l.directory())
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
	l := startLive(t, discordtest.Options{}, nil)
	l.say(roomID, "hi")
	l.await(1)
	for _, e := range l.envelopes() {
		if e.Batch == nil {
			t.Errorf("an event belongs to no batch: %s", e.Body)
		}
	}
}
