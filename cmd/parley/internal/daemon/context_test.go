package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

const ash = "U0ASH"

// middle is a house in whose garden there is a thread that nobody has told it of: a
// root, an answer of ours, and so many replies of mara and ash in turn.
func middle(t *testing.T, p plan, replies int) (h *house, root slacktest.Post) {
	t.Helper()
	h = open(t, p)
	h.slack.AddChannel(room, "garden")
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.AddUser(slacktest.User{ID: ash, DisplayName: "Ash"})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	h.last = time.Now().Add(-time.Hour)
	root = h.say("who waters?", by(ash))
	h.say("You do.", under(root.TS), by(slacktest.BotUser), func(p *slacktest.Post) { p.BotID = slacktest.BotID })
	for i := range replies {
		h.say(fmt.Sprint("reply ", i+1), under(root.TS), by([]string{mara, ash}[i%2]))
	}
	h.last = time.Now()
	return h, root
}

func by(user string) func(*slacktest.Post) { return func(p *slacktest.Post) { p.User = user } }

// asks mentions the bot in a thread, and returns what the agent was asked.
func (h *house) inThread(root slacktest.Post, text string) []spoken {
	h.t.Helper()
	h.accept(told(h.say("<@U0BOT> "+text, under(root.TS))).Mention())
	return h.asks(says("Well.")).messages
}

const blockHead = "[Thread context — prior messages in this thread, newest last]"

func block(lines ...string) spoken {
	return spoken{"system", strings.Join(append([]string{blockHead}, lines...), "\n- ")}
}

// TestAThreadsBeginningIsRead once, in the order in which it was said, and stands
// before the turn it was read for and before no other.
func TestAThreadsBeginningIsRead(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := middle(t, plan{acme: "context: {thread: 3}", fake: options}, 5)
	begin := []spoken{
		block("Ash (<@U0ASH>): who waters?", "… (3 earlier messages)", "Mara (<@U0MARA>): reply 3", "Ash (<@U0ASH>): reply 4", "Mara (<@U0MARA>): reply 5"),
		{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"},
	}
	same(t, h.inThread(root, "and now?"), begin)
	h.posts(1)
	h.call(read)
	h.accept(told(h.say("passing by", under(root.TS))).Event())
	h.awaitMetric(settled("message", "stored", "no-mention"), 1)
	again := append(begin, spoken{"assistant", "Well."}, block("Mara (<@U0MARA>): passing by"), spoken{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and then?"})
	same(t, h.inThread(root, "and then?"), again)
	h.posts(2)
	select {
	case c := <-read:
		t.Errorf("%v was read again", c.Form)
	default:
	}
	h.restart()
	same(t, h.inThread(root, "still?")[:5], again[:5])
}

func TestAWholeThreadShowsUsAsOurselves(t *testing.T) {
	t.Parallel()
	h, root := middle(t, plan{}, 1)
	same(t, h.inThread(root, "and now?")[0], block("Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1"))
}

// TestStrangersAreInNoContext: who is not admitted is in nothing that the agent sees,
// not even by name; a program is one.
func TestStrangersAreInNoContext(t *testing.T) {
	t.Parallel()
	h, root := middle(t, plan{acme: "policy: {allow_users: [" + mara + "]}"}, 2)
	h.say("a program speaks", under(root.TS), by("U0PROGRAM"), func(p *slacktest.Post) { p.BotID = "B0PROGRAM" })
	same(t, h.inThread(root, "and now?"), []spoken{
		block("helper: You do.", "Mara (<@U0MARA>): reply 1"),
		{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"},
	})
}

// TestWithoutSlackTheTurnRuns with a mark where the rest would be, also later.
func TestWithoutSlackTheTurnRuns(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slacktest.Fault{
		"down":    {Status: 503},
		"refused": {Error: "missing_scope"},
		"limited": slacktest.RateLimited(time.Minute),
		"slow":    {Latency: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, root := middle(t, plan{slack: "timeout: 20s"}, 2)
			h.slack.Script("conversations.replies", fault)
			begin := []spoken{block("… (earlier messages could not be read)"), {"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"}}
			same(t, h.inThread(root, "and now?"), begin)
			h.posts(1)
			same(t, h.inThread(root, "and then?")[:2], begin)
		})
	}
}

// TestWhatIsKnownIsNotReadAgain: a thread that the journal has from its root on, and
// one of which it has some replies.
func TestWhatIsKnownIsNotDoubled(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := middle(t, plan{fake: options}, 2)
	known := h.say("known already", under(root.TS))
	h.accept(told(known).Event())
	h.awaitMetric(settled("message", "stored", "no-mention"), 1)
	want := block("Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1", "Ash (<@U0ASH>): reply 2", "Mara (<@U0MARA>): known already")
	same(t, h.inThread(root, "and now?")[0], want)
	h.posts(1)
	h.call(read)
	h.accept(told(root).Event()) // Slack tells of it at last
	h.awaitMetric(settled("message", "duplicate", ""), 1)
	own := h.say("a thread of our own time")
	h.accept(told(own).Event())
	h.awaitMetric(settled("message", "stored", "no-mention"), 2)
	same(t, h.inThread(own, "and this?")[0], block("Mara (<@U0MARA>): a thread of our own time"))
	select {
	case c := <-read:
		t.Errorf("%v was read", c.Form)
	default:
	}
}

func TestWithoutPassiveMemoryNothingIsRead(t *testing.T) {
	t.Parallel()
	h, root := middle(t, plan{acme: "policy: {passive_memory: false}"}, 2)
	same(t, h.inThread(root, "and now?"), []spoken{{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"}})
}

// TestTheEndOfALongThreadIsFound with a few calls.
func TestTheEndOfALongThreadIsFound(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := middle(t, plan{acme: "context: {thread: 2}", fake: options}, 700)
	same(t, h.inThread(root, "and now?")[0],
		block("Ash (<@U0ASH>): who waters?", "… (699 earlier messages)", "Mara (<@U0MARA>): reply 699", "Ash (<@U0ASH>): reply 700"))
	if n := len(read); n > 5 {
		t.Errorf("%d calls", n)
	}
}
