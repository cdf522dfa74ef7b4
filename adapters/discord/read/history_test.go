package read_test

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
	"parley/adapters/discord/internal/testapp"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// TestKnownChannelsAreBackfilled checks which channels have a gap after an interruption: those that
// the bot sees, with their threads, and direct messages. Of a channel that the bot did not see
// before, nothing is read, unless it was made during the interruption.
func TestKnownChannelsAreBackfilled(t *testing.T) {
	earlier := func() time.Time { return time.Now().Add(-time.Second) } // a message in the millisecond of a session's begin is after it
	l := testapp.Start(t, discordtest.Options{Now: earlier}, nil)
	l.SetChannel(discordtest.Channel{ID: "700000000000000010", Guild: testapp.Garden, Type: discordtest.Forum})
	l.SetChannel(discordtest.Channel{ID: "700000000000000011", Guild: testapp.Garden, Hidden: true})
	l.MaraSays(testapp.Direct, "hi")
	l.AwaitTexts(1)
	l.Stop()
	l.SetChannel(discordtest.Channel{ID: "700000000000000012", Guild: testapp.Garden})
	l.SetChannel(discordtest.Channel{ID: "700000000000000011", Guild: testapp.Garden}) // visible now
	l.SetChannel(discordtest.Channel{ID: "700000000000000013", Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: "700000000000000010"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000014", Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
	l.AddGuild(discordtest.Guild{ID: "700000000000000020"})
	l.SetChannel(discordtest.Channel{ID: "700000000000000021", Guild: "700000000000000020"})
	made := l.MaraSays(testapp.Room, "missed")
	l.SetChannel(discordtest.Channel{ID: made.ID, Guild: testapp.Garden})
	for _, channel := range []string{"700000000000000011", "700000000000000014", "700000000000000021", made.ID} {
		l.MaraSays(channel, "missed")
	}
	l.Adapter = testapp.NewAdapter(l.Server, nil)
	l.Adapter.UseState(l.State)
	l.Run()
	l.Up()
	got, err := l.Adapter.Channels(t.Context())
	slices.Sort(got)
	want := []string{made.ID, testapp.Room, testapp.Direct, "700000000000000011", "700000000000000012", "700000000000000013", "700000000000000014", "700000000000000021"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Channels returns %q, %v; want %q", got, err, want)
	}
	for channel, want := range map[string]int{testapp.Room: 1, "700000000000000011": 0, "700000000000000014": 1, "700000000000000021": 0, made.ID: 1} {
		gap := event.Gap{Channel: channel, From: made.Sent.Add(-time.Minute), Until: time.Now().Add(2 * time.Minute)}
		if n := missedIn(l, gap); n != want {
			t.Errorf("%d missed messages of channel %s, want %d", n, channel, want)
		}
	}
}

// missedIn reads a gap and counts the messages that say so.
func missedIn(l *testapp.Live, gap event.Gap) (n int) {
	l.T.Helper()
	if _, err := l.Adapter.ReadChannel(l.T.Context(), adapters.Reading{Gap: gap, Messages: 10, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
		for _, m := range list {
			n += strings.Count(string(m.New.Body), `"missed"`)
		}
		return nil
	}}); err != nil {
		l.T.Error(err)
	}
	return n
}

// TestTheHistoryMayShowAMessageLater checks that a second read, a few seconds after the begin of
// the session, finds a message that the first could not see, although the first has seen later ones.
func TestTheHistoryMayShowAMessageLater(t *testing.T) {
	var ahead atomic.Int64 // of the clock, in seconds
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	l := testapp.Prepare(t, discordtest.Options{Now: clock}, nil)
	l.Adapter.Client.Now = clock
	l.Run()
	l.Up()
	l.MaraSays(testapp.Room, "heard")
	l.AwaitTexts(1)
	l.Stop()
	ahead.Add(10)
	said := clock()
	ahead.Add(3)
	l.MaraSays(testapp.Room, "missed")
	l.Run()
	l.Up()
	read := func() int {
		return missedIn(l, event.Gap{Channel: testapp.Room, From: said.Add(-time.Minute), Until: clock().Add(2 * time.Minute)})
	}
	if n := read(); n != 1 {
		t.Errorf("the first read finds %d messages", n)
	}
	l.Put(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Content: "missed", Sent: said})
	ahead.Add(int64(l.Adapter.HistoryLag() / time.Second))
	if n := read(); n != 2 {
		t.Errorf("the second read finds %d messages", n)
	}
}

