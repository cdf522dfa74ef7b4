package send_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/adapters/discord/payload"
	"parley/adapters/discord/send"
	"parley/ingest/event"
)

// TestQuestionGetsItsOwnThread checks auto_thread: the thread's key is the question's id, the
// first post opens the thread, and later messages there continue it.
func TestQuestionGetsItsOwnThread(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, func(c *discord.Config) { c.AutoThread = true })
	question := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> a question")
	l.MaraSays(testapp.Room, "not a question")
	l.AwaitTexts(2)
	var threads []event.ThreadKey
	for _, e := range l.Envelopes() {
		got, err := l.Adapter.Normalize(t.Context(), e, l.Directory())
		if err != nil {
			t.Fatal(err)
		}
		keys := l.Adapter.Keys(e, l.Directory())
		if got.Message.Thread != keys.Thread {
			t.Errorf("Keys returns thread %s, Normalize thread %s", keys.Thread, got.Message.Thread)
		}
		threads = append(threads, keys.Thread)
	}
	if want := []event.ThreadKey{payload.ThreadKey("acme", question.ID), payload.ThreadKey("acme", testapp.Room)}; !slices.Equal(threads, want) {
		t.Errorf("the threads are %q, want %q", threads, want)
	}
	l.Send(l.Post("k1", question.ID, question.ID, "an answer"))
	l.Send(l.Post("k2", question.ID, question.ID, "more"))
	if posts := l.Posts(question.ID); len(posts) != 2 {
		t.Errorf("the thread has %d posts", len(posts))
	}
	follow := l.MaraSays(question.ID, "thanks")
	l.AwaitTexts(3)
	for _, e := range l.Envelopes() {
		if keys := l.Adapter.Keys(e, l.Directory()); keys.MessageID == follow.ID && keys.Thread != payload.ThreadKey("acme", question.ID) {
			t.Errorf("a later message has the keys %+v", keys)
		}
	}
}

// TestAThreadThatDiscordRefuses checks that the answer then comes in the question's channel. There
// the adapter finds, edits and removes it, also after a restart.
func TestAThreadThatDiscordRefuses(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Start(t, discordtest.Options{OnCall: calls.Note}, func(c *discord.Config) { c.AutoThread = true })
	l.SetChannel(discordtest.Channel{ID: testapp.Room, Guild: testapp.Garden, Name: "lounge", Type: discordtest.Voice})
	question := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> a question")
	l.AwaitTexts(1)
	first, second := l.Post("k1", question.ID, question.ID, "an answer"), l.Post("k2", question.ID, question.ID, "more")
	id := l.Send(first)
	l.Adapter = testapp.NewAdapter(l.Server, func(c *discord.Config) { c.AutoThread = true })
	l.Adapter.UseState(l.State)
	l.Send(second)
	if posts := l.Posts(testapp.Room); len(posts) != 2 || posts[0].ReplyTo != question.ID {
		t.Fatalf("the channel has the posts %+v", posts)
	}
	if opens := calls.Of(discordtest.OpenThread); len(opens) != 1 {
		t.Errorf("%d calls for a thread", len(opens))
	}
	if ids, err := l.Adapter.List(t.Context(), first); err != nil || !slices.Equal(ids, []string{id}) {
		t.Errorf("the search finds %q, %v", ids, err)
	}
	first.Text = "another answer"
	if err := errors.Join(l.Adapter.Edit(t.Context(), id, first), l.Adapter.Remove(t.Context(), l.Posts(testapp.Room)[1].ID, second)); err != nil {
		t.Error(err)
	}
	if posts := l.Posts(testapp.Room); len(posts) != 1 || posts[0].Content != first.Text {
		t.Errorf("after an edit and a delete, the posts are %+v", posts)
	}
}

