package daemon_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// say puts a message of mara's on Slack, of which nobody is told.
func (h *house) say(text string, more ...func(*slacktest.Post)) slacktest.Post {
	h.t.Helper()
	h.last = h.last.Add(time.Millisecond) // the precision of the order
	post := slacktest.Post{Channel: room, User: mara, Text: text, TS: slacktest.Timestamp(h.last)}
	for _, set := range more {
		set(&post)
	}
	return h.slack.Put(post)
}

func under(root string) func(*slacktest.Post) {
	return func(p *slacktest.Post) { p.ThreadTS = root }
}

// told is the message of a post, as an event tells of it.
func told(p slacktest.Post) slacktest.Message {
	return slacktest.Message{Channel: p.Channel, User: p.User, Text: p.Text, TS: p.TS, ThreadTS: p.ThreadTS}
}

// listens waits until events can arrive, and the watermark says so.
func (h *house) listens() {
	h.t.Helper()
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
}

// away stops the daemon, lets something happen, and starts it again.
func (h *house) away(meanwhile func()) {
	h.t.Helper()
	h.listens()
	if err := h.stop(); err != nil {
		h.t.Fatalf("stop: %v\n%s", err, h.log)
	}
	h.last = time.Now()
	meanwhile()
	if err := h.start(h.dir + "/parley.yaml"); err != nil {
		h.t.Fatal(err)
	}
}

// origins are the origins of what is stored of a thread, by content. The daemon is
// stopped for that.
func (h *house) origins(root slacktest.Post) map[string]journal.Origin {
	h.t.Helper()
	if err := h.stop(); err != nil {
		h.t.Fatal(err)
	}
	engine, err := sqlite.Open(h.ctx, filepath.Join(h.dir, "data/parley.db"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer engine.Close()
	key := event.ThreadKey("slack:acme:" + root.Channel + ":" + root.TS)
	list, err := journal.New(engine, journal.Options{}).Messages(h.ctx, key, 0, 100)
	if err != nil {
		h.t.Fatal(err)
	}
	origins := map[string]journal.Origin{}
	for _, m := range list {
		origins[m.Content] = m.Origin
	}
	return origins
}

// tally counts what is asked of Slack, by method.
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

// TestWhatWasMissedIsAnsweredOnce, in the order in which it was said. It stops the daemon
// three times, says something meanwhile, in the channel and in a thread, and tells of
// part of it when the daemon is back.
func TestWhatWasMissedIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.AddChannel(room, "garden")
	root := h.say("<@U0BOT> are you there?")
	h.accept(told(root).Mention())
	h.asks(says("Yes."))
	h.posts(1)
	for round := range 3 {
		var missed []slacktest.Post
		h.away(func() {
			h.clock.advance(time.Second) // no message comes from the future
			for i := range 4 {
				missed = append(missed, h.say(fmt.Sprintf("<@U0BOT> question %d.%d", round, i), under(root.TS)))
			}
			h.say("nothing for you")
		})
		h.accept(told(missed[2]).Event()) // Slack tries again what came to nobody
		last := h.said(fmt.Sprintf("<@U0BOT> question %d.4", round))
		last.ThreadTS = root.TS
		h.accept(last.Mention())
		var asked, want []spoken
		for i := range 5 {
			messages := h.asks(says("So it is.")).messages
			asked = append(asked, messages[len(messages)-1])
			want = append(want, spoken{"user", fmt.Sprintf("[Mara (<@U0MARA>)]: <@U0BOT> question %d.%d", round, i)})
		}
		same(t, asked, want)
		h.posts(1 + 5*(round+1))
	}
	if posts := h.posts(16); len(posts) != 16 {
		t.Errorf("%d posts", len(posts))
	}
	origins := h.origins(root)
	if origins["<@U0BOT> question 1.1"] != journal.Late || origins["<@U0BOT> question 1.4"] != journal.Live {
		t.Errorf("%v", origins)
	}
}

// TestOnlyAThreadThatIsBehindWaits after a restart, while Slack tells nothing of whole
// channels: a new thread for nothing, and an old one for its own missed messages. Then
// the rest is answered, once.
func TestOnlyAThreadThatIsBehindWaits(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "conversations.history" {
			return slacktest.Fault{Hold: release}
		}
		return slacktest.Fault{}
	}}})
	h.slack.AddChannel(room, "garden")
	old := h.say("<@U0BOT> are you there?")
	h.accept(told(old).Mention())
	h.asks(says("Yes."))
	h.posts(1)
	h.away(func() {
		h.say("a frost is coming", under(old.TS))
		h.say("<@U0BOT> nobody tells of this")
	})
	h.listens()
	h.last = time.Now()
	begun := time.Now()
	fresh := h.say("<@U0BOT> what is new?")
	h.accept(told(fresh).Mention())
	same(t, h.asks(says("This.")).messages, []spoken{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what is new?"}})
	h.accept(told(h.say("<@U0BOT> what about the roses?", under(old.TS))).Mention())
	messages := h.asks(says("Cover them.")).messages
	same(t, messages[len(messages)-2:], []spoken{
		block("U0MARA (<@U0MARA>): a frost is coming"), {"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what about the roses?"},
	})
	h.posts(3)
	t.Logf("answered both after %v", time.Since(begun))
	close(release)
	same(t, h.asks(says("I do.")).messages, []spoken{{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> nobody tells of this"}})
	if posts := h.posts(4); len(posts) != 4 {
		t.Errorf("%d posts", len(posts))
	}
}

// TestATurnGoesOnWithoutItsMissedMessages if Slack does not tell them, and says so.
func TestATurnGoesOnWithoutItsMissedMessages(t *testing.T) {
	t.Parallel()
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "conversations.history" || c.Method == "conversations.replies" {
			return slacktest.Fault{Status: 503}
		}
		return slacktest.Fault{}
	}}})
	h.slack.AddChannel(room, "garden")
	old := h.say("<@U0BOT> are you there?")
	h.accept(told(old).Mention())
	h.asks(says("Yes."))
	h.posts(1)
	h.away(func() { h.say("a frost is coming", under(old.TS)) })
	h.accept(told(h.say("<@U0BOT> what about the roses?", under(old.TS))).Mention())
	messages := h.asks(says("I don't know.")).messages
	same(t, messages[len(messages)-2:], []spoken{
		block("… (earlier messages could not be read)"), {"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what about the roses?"},
	})
	h.posts(2)
}