// TestAPostOfOursHidesNoMissedMessage checks that a read that sees our own post, which the history
// shows at once, and not yet the older message of a person, does not count that message as read.
func TestAPostOfOursHidesNoMissedMessage(t *testing.T) {
	var ahead atomic.Int64 // of the clock, in milliseconds
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Millisecond) }
	l := testapp.Prepare(t, discordtest.Options{Now: clock, HistoryLag: 4 * time.Second}, nil)
	l.Adapter.Client.Now = clock
	l.Run()
	l.Up()
	l.MaraSays(testapp.Room, "heard")
	l.AwaitTexts(1)
	l.Stop()
	ahead.Add(10_000)
	read := func() int {
		return missedIn(l, event.Gap{Channel: testapp.Room, From: clock().Add(-time.Minute), Until: clock().Add(2 * time.Minute)})
	}
	l.MaraSays(testapp.Room, "missed")
	ahead.Add(2000)
	l.Put(discordtest.Message{Channel: testapp.Room, Author: discordtest.BotUser, Content: "ours", Sent: clock()})
	if n := read(); n != 0 {
		t.Errorf("a read finds %d messages that the history does not show", n)
	}
	l.Run()
	l.Up()
	ahead.Add(4000)
	if n := read(); n != 1 {
		t.Errorf("the read after the next session's begin finds %d messages", n)
	}
}

