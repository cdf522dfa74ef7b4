package discord_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// TestKnownChannelsAreBackfilled checks which channels have a gap after an interruption: those that
// the bot sees, with their threads, and direct messages. Of a channel that the bot did not see
// before, nothing is read, unless it was made during the interruption.
func TestKnownChannelsAreBackfilled(t *testing.T) {
	earlier := func() time.Time { return time.Now().Add(-time.Second) } // a message in the millisecond of a session's begin is after it
	l := startLive(t, discordtest.Options{Now: earlier}, nil)
	l.SetChannel(discordtest.Channel{ID: "700000000000000010", Guild: gardenID, Type: discordtest.Forum})
	l.SetChannel(discordtest.Channel{ID: "700000000000000011", Guild: gardenID, Hidden: true})
	l.say(directID, "hi")
	l.await(1)
	l.stop()
	l.SetChannel(discordtest.Channel{ID: "700000000000000012", Guild: gardenID})
	l.SetChannel(discordtest.Channel{ID: "700000000000000011", Guild: gardenID}) // visible now
	l.SetChannel(discordtest.Channel{ID: "700000000000000013", Guild: gardenID, Type: discordtest.PublicThread, Parent: "700000000000000010"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000014", Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
	l.AddGuild(discordtest.Guild{ID: "700000000000000020"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000021", Guild: "700000000000000020"})
	made := l.say(roomID, "missed")
	l.SetChannel(discordtest.Channel{ID: made.ID, Guild: gardenID})
	for _, channel := range []string{"700000000000000011", "700000000000000014", "700000000000000021", made.ID} {
		l.say(channel, "missed")
	}
	l.adapter = newAdapter(l.Server, nil)
	l.adapter.UseState(l.state)
	l.run()
	l.up()
	got, err := l.adapter.Channels(t.Context())
	slices.Sort(got)
	want := []string{made.ID, roomID, directID, "700000000000000011", "700000000000000012", "700000000000000013", "700000000000000014", "700000000000000021"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Channels returns %q, %v; want %q", got, err, want)
	}
	for channel, want := range map[string]int{roomID: 1, "700000000000000011": 0, "700000000000000014": 1, "700000000000000021": 0, made.ID: 1} {
		gap := event.Gap{Channel: channel, From: made.Sent.Add(-time.Minute), Until: time.Now().Add(2 * time.Minute)}
		if n := l.missedIn(gap); n != want {
			t.Errorf("%d missed messages of channel %s, want %d", n, channel, want)
		}
	}
}

// missedIn reads a gap and counts the messages that say so.
func (l *live) missedIn(gap event.Gap) (n int) {
	l.t.Helper()
	if _, err := l.adapter.ReadChannel(l.t.Context(), adapters.Reading{Gap: gap, Messages: 10, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
		for _, m := range list {
			n += strings.Count(string(m.New.Body), `"missed"`)
		}
		return nil
	}}); err != nil {
		l.t.Error(err)
	}
	return n
}

// TestTheHistoryMayShowAMessageLater checks that a second read, a few seconds after the begin of
// the session, finds a message that the first could not see, although the first has seen later ones.
func TestTheHistoryMayShowAMessageLater(t *testing.T) {
	var ahead atomic.Int64 // of the clock, in seconds
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	l := prepareLive(t, discordtest.Options{Now: clock}, nil)
	l.adapter.SetClock(clock)
	l.run()
	l.up()
	l.say(roomID, "heard")
	l.await(1)
	l.stop()
	ahead.Add(10)
	said := clock()
	ahead.Add(3)
	l.say(roomID, "missed")
	l.run()
	l.up()
	read := func() int {
		return l.missedIn(event.Gap{Channel: roomID, From: said.Add(-time.Minute), Until: clock().Add(2 * time.Minute)})
	}
	if n := read(); n != 1 {
		t.Errorf("the first read finds %d messages", n)
	}
	l.Put(discordtest.Message{Channel: roomID, Author: mara, Content: "missed", Sent: said})
	ahead.Add(int64(l.adapter.HistoryLag() / time.Second))
	if n := read(); n != 2 {
		t.Errorf("the second read finds %d messages", n)
	}
}

// TestChannelsOfAnAbsentServerAreBackfilled checks that a server that a session announces and does
// not send has a gap too, also its threads: during an outage, while it is unavailable and when it is back.
func TestChannelsOfAnAbsentServerAreBackfilled(t *testing.T) {
	const thread = "700000000000000014"
	for _, outage := range []string{"", "GUILD_CREATE", "GUILD_DELETE"} {
		l := startLive(t, discordtest.Options{}, nil)
		l.say(roomID, "the server is known")
		l.await(1)
		l.stop()
		l.SetChannel(discordtest.Channel{ID: thread, Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
		l.AddGuild(discordtest.Guild{ID: gardenID, Unavailable: true})
		l.adapter = newAdapter(l.Server, nil)
		l.adapter.SetGuildsWait(time.Millisecond)
		l.adapter.UseState(l.state)
		l.run()
		l.up()
		if outage != "" {
			l.Push(gardenID, outage, map[string]any{"id": gardenID, "unavailable": true})
		}
		for n, back := range []bool{false, true} {
			l.AddGuild(discordtest.Guild{ID: gardenID, Unavailable: !back})
			l.say(roomID, "the events before are read")
			l.await(n + 2)
			if got, err := l.adapter.Channels(t.Context()); err != nil || !slices.Equal(got, []string{roomID, thread}) {
				t.Errorf("after %q, back: %t, Channels returns %q, %v", outage, back, got, err)
			}
		}
	}
}

// TestANewRoleOfTheBotShowsChannels checks that the channels that the bot sees by a later role are
// backfilled after an interruption, also by the next process.
func TestANewRoleOfTheBotShowsChannels(t *testing.T) {
	const role = "900000000000000009"
	l := prepareLive(t, discordtest.Options{}, nil)
	l.AddGuild(discordtest.Guild{ID: gardenID, Denied: 1 << 10}) // View Channel
	l.run()
	l.up()
	l.Push(gardenID, "GUILD_ROLE_CREATE", map[string]any{"guild_id": gardenID, "role": map[string]any{"id": role, "permissions": "1024"}})
	l.Push(gardenID, "GUILD_MEMBER_UPDATE", map[string]any{"guild_id": gardenID, "roles": []string{role}, "user": map[string]any{"id": mara}})
	l.Push(gardenID, "GUILD_MEMBER_UPDATE", map[string]any{"guild_id": gardenID, "roles": []string{discordtest.BotRole, role}, "user": map[string]any{"id": discordtest.BotUser}})
	l.say(roomID, "welcome")
	l.await(1)
	if value, err := l.state.Get(t.Context(), "guild/"+gardenID); err != nil || !strings.Contains(value, roomID) {
		t.Errorf("the known channels are %s, %v", value, err)
	}
	l.stop()
	l.adapter.SetClock(func() time.Time { return time.Now().Add(2 * time.Minute) })
	if got, err := l.adapter.Channels(t.Context()); err != nil || !slices.Contains(got, roomID) {
		t.Errorf("Channels returns %q, %v", got, err)
	}
}

// TestMissedMessagesHaveNicknames checks that a fetched message gets its server and its author's
// nickname, which Discord leaves out, with one call for each author.
func TestMissedMessagesHaveNicknames(t *testing.T) {
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note}, nil)
	l.AddGuild(discordtest.Guild{ID: gardenID, Nicks: map[string]string{mara: "Mara (garden)"}})
	for n := range 250 {
		l.say(roomID, fmt.Sprint("word ", n))
	}
	var names []string
	read := adapters.Reading{Gap: event.Gap{Channel: roomID, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, Messages: 1000,
		Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
			for _, m := range list {
				e, err := l.adapter.Normalize(t.Context(), *m.New, l.directory())
				if err != nil {
					return err
				}
				names = append(names, e.Message.Metadata.SenderDisplayName)
			}
			return nil
		}}
	if _, err := l.adapter.ReadChannel(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	if len(names) != 250 || names[0] != "Mara (garden)" || names[249] != "Mara (garden)" {
		t.Errorf("%d messages, the first of %q", len(names), names[0])
	}
	if n := len(calls.of(discordtest.GetMember)); n != 1 {
		t.Errorf("%d lookups", n)
	}
}

// TestOnlyTheMissedAreReadAgain checks that a read after an interruption begins at the last
// message that was accepted before, and ends at the first one of the new session, however long
// the gap is. A message on the edge is read again, because messages may arrive out of order.
func TestOnlyTheMissedAreReadAgain(t *testing.T) {
	var ahead atomic.Int64 // of the clock, in seconds
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	var calls calls
	l := prepareLive(t, discordtest.Options{OnCall: calls.note, Now: clock}, nil)
	l.adapter.SetClock(clock)
	l.run()
	l.up()
	said := 0
	say := func(n int) {
		for range n {
			ahead.Add(10)
			said++
			l.say(roomID, fmt.Sprint(said))
		}
	}
	read := func() (texts []string) {
		gap := event.Gap{Channel: roomID, From: clock().Add(-24 * time.Hour), Until: clock().Add(2 * time.Minute)}
		_, err := l.adapter.ReadChannel(t.Context(), adapters.Reading{Gap: gap, Messages: 10_000, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
			for _, m := range list {
				e, err := l.adapter.Normalize(t.Context(), *m.New, l.directory())
				if err != nil {
					return err
				}
				texts = append(texts, e.Message.Content)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	say(150)
	l.await(150)
	if got := read(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the first read finds %q", got)
	}
	for round := range 3 {
		l.stop()
		before := said
		say(2)
		l.run()
		l.up()
		say(150)
		l.await(150 * (round + 2))
		want := []string{fmt.Sprint(before), fmt.Sprint(before + 1), fmt.Sprint(before + 2), fmt.Sprint(before + 3)}
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("the read after interruption %d finds %q, want %q", round, got, want)
		}
	}
	if n := len(calls.of(discordtest.Read)); n != 4 {
		t.Errorf("%d reads of pages", n)
	}
}

// TestAReadOfAnEarlierGapLeavesTheLater checks that a read that does not reach the last
// interruption does not count for it, and that each read hands over its thread.
func TestAReadOfAnEarlierGapLeavesTheLater(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.say(roomID, "heard")
	l.await(1)
	l.stop()
	l.say(roomID, "missed")
	l.run()
	l.up()
	for _, until := range []time.Duration{-time.Hour, 2 * time.Minute} {
		var found []int
		gap := event.Gap{Channel: roomID, From: time.Now().Add(-24 * time.Hour), Until: time.Now().Add(until)}
		_, err := l.adapter.ReadChannel(t.Context(), adapters.Reading{Gap: gap, Messages: 10, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
			found = append(found, len(list))
			return nil
		}})
		if want := []int{map[bool]int{true: 2}[until > 0]}; err != nil || !slices.Equal(found, want) {
			t.Errorf("a read until %v finds %d messages, %v; want %d", until, found, err, want)
		}
	}
}

// TestAForgottenSessionLeavesAGap checks that a message of the time between two sessions is read,
// although later ones were heard.
func TestAForgottenSessionLeavesAGap(t *testing.T) {
	var ahead atomic.Int64 // of Discord's clock, in seconds: each message is later
	l := startLive(t, discordtest.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Add(10)) * time.Second) }}, nil)
	read := func() int {
		return l.missedIn(event.Gap{Channel: roomID, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)})
	}
	l.say(roomID, "heard")
	l.await(1)
	read()
	away := make(chan struct{})
	l.Script(discordtest.Connect, discordtest.Fault{Hold: away})
	l.Drop(discordtest.Forget)
	l.say(roomID, "missed")
	close(away)
	l.up()
	l.say(roomID, "heard again")
	l.await(2)
	if n := read(); n != 1 {
		t.Errorf("%d messages were read", n)
	}
}

// TestReadingWaitsForThePace checks that a read waits out a rate limit.
func TestReadingWaitsForThePace(t *testing.T) {
	l := prepareLive(t, discordtest.Options{}, nil)
	l.say(roomID, "hi")
	l.Script(discordtest.Read, discordtest.Fault{Status: 429, RetryAfter: time.Millisecond})
	read := 0
	_, err := l.adapter.ReadChannel(t.Context(), adapters.Reading{
		Gap: event.Gap{Channel: roomID, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, Messages: 10,
		Hand: func(_ event.ThreadKey, list []adapters.Missed) error { read += len(list); return nil },
	})
	if err != nil || read != 1 {
		t.Errorf("%d messages, %v", read, err)
	}
}

func TestOrdinaryChannelHasNoHistory(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.say(roomID, "before")
	m := l.say(roomID, "now")
	before, err := l.adapter.ReadHistory(t.Context(), payload.ThreadKey("acme", roomID), m.ID, 20)
	if err != nil || len(before.Envelopes) != 0 {
		t.Errorf("%+v, %v", before, err)
	}
}

// TestRoleMentionAddressesUs checks the mention of the role that Discord made for the bot.
func TestRoleMentionAddressesUs(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	for role, want := range map[string]event.Addressed{discordtest.BotRole: event.AddressedMention, "900000000000000009": event.AddressedNone} {
		m, _ := l.Say(discordtest.Message{Channel: roomID, Author: mara, Content: "<@&" + role + "> hi", Extra: map[string]any{"mention_roles": []string{role}}})
		l.await(1)
		for len(l.envelopes()) == 0 || !strings.Contains(string(l.envelopes()[len(l.envelopes())-1].Body), m.ID) {
			l.await(len(l.envelopes()) + 1)
		}
		if got := l.event(m.ID).Message.Addressed; got != want {
			t.Errorf("role %s: %q, want %q", role, got, want)
		}
	}
}

// TestRemovedServerEndsNothingElse checks that a removal from one server, a deleted channel and a
// deleted thread leave the others.
func TestRemovedServerEndsNothingElse(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	l.AddGuild(discordtest.Guild{ID: "700000000000000020"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000021", Guild: "700000000000000020"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000022", Guild: gardenID})
	l.SetChannel(discordtest.Channel{ID: "700000000000000023", Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
	l.RemoveGuild("700000000000000020")
	l.RemoveChannel("700000000000000022")
	l.RemoveChannel("700000000000000023")
	l.say(roomID, "hi")
	l.await(1)
	_, err := l.adapter.Send(t.Context(), l.post("k1", "700000000000000021", "", "hi"))
	if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.Permanent {
		t.Errorf("a post in a channel that is gone: %v", err)
	}
	l.send(l.post("k2", roomID, "", "hi"))
	l.stop()
	l.adapter.SetClock(func() time.Time { return time.Now().Add(2 * time.Minute) })
	if got, err := l.adapter.Channels(t.Context()); err != nil || !slices.Equal(got, []string{roomID}) {
		t.Errorf("the channels are %q, %v", got, err)
	}
}

// TestMessagesOfAThreadNameItsChannel checks that the events of a thread, live and fetched, carry
// the channel of the thread, which Discord leaves out: also of a thread in a channel that the bot
// has just begun to see, and of one that another node's shard has.
func TestMessagesOfAThreadNameItsChannel(t *testing.T) {
	const thread, shown, later = "700000000000000014", "700000000000000015", "700000000000000016"
	l := prepareLive(t, discordtest.Options{}, nil)
	l.SetChannel(discordtest.Channel{ID: thread, Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
	l.SetChannel(discordtest.Channel{ID: shown, Guild: gardenID, Hidden: true})
	l.SetChannel(discordtest.Channel{ID: later, Guild: gardenID, Type: discordtest.PublicThread, Parent: shown})
	l.run()
	l.up()
	l.SetChannel(discordtest.Channel{ID: shown, Guild: gardenID})
	l.say(roomID, "outside")
	l.say(thread, "inside")
	l.say(later, "inside")
	l.await(3)
	var parents []string
	note := func(e event.Envelope) {
		e.Parsed = nil // as another node reads it
		if keys := l.adapter.Keys(e, l.directory()); keys.Kind == event.KindMessage {
			parents = append(parents, keys.Channel.Parent)
		}
	}
	for _, e := range l.envelopes() {
		note(e)
	}
	other := newAdapter(l.Server, nil)
	gap := event.Gap{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
	for _, reader := range []*discord.Adapter{l.adapter, other} {
		for _, gap.Channel = range []string{roomID, thread} {
			if _, err := reader.ReadChannel(t.Context(), adapters.Reading{Gap: gap, Messages: 10, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
				note(*list[0].New)
				return nil
			}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"", roomID, shown, "", roomID, "", roomID}; !slices.Equal(parents, want) {
		t.Errorf("the channels of the threads are %q, want %q", parents, want)
	}
}

// TestTheRootOfAThreadMayBeGone checks the history of a thread whose root was deleted, without the
// message by which Discord shows the root.
func TestTheRootOfAThreadMayBeGone(t *testing.T) {
	const thread = "700000000000000014"
	l := prepareLive(t, discordtest.Options{}, nil)
	l.SetChannel(discordtest.Channel{ID: thread, Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
	l.Say(discordtest.Message{Channel: thread, Author: mara, Type: 21})
	l.say(thread, "one")
	before, err := l.adapter.ReadHistory(t.Context(), payload.ThreadKey("acme", thread), l.say(thread, "two").ID, 20)
	if err != nil || len(before.Envelopes) != 1 || !strings.Contains(string(before.Envelopes[0].Body), `"one"`) {
		t.Errorf("%+v, %v", before, err)
	}
}

// TestMoreLinesThanAPage checks that the history of a long thread tells what is left out, although
// the block may have more lines than a page of Discord has messages.
func TestMoreLinesThanAPage(t *testing.T) {
	const thread = "700000000000000014"
	l := prepareLive(t, discordtest.Options{}, nil)
	l.SetChannel(discordtest.Channel{ID: thread, Guild: gardenID, Type: discordtest.PublicThread, Parent: roomID})
	for range 130 {
		l.say(thread, "more")
	}
	before, err := l.adapter.ReadHistory(t.Context(), payload.ThreadKey("acme", thread), l.say(thread, "last").ID, 150)
	if n := len(before.Envelopes); err != nil || n != 100 || before.Earlier != 30 {
		t.Errorf("%d messages and %d earlier ones, %v", n, before.Earlier, err)
	}
}