// TestARetryTellsOfWhatSlackGaveUp while the daemon ran, but could not be reached.
func TestARetryTellsOfWhatSlackGaveUp(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddChannel(room, "garden")
	h.listens()
	h.last = time.Now()
	h.say("<@U0BOT> one that Slack gives up")
	retried := told(h.say("<@U0BOT> one that Slack tries again"))
	request, err := slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/acme", signingSecret, time.Now(), retried.Mention())
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Slack-Retry-Num", "2")
	h.send(request, nil)
	var asked []string
	for range 2 {
		asked = append(asked, h.asks(says("Yes.")).messages[0].Content)
	}
	slices.Sort(asked)
	same(t, asked, []string{"[U0MARA (<@U0MARA>)]: <@U0BOT> one that Slack gives up", "[U0MARA (<@U0MARA>)]: <@U0BOT> one that Slack tries again"})
	h.posts(2)
}

func TestAFirstStartReplaysNothing(t *testing.T) {
	t.Parallel()
	calls := new(tally)
	h := open(t, plan{fake: slacktest.Options{OnCall: calls.add}})
	h.slack.AddChannel(room, "garden")
	h.say("<@U0BOT> long ago")
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	h.mention("now")
	h.asks(says("Now."))
	if posts := h.posts(1); len(posts) != 1 || calls.of("conversations.history") != 0 {
		t.Errorf("%+v", posts)
	}
}

// TestAMissedEditIsApplied to a message that the agent was asked before.
func TestAMissedEditIsApplied(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.slack.AddChannel(room, "garden")
	root := h.say("<@U0BOT> buy one rake")
	h.accept(told(root).Mention())
	h.asks(says("One."))
	h.posts(1)
	h.away(func() { h.slack.Edit(room, root.TS, "<@U0BOT> buy two rakes") })
	h.awaitMetric(settled("edit", "updated", ""), 1)
	next := h.said("<@U0BOT> how many?")
	next.ThreadTS = root.TS
	h.accept(next.Mention())
	same(t, h.asks(says("Two.")).messages[0], spoken{"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> buy two rakes"})
}

// TestBackfillIsBounded by age, which is its own and not the policy's, and by number.
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
	h.clock.advance(-3 * time.Hour) // when it was up for the last time
	close(past)
	h.listens()
	h.clock.advance(3 * time.Hour)
	h.away(func() {
		h.last = time.Now().Add(-150 * time.Minute)
		h.say("<@U0BOT> too old")
		h.last = time.Now().Add(-time.Hour)
		for _, text := range []string{"<@U0BOT> one too many", "<@U0BOT> old", "<@U0BOT> and newer"} {
			h.say(text)
		}
	})
	var asked []string
	for range 2 {
		asked = append(asked, h.asks(says("Yes.")).messages[0].Content)
	}
	slices.Sort(asked) // they are threads of their own
	same(t, asked, []string{"[U0MARA (<@U0MARA>)]: <@U0BOT> and newer", "[U0MARA (<@U0MARA>)]: <@U0BOT> old"})
	h.posts(2)
	h.awaitMetric(settled("message", "stored", "mention"), 2)
}

// TestSlackThatCantBeReadHoldsUpNobody: history fails for good, and what comes in is answered.
func TestSlackThatCantBeReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := open(t, plan{fake: slacktest.Options{Plan: func(c slacktest.Call) slacktest.Fault {
		if c.Method == "conversations.history" {
			return slacktest.Fault{Error: "missing_scope"}
		}
		return slacktest.Fault{}
	}}})
	h.slack.AddChannel(room, "garden")
	h.mention("hello")
	h.asks(says("Hello."))
	h.posts(1)
	h.away(func() { h.say("<@U0BOT> nobody hears this") })
	h.mention("and again")
	h.asks(says("Again."))
	h.posts(2)
}

// TestWhatCutSocketsMissedIsAnsweredOnce, in the order in which it was said. It cuts every
// connection and says something at once, again and again: part of it reaches nobody, part
// the next socket.
func TestWhatCutSocketsMissedIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := plugIn(t, 1, slacktest.SocketOptions{})
	h.listens()
	h.clock.advance(time.Second) // no message comes from the future
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