// TestChannelsOfAnAbsentServerAreBackfilled checks that a server that a session announces and does
// not send has a gap too, also its threads: during an outage, while it is unavailable and when it is back.
func TestChannelsOfAnAbsentServerAreBackfilled(t *testing.T) {
	const thread = "700000000000000014"
	for _, outage := range []string{"", "GUILD_CREATE", "GUILD_DELETE"} {
		l := testapp.Start(t, discordtest.Options{}, nil)
		l.MaraSays(testapp.Room, "the server is known")
		l.AwaitTexts(1)
		l.Stop()
		l.SetChannel(discordtest.Channel{ID: thread, Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
		l.AddGuild(discordtest.Guild{ID: testapp.Garden, Unavailable: true})
		l.Adapter = testapp.NewAdapter(l.Server, nil)
		l.Adapter.ServersWait = time.Millisecond
		l.Adapter.UseState(l.State)
		l.Run()
		l.Up()
		if outage != "" {
			l.Push(testapp.Garden, outage, map[string]any{"id": testapp.Garden, "unavailable": true})
		}
		for n, back := range []bool{false, true} {
			l.AddGuild(discordtest.Guild{ID: testapp.Garden, Unavailable: !back})
			l.MaraSays(testapp.Room, "the events before are read")
			l.AwaitTexts(n + 2)
			if got, err := l.Adapter.Channels(t.Context()); err != nil || !slices.Equal(got, []string{testapp.Room, thread}) {
				t.Errorf("after %q, back: %t, Channels returns %q, %v", outage, back, got, err)
			}
		}
	}
}

// TestANewRoleOfTheBotShowsChannels checks that the channels that the bot sees by a later role are
// backfilled after an interruption, also by the next process.
func TestANewRoleOfTheBotShowsChannels(t *testing.T) {
	const role = "900000000000000009"
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.AddGuild(discordtest.Guild{ID: testapp.Garden, Denied: 1 << 10}) // View Channel
	l.Run()
	l.Up()
	l.Push(testapp.Garden, "GUILD_ROLE_CREATE", map[string]any{"guild_id": testapp.Garden, "role": map[string]any{"id": role, "permissions": "1024"}})
	l.Push(testapp.Garden, "GUILD_MEMBER_UPDATE", map[string]any{"guild_id": testapp.Garden, "roles": []string{role}, "user": map[string]any{"id": testapp.Mara}})
	l.Push(testapp.Garden, "GUILD_MEMBER_UPDATE", map[string]any{"guild_id": testapp.Garden, "roles": []string{discordtest.BotRole, role}, "user": map[string]any{"id": discordtest.BotUser}})
	l.MaraSays(testapp.Room, "welcome")
	l.AwaitTexts(1)
	if value, err := l.State.Get(t.Context(), "guild/"+testapp.Garden); err != nil || !strings.Contains(value, testapp.Room) {
		t.Errorf("the known channels are %s, %v", value, err)
	}
	l.Stop()
	l.Adapter.Client.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	if got, err := l.Adapter.Channels(t.Context()); err != nil || !slices.Contains(got, testapp.Room) {
		t.Errorf("Channels returns %q, %v", got, err)
	}
}

// TestMissedMessagesHaveNicknames checks that a fetched message gets its server and its author's
// nickname, which Discord leaves out, with one call for each author.
func TestMissedMessagesHaveNicknames(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note}, nil)
	l.AddGuild(discordtest.Guild{ID: testapp.Garden, Nicks: map[string]string{testapp.Mara: "Mara (garden)"}})
	for n := range 250 {
		l.MaraSays(testapp.Room, fmt.Sprint("word ", n))
	}
	var names []string
	read := adapters.Reading{Gap: event.Gap{Channel: testapp.Room, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, Messages: 1000,
		Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
			for _, m := range list {
				e, err := l.Adapter.Normalize(t.Context(), *m.New, l.Directory())
				if err != nil {
					return err
				}
				names = append(names, e.Message.Metadata.SenderDisplayName)
			}
			return nil
		}}
	if _, err := l.Adapter.ReadChannel(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	if len(names) != 250 || names[0] != "Mara (garden)" || names[249] != "Mara (garden)" {
		t.Errorf("%d messages, the first of %q", len(names), names[0])
	}
	if n := len(calls.Of(discordtest.GetMember)); n != 1 {
		t.Errorf("%d lookups", n)
	}
}

// TestOnlyTheMissedAreReadAgain checks that a read after an interruption begins at the last
// message that was accepted before, and ends at the first one of the new session, however long
// the gap is. A message on the edge is read again, because messages may arrive out of order.
func TestOnlyTheMissedAreReadAgain(t *testing.T) {
	var ahead atomic.Int64 // of the clock, in seconds
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	var calls testapp.Calls
	l := testapp.Prepare(t, discordtest.Options{OnCall: calls.Note, Now: clock}, nil)
	l.Adapter.Client.Now = clock
	l.Run()
	l.Up()
	said := 0
	say := func(n int) {
		for range n {
			ahead.Add(10)
			said++
			l.MaraSays(testapp.Room, fmt.Sprint(said))
		}
	}
	read := func() (texts []string) {
		gap := event.Gap{Channel: testapp.Room, From: clock().Add(-24 * time.Hour), Until: clock().Add(2 * time.Minute)}
		_, err := l.Adapter.ReadChannel(t.Context(), adapters.Reading{Gap: gap, Messages: 10_000, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
			for _, m := range list {
				e, err := l.Adapter.Normalize(t.Context(), *m.New, l.Directory())
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
	l.AwaitTexts(150)
	if got := read(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the first read finds %q", got)
	}
	for round := range 3 {
		l.Stop()
		before := said
		say(2)
		l.Run()
		l.Up()
		say(150)
		l.AwaitTexts(150 * (round + 2))
		want := []string{fmt.Sprint(before), fmt.Sprint(before + 1), fmt.Sprint(before + 2), fmt.Sprint(before + 3)}
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("the read after interruption %d finds %q, want %q", round, got, want)
		}
	}
	if n := len(calls.Of(discordtest.Read)); n != 4 {
		t.Errorf("%d reads of pages", n)
	}
}

// TestAReadOfAnEarlierGapLeavesTheLater checks that a read that does not reach the last
// interruption does not count for it, and that each read hands over its thread.
func TestAReadOfAnEarlierGapLeavesTheLater(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.MaraSays(testapp.Room, "heard")
	l.AwaitTexts(1)
	l.Stop()
	l.MaraSays(testapp.Room, "missed")
	l.Run()
	l.Up()
	for _, until := range []time.Duration{-time.Hour, 2 * time.Minute} {
		var found []int
		gap := event.Gap{Channel: testapp.Room, From: time.Now().Add(-24 * time.Hour), Until: time.Now().Add(until)}
		_, err := l.Adapter.ReadChannel(t.Context(), adapters.Reading{Gap: gap, Messages: 10, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
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
	l := testapp.Start(t, discordtest.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Add(10)) * time.Second) }}, nil)
	read := func() int {
		return missedIn(l, event.Gap{Channel: testapp.Room, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)})
	}
	l.MaraSays(testapp.Room, "heard")
	l.AwaitTexts(1)
	read()
	away := make(chan struct{})
	l.Script(discordtest.Connect, discordtest.Fault{Hold: away})
	l.Drop(discordtest.Forget)
	l.MaraSays(testapp.Room, "missed")
	close(away)
	l.Up()
	l.MaraSays(testapp.Room, "heard again")
	l.AwaitTexts(2)
	if n := read(); n != 1 {
		t.Errorf("%d messages were read", n)
	}
}

// TestReadingWaitsForThePace checks that a read waits out a rate limit.
func TestReadingWaitsForThePace(t *testing.T) {
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.MaraSays(testapp.Room, "hi")
	l.Script(discordtest.Read, discordtest.Fault{Status: 429, RetryAfter: time.Millisecond})
	read := 0
	_, err := l.Adapter.ReadChannel(t.Context(), adapters.Reading{
		Gap: event.Gap{Channel: testapp.Room, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, Messages: 10,
		Hand: func(_ event.ThreadKey, list []adapters.Missed) error { read += len(list); return nil },
	})
	if err != nil || read != 1 {
		t.Errorf("%d messages, %v", read, err)
	}
}

func TestOrdinaryChannelHasNoHistory(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	l.MaraSays(testapp.Room, "before")
	m := l.MaraSays(testapp.Room, "now")
	before, err := l.Adapter.ReadHistory(t.Context(), payload.ThreadKey("acme", testapp.Room), m.ID, 20)
	if err != nil || len(before.Envelopes) != 0 {
		t.Errorf("%+v, %v", before, err)
	}
}

// TestAThreadThatIsNotOpenMissesNothing reads the gap of a question's own thread before the first answer
// opens it. The gap of a channel that the bot may not read stays an error.
func TestAThreadThatIsNotOpenMissesNothing(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	question := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> a question")
	const hidden = "700000000000000015"
	l.SetChannel(discordtest.Channel{ID: hidden, Guild: testapp.Garden, Hidden: true})
	for channel, refused := range map[string]bool{question.ID: false, hidden: true} {
		err := l.Adapter.ReadThread(t.Context(), payload.ThreadKey("acme", channel), adapters.Reading{
			Gap: event.Gap{Until: time.Now()},
			Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
				return fmt.Errorf("%d messages were missed", len(list))
			},
		})
		if (err != nil) != refused {
			t.Errorf("the thread of channel %s: %v", channel, err)
		}
	}
}

// TestMessagesOfAThreadNameItsChannel checks that the events of a thread, live and fetched, carry
// the channel of the thread, which Discord leaves out: also of a thread in a channel that the bot
// has just begun to see, and of one that another node's shard has.
func TestMessagesOfAThreadNameItsChannel(t *testing.T) {
	const thread, shown, later = "700000000000000014", "700000000000000015", "700000000000000016"
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.SetChannel(discordtest.Channel{ID: thread, Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
	l.SetChannel(discordtest.Channel{ID: shown, Guild: testapp.Garden, Hidden: true})
	l.SetChannel(discordtest.Channel{ID: later, Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: shown})
	l.Run()
	l.Up()
	l.SetChannel(discordtest.Channel{ID: shown, Guild: testapp.Garden})
	l.MaraSays(testapp.Room, "outside")
	l.MaraSays(thread, "inside")
	l.MaraSays(later, "inside")
	l.AwaitTexts(3)
	var parents []string
	note := func(e event.Envelope) {
		e.Parsed = nil // as another node reads it
		if keys := l.Adapter.Keys(e, l.Directory()); keys.Kind == event.KindMessage {
			parents = append(parents, keys.Channel.Parent)
		}
	}
	for _, e := range l.Envelopes() {
		note(e)
	}
	other := testapp.NewAdapter(l.Server, nil)
	gap := event.Gap{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
	for _, reader := range []*discord.Adapter{l.Adapter, other} {
		for _, gap.Channel = range []string{testapp.Room, thread} {
			if _, err := reader.ReadChannel(t.Context(), adapters.Reading{Gap: gap, Messages: 10, Hand: func(_ event.ThreadKey, list []adapters.Missed) error {
				note(*list[0].New)
				return nil
			}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"", testapp.Room, shown, "", testapp.Room, "", testapp.Room}; !slices.Equal(parents, want) {
		t.Errorf("the channels of the threads are %q, want %q", parents, want)
	}
}

// TestTheRootOfAThreadMayBeGone checks the history of a thread whose root was deleted, without the
// message by which Discord shows the root.
func TestTheRootOfAThreadMayBeGone(t *testing.T) {
	const thread = "700000000000000014"
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.SetChannel(discordtest.Channel{ID: thread, Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
	l.Say(discordtest.Message{Channel: thread, Author: testapp.Mara, Type: 21})
	l.MaraSays(thread, "one")
	before, err := l.Adapter.ReadHistory(t.Context(), payload.ThreadKey("acme", thread), l.MaraSays(thread, "two").ID, 20)
	if err != nil || len(before.Envelopes) != 1 || !strings.Contains(string(before.Envelopes[0].Body), `"one"`) {
		t.Errorf("%+v, %v", before, err)
	}
}

// TestMoreLinesThanAPage checks that the history of a long thread tells what is left out, although
// the block may have more lines than a page of Discord has messages.
func TestMoreLinesThanAPage(t *testing.T) {
	const thread = "700000000000000014"
	l := testapp.Prepare(t, discordtest.Options{}, nil)
	l.SetChannel(discordtest.Channel{ID: thread, Guild: testapp.Garden, Type: discordtest.PublicThread, Parent: testapp.Room})
	for range 130 {
		l.MaraSays(thread, "more")
	}
	before, err := l.Adapter.ReadHistory(t.Context(), payload.ThreadKey("acme", thread), l.MaraSays(thread, "last").ID, 150)
	if n := len(before.Envelopes); err != nil || n != 100 || before.Earlier != 30 {
		t.Errorf("%d messages and %d earlier ones, %v", n, before.Earlier, err)
	}
}
