package daemon_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/sqlite"
)

// putMessage puts a message of mara's on Slack without an event to the daemon.
func (h *harness) putMessage(text string, more ...func(*slacktest.Post)) slacktest.Post {
	h.t.Helper()
	h.last = h.last.Add(time.Millisecond) // so that each message has its own ts
	post := slacktest.Post{Channel: room, User: mara, Text: text, TS: slacktest.Timestamp(h.last)}
	for _, set := range more {
		set(&post)
	}
	return h.slack.Put(post)
}

func inThreadOf(root string) func(*slacktest.Post) {
	return func(p *slacktest.Post) { p.ThreadTS = root }
}

// messageOf returns the message of a post, as an event contains it.
func messageOf(p slacktest.Post) slacktest.Message {
	return slacktest.Message{Channel: p.Channel, User: p.User, Text: p.Text, TS: p.TS, ThreadTS: p.ThreadTS}
}

// awaitUp waits until the workspace is up, which is also when its watermark begins.
func (h *harness) awaitUp() {
	h.t.Helper()
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
}

// whileStopped stops the daemon, calls meanwhile, and starts the daemon again.
func (h *harness) whileStopped(meanwhile func()) {
	h.t.Helper()
	h.awaitUp()
	if err := h.stop(); err != nil {
		h.t.Fatalf("stop: %v\n%s", err, h.log)
	}
	h.last = time.Now()
	meanwhile()
	if err := h.start(h.dir + "/parley.yaml"); err != nil {
		h.t.Fatal(err)
	}
}

// origins stops the daemon and returns the origins of the stored messages of a thread, by
// content.
func (h *harness) origins(root slacktest.Post) map[string]messages.Origin {
	h.t.Helper()
	if err := h.stop(); err != nil {
		h.t.Fatal(err)
	}
	engine, err := sqlite.Open(h.ctx, filepath.Join(h.dir, "data/parley.db"), sqlite.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer engine.Close()
	key := event.ThreadKey("slack:acme:" + root.Channel + ":" + root.TS)
	stored := journal.New(engine, journal.Options{})
	id, err := stored.Threads.ThreadID(h.ctx, key)
	if err != nil {
		h.t.Fatal(err)
	}
	list, err := stored.Messages.ThreadMessages(h.ctx, "acme", id, messages.Page{Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	origins := map[string]messages.Origin{}
	for _, m := range list {
		origins[m.Content] = m.Origin
	}
	return origins
}

// tally counts the calls of Slack, by method.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *tally) add(call slacktest.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[call.Method]++
}

func (c *tally) of(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[method]
}

// TestMissedMessagesAreAnsweredOnce, in their order. The test stops the daemon three times,
// and puts messages into the channel and into a thread meanwhile. Afterwards Slack sends the
// event of one of them again.
func TestMissedMessagesAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.AddChannel(room, "garden")
	root := h.putMessage("<@U0BOT> are you there?")
	h.accept(messageOf(root).Mention())
	h.answerNext(replyWith("Yes."))
	h.posts(1)
	for round := range 3 {
		var missed []slacktest.Post
		h.whileStopped(func() {
			h.clock.advance(time.Second) // so that no message is in the future
			for i := range 4 {
				missed = append(missed, h.putMessage(fmt.Sprintf("<@U0BOT> question %d.%d", round, i), inThreadOf(root.TS)))
			}
			h.putMessage("nothing for you")
		})
		h.accept(messageOf(missed[2]).Event()) // Slack sends a missed event again
		last := h.newMessage(fmt.Sprintf("<@U0BOT> question %d.4", round))
		last.ThreadTS = root.TS
		h.accept(last.Mention())
		var asked, want []chatMessage
		for i := range 5 {
			messages := h.answerNext(replyWith("So it is.")).messages
			asked = append(asked, messages[len(messages)-1])
			want = append(want, chatMessage{"user", fmt.Sprintf("[Mara (<@U0MARA>)]: <@U0BOT> question %d.%d", round, i)})
		}
		same(t, asked, want)
		h.posts(1 + 5*(round+1))
	}
	if posts := h.posts(16); len(posts) != 16 {
		t.Errorf("%d posts", len(posts))
	}
	origins := h.origins(root)
	if origins["<@U0BOT> question 1.1"] != messages.Late || origins["<@U0BOT> question 1.4"] != messages.Live {
		t.Errorf("%v", origins)
	}
}

// TestOnlyThreadBehindWaits after a restart, while Slack does not answer reads of whole
// channels: a new thread waits for nothing, and an old one for its own missed messages. Then
// the other missed message is answered, once.
func TestOnlyThreadBehindWaits(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "conversations.history" {
			return slacktest.Fault{Hold: release}
		}
		return slacktest.Fault{}
	}}})
	h.slack.AddChannel(room, "garden")
	old := h.putMessage("<@U0BOT> are you there?")
	h.accept(messageOf(old).Mention())
	h.answerNext(replyWith("Yes."))
	h.posts(1)
	h.whileStopped(func() {
		h.putMessage("a frost is coming", inThreadOf(old.TS))
		h.putMessage("<@U0BOT> this one has no event")
	})
	h.awaitUp()
	h.last = time.Now()
	begun := time.Now()
	fresh := h.putMessage("<@U0BOT> what is new?")
	h.accept(messageOf(fresh).Mention())
	same(t, h.answerNext(replyWith("This.")).messages, []chatMessage{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what is new?"}})
	h.accept(messageOf(h.putMessage("<@U0BOT> what about the roses?", inThreadOf(old.TS))).Mention())
	messages := h.answerNext(replyWith("Cover them.")).messages
	same(t, messages[len(messages)-2:], []chatMessage{
		block("U0MARA (<@U0MARA>): a frost is coming"), {"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what about the roses?"},
	})
	h.posts(3)
	t.Logf("answered both after %v", time.Since(begun))
	close(release)
	same(t, h.answerNext(replyWith("I do.")).messages, []chatMessage{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> this one has no event"}})
	if posts := h.posts(4); len(posts) != 4 {
		t.Errorf("%d posts", len(posts))
	}
}

// TestTurnGoesOnWithoutMissedMessages if Slack does not list them, and the agent is told.
func TestTurnGoesOnWithoutMissedMessages(t *testing.T) {
	t.Parallel()
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "conversations.history" || c.Method == "conversations.replies" {
			return slacktest.Fault{Status: 503}
		}
		return slacktest.Fault{}
	}}})
	h.slack.AddChannel(room, "garden")
	old := h.putMessage("<@U0BOT> are you there?")
	h.accept(messageOf(old).Mention())
	h.answerNext(replyWith("Yes."))
	h.posts(1)
	h.whileStopped(func() { h.putMessage("a frost is coming", inThreadOf(old.TS)) })
	h.accept(messageOf(h.putMessage("<@U0BOT> what about the roses?", inThreadOf(old.TS))).Mention())
	messages := h.answerNext(replyWith("I don't know.")).messages
	same(t, messages[len(messages)-2:], []chatMessage{
		block("… (earlier messages could not be read)"), {"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what about the roses?"},
	})
	h.posts(2)
}