// TestThreadNamesKeepGraphemes: the name of a thread ends behind a grapheme.
func TestThreadNamesKeepGraphemes(t *testing.T) {
	var calls testapp.Calls
	l := testapp.Start(t, discordtest.Options{OnCall: calls.Note}, func(c *discord.Config) { c.AutoThread = true })
	question := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> a question")
	l.AwaitTexts(1)
	l.Send(l.Post("k1", question.ID, question.ID, strings.Repeat("a", 76)+"👩\u200d👩\u200d👧\u200d👦 and more"))
	if body := string(calls.Of(discordtest.OpenThread)[0].Body); !strings.Contains(body, strings.Repeat("a", 76)+"…") {
		t.Errorf("the thread is opened as %s", body)
	}
}

// TestThreadsAreTurnedOff: an open question is still answered in a thread of its own, and a new one in
// its channel.
func TestThreadsAreTurnedOff(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, func(c *discord.Config) { c.AutoThread = true })
	question := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> a question")
	l.AwaitTexts(1)
	l.Adapter = testapp.NewAdapter(l.Server, func(c *discord.Config) { c.Working = send.WorkingReaction })
	l.Adapter.UseState(l.State)
	post := l.Post("k1", question.ID, question.ID, "an answer")
	if err := l.Adapter.ShowWorking(t.Context(), adapters.Sign{To: post.To, Message: question.ID}); err != nil || l.Reactions(testapp.Room, question.ID) != 1 {
		t.Errorf("the sign: %v, %d reactions", err, l.Reactions(testapp.Room, question.ID))
	}
	l.Send(post)
	if posts := l.Posts(question.ID); len(posts) != 1 {
		t.Errorf("the question's thread has the posts %+v", posts)
	}
	next := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> another question")
	l.AwaitTexts(2)
	for _, e := range l.Envelopes() {
		if keys := l.Adapter.Keys(e, l.Directory()); keys.MessageID == next.ID && keys.Thread != payload.ThreadKey("acme", testapp.Room) {
			t.Errorf("a new question has the keys %+v", keys)
		}
	}
}

// TestAThreadThatIsNotOpenYet checks the calls about a question before the first answer opens its
// thread: the sign of work, the search for a post, and the opening itself.
func TestAThreadThatIsNotOpenYet(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, func(c *discord.Config) { c.AutoThread, c.Working = true, send.WorkingReaction })
	typing := testapp.NewAdapter(l.Server, func(c *discord.Config) { c.AutoThread = true })
	typing.UseState(l.State)
	question := l.MaraSays(testapp.Room, "<@"+discordtest.BotUser+"> a question")
	l.AwaitTexts(1)
	post := l.Post("k1", question.ID, question.ID, "an answer")
	sign := adapters.Sign{To: post.To, Message: question.ID}
	if err := errors.Join(l.Adapter.ShowWorking(t.Context(), sign), typing.ShowWorking(t.Context(), sign)); err != nil || l.Reactions(testapp.Room, question.ID) != 1 {
		t.Errorf("the sign: %v, %d reactions", err, l.Reactions(testapp.Room, question.ID))
	}
	if _, found, err := l.Adapter.Find(t.Context(), post); found || err != nil {
		t.Errorf("the search: %v, %v", found, err)
	}
	l.Script(discordtest.OpenThread, discordtest.Fault{Status: 503}, discordtest.Fault{Status: 400, Code: 160004, Effect: true})
	_, err := l.Adapter.Send(t.Context(), post)
	if failure, ok := err.(*adapters.SendError); !ok || failure.Failure != adapters.NotSent {
		t.Errorf("an unclear opening: %v", err)
	}
	l.Send(post) // another node has opened the thread
	if posts := l.Posts(question.ID); len(posts) != 1 || posts[0].ReplyTo != "" {
		t.Errorf("the posts are %+v", posts)
	}
	l.Change(testapp.Room, question.ID, "<@"+discordtest.BotUser+"> another question")
	l.MaraSays(testapp.Room, "bye")
	l.AwaitTexts(3)
	for _, e := range l.Envelopes() {
		if keys := l.Adapter.Keys(e, l.Directory()); keys.Kind == event.KindEdit && keys.Thread != "" {
			t.Errorf("an edit names the thread %s", keys.Thread)
		}
	}
}