// linked is a Slack adapter that passes its Link to the test.
type linked struct {
	*slack.Adapter
	links chan<- adapters.Link
}

func (l linked) Connections() []adapters.Connection {
	return []adapters.Connection{{Run: func(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
		l.links <- link
		return l.Run(ctx, inbox, link)
	}}}
}

// TestRunningConnectionStartsBackfill proves that a missed message is answered if the
// connection reports the time since which messages may be missing, without a
// disconnection.
func TestRunningConnectionStartsBackfill(t *testing.T) {
	t.Parallel()
	links := make(chan adapters.Link, 1)
	h := open(t, plan{platforms: withSlack(func(workspace string, c *slack.Config) adapters.Adapter {
		return linked{slack.New(workspace, *c), links}
	})})
	h.slack.AddChannel(room, "garden")
	h.awaitUp()
	h.last = time.Now()
	since := h.last
	h.putMessage("<@U0BOT> one without an event")
	(<-links).Missed(room, since)
	same(t, h.answerNext(replyWith("Yes.")).messages, []chatMessage{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> one without an event"}})
	h.posts(1)
}

// TestRetriedHookStartsBackfill of the messages that Slack sent while it could not reach the
// running daemon, and does not send again.
func TestRetriedHookStartsBackfill(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddChannel(room, "garden")
	h.awaitUp()
	h.last = time.Now()
	h.putMessage("<@U0BOT> one that Slack gives up")
	retried := messageOf(h.putMessage("<@U0BOT> one that Slack tries again"))
	request, err := slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", signingSecret, time.Now(), retried.Mention())
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Slack-Retry-Num", "2")
	h.send(request, nil)
	var asked []string
	for range 2 {
		asked = append(asked, h.answerNext(replyWith("Yes.")).messages[0].Content)
	}
	slices.Sort(asked)
	same(t, asked, []string{"[U0MARA (<@U0MARA>)]: <@U0BOT> one that Slack gives up", "[U0MARA (<@U0MARA>)]: <@U0BOT> one that Slack tries again"})
	h.posts(2)
}

func TestFirstStartReadsNothing(t *testing.T) {
	t.Parallel()
	calls := new(tally)
	h := open(t, plan{fake: slacktest.Options{OnCall: calls.add}})
	h.slack.AddChannel(room, "garden")
	h.putMessage("<@U0BOT> long ago")
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	h.mention("now")
	h.answerNext(replyWith("Now."))
	if posts := h.posts(1); len(posts) != 1 || calls.of("conversations.history") != 0 {
		t.Errorf("%+v", posts)
	}
}

// TestMissedEditIsApplied to a message that an earlier turn contained.
func TestMissedEditIsApplied(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddChannel(room, "garden")
	root := h.putMessage("<@U0BOT> buy one rake")
	h.accept(messageOf(root).Mention())
	h.answerNext(replyWith("One."))
	h.posts(1)
	h.whileStopped(func() { h.slack.Edit(room, root.TS, "<@U0BOT> buy two rakes") })
	h.awaitMetric(envelopesMetric("edit", "updated", ""), 1)
	next := h.newMessage("<@U0BOT> how many?")
	next.ThreadTS = root.TS
	h.accept(next.Mention())
	same(t, h.answerNext(replyWith("Two.")).messages[0], chatMessage{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> buy two rakes"})
}

// TestBackfillIsBounded by its own age limit, not by the policy's, and by its number of
// messages.
func TestBackfillIsBounded(t *testing.T) {
	t.Parallel()
	past := make(chan struct{})
	h := open(t, plan{acme: "catch_up: {max_age: 2h, messages: 2}\npolicy: {max_age: 1m}", fake: slacktest.Options{
		Plan: func(c slacktest.Call) slacktest.Fault {
			if c.Method == "auth.test" {
				return slacktest.Fault{Hold: past}
			}
			return slacktest.Fault{}
		}}})
	h.slack.AddChannel(room, "garden")
	h.clock.advance(-3 * time.Hour) // the time at which the workspace was up last
	close(past)
	h.awaitUp()
	h.clock.advance(3 * time.Hour)
	h.whileStopped(func() {
		h.last = time.Now().Add(-150 * time.Minute)
		h.putMessage("<@U0BOT> too old")
		h.last = time.Now().Add(-time.Hour)
		for _, text := range []string{"<@U0BOT> one too many", "<@U0BOT> old", "<@U0BOT> and newer"} {
			h.putMessage(text)
		}
	})
	var asked []string
	for range 2 {
		asked = append(asked, h.answerNext(replyWith("Yes.")).messages[0].Content)
	}
	slices.Sort(asked) // each is its own thread, and threads have no common order
	same(t, asked, []string{"[U0MARA (<@U0MARA>)]: <@U0BOT> and newer", "[U0MARA (<@U0MARA>)]: <@U0BOT> old"})
	h.posts(2)
	h.awaitMetric(envelopesMetric("message", "stored", "mention"), 2)
}

// TestFailedBackfillDelaysNothing: every read of the history fails, and a new message is
// answered.
func TestFailedBackfillDelaysNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "conversations.history" {
			return slacktest.Fault{Error: "missing_scope"}
		}
		return slacktest.Fault{}
	}}})
	h.slack.AddChannel(room, "garden")
	h.mention("hello")
	h.answerNext(replyWith("Hello."))
	h.posts(1)
	h.whileStopped(func() { h.putMessage("<@U0BOT> this one is missed") })
	h.mention("and again")
	h.answerNext(replyWith("Again."))
	h.posts(2)
}

// TestMessagesMissedBySocketsAreAnsweredOnce, in their order. The test cuts every connection
// several times and sends messages at once: some reach no socket, and some the next socket.
func TestMessagesMissedBySocketsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := openWithSockets(t, 1, slacktest.SocketOptions{})
	h.awaitUp()
	h.clock.advance(time.Second) // so that no message is in the future
	h.last = time.Now()
	said := map[string][]string{}
	say := func(round int, words string) {
		for _, channel := range []string{"D0A", "D0B"} {
			text := fmt.Sprint(channel, " ", round, " ", words)
			said[channel] = append(said[channel], text)
			h.last = h.last.Add(time.Millisecond)
			h.slack.Say(slacktest.Message{Channel: channel, ChannelType: "im", User: mara, Text: text, TS: slacktest.Timestamp(h.last)})
		}
	}
	say(0, "before")
	const rounds = 5
	for round := range rounds {
		h.slack.Cut(slacktest.All)
		say(round, "missed")
		say(round, "missed too")
		if err := h.slack.AwaitFresh(h.ctx, 1); err != nil {
			t.Fatalf("%v\n%s", err, h.log)
		}
		say(round, "live")
		h.posts(2 * (1 + 3*(round+1)))
	}
	answered := map[string][]string{}
	for _, post := range h.slack.Posts() {
		answered[post.Channel] = append(answered[post.Channel], post.Text)
	}
	same(t, answered, said)
	if h.slack.Missed() == 0 {
		t.Error("nothing was missed")
	}
}
