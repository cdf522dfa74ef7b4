package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

const ash = "U0ASH"

// openMidThread starts a daemon and puts a thread on Slack that the daemon does not know: a
// root, a reply of ours, and a number of replies of mara and ash in turn.
func openMidThread(t *testing.T, p plan, replies int) (h *harness, root slacktest.Post) {
	t.Helper()
	h = open(t, p)
	h.slack.AddChannel(room, "garden")
	h.slack.AddUser(slacktest.User{ID: mara, DisplayName: "Mara"})
	h.slack.AddUser(slacktest.User{ID: ash, DisplayName: "Ash"})
	h.awaitMetric(`parley_workspace_up{workspace="acme"}`, 1)
	h.last = time.Now().Add(-time.Hour)
	root = h.putMessage("who waters?", byUser(ash))
	h.putMessage("You do.", inThreadOf(root.TS), byUser(slacktest.BotUser), func(p *slacktest.Post) { p.BotID = slacktest.BotID })
	for i := range replies {
		h.putMessage(fmt.Sprint("reply ", i+1), inThreadOf(root.TS), byUser([]string{mara, ash}[i%2]))
	}
	h.last = time.Now()
	return h, root
}

func byUser(user string) func(*slacktest.Post) { return func(p *slacktest.Post) { p.User = user } }

// mentionIn mentions the bot in a thread, and returns the input of the agent.
func (h *harness) mentionIn(root slacktest.Post, text string) []chatMessage {
	h.t.Helper()
	h.accept(messageOf(h.putMessage("<@U0BOT> "+text, inThreadOf(root.TS))).Mention())
	return h.answerNext(replyWith("Well.")).messages
}

const blockHead = "[Thread context — prior messages in this thread, newest last]"

func block(lines ...string) chatMessage {
	return chatMessage{"system", strings.Join(append([]string{blockHead}, lines...), "\n- ")}
}

// TestThreadHistoryIsReadOnce, in its order. It is in the block of the turn for which it was
// read, and in no other block.
func TestThreadHistoryIsReadOnce(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := openMidThread(t, plan{acme: "context: {thread: 3}", fake: options}, 5)
	begin := []chatMessage{
		block("Ash (<@U0ASH>): who waters?", "… (3 earlier messages)", "Mara (<@U0MARA>): reply 3", "Ash (<@U0ASH>): reply 4", "Mara (<@U0MARA>): reply 5"),
		{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"},
	}
	same(t, h.mentionIn(root, "and now?"), begin)
	h.posts(1)
	h.call(read)
	h.accept(messageOf(h.putMessage("passing by", inThreadOf(root.TS))).Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1)
	again := append(begin, chatMessage{"assistant", "Well."}, block("Mara (<@U0MARA>): passing by"), chatMessage{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and then?"})
	same(t, h.mentionIn(root, "and then?"), again)
	h.posts(2)
	select {
	case c := <-read:
		t.Errorf("%v was read again", c.Form)
	default:
	}
	h.restart()
	same(t, h.mentionIn(root, "still?")[:5], again[:5])
}

// TestNoHistoryIsReadWhileThePlatformHangs mentions the bot in threads whose earlier messages Slack does not show. After
// five of them, the next turn does not wait.
func TestNoHistoryIsReadWhileThePlatformHangs(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := openMidThread(t, plan{fake: options}, 1)
	begun := time.Now()
	for i := range 5 {
		h.slack.Script("conversations.replies", slacktest.Fault{Hold: t.Context().Done()})
		unread := h.putMessage("who waters?", byUser(ash))
		h.accept(messageOf(h.putMessage(fmt.Sprint("<@U0BOT> and ", i), inThreadOf(unread.TS))).Mention())
	}
	for range 5 {
		h.call(read)
		h.answerNext(replyWith("Well."))
	}
	h.posts(5)
	got := h.mentionIn(root, "and now?")[0].Content
	select {
	case c := <-read:
		if time.Since(begun) > 5*time.Second {
			t.Skip("this machine is so slow that a call was due again")
		}
		t.Errorf("%v was read", c.Form)
	default:
	}
	same(t, got, blockHead+"\n- … (earlier messages could not be read)")
}

// TestAlertInThreadHistory asks below an alert that Parley did not get. The words of the alert are in
// its blocks alone.
func TestAlertInThreadHistory(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	root := h.putMessage("", func(p *slacktest.Post) {
		p.User, p.BotID, p.Subtype = "", "B0ALERT", "bot_message"
		p.Blocks = []byte(`[{"type":"divider"},{"type":"header","text":{"type":"plain_text","text":"PumpStopped"}},{"type":"section","fields":[{"type":"mrkdwn","text":"cellar"}]}]`)
	})
	same(t, h.mentionIn(root, "what does this mean?"), []chatMessage{block("B0ALERT: PumpStopped\n  cellar"), {"user", "[U0MARA (<@U0MARA>)]: <@U0BOT> what does this mean?"}})
}

func TestOwnMessageInThreadHistory(t *testing.T) {
	t.Parallel()
	h, root := openMidThread(t, plan{}, 1)
	same(t, h.mentionIn(root, "and now?")[0], block("Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1"))
}

// TestRefusedAuthorsAreInNoContext: the agent sees neither the messages nor the names of
// authors that the policy refuses. The list of users is about people.
func TestRefusedAuthorsAreInNoContext(t *testing.T) {
	t.Parallel()
	const bot = "B0PROGRAM: a bot speaks"
	for policy, want := range map[string][]string{
		"allow_users: [" + mara + "]": {"helper: You do.", "Mara (<@U0MARA>): reply 1", bot},
		"allow_bots: [U0PROGRAM]":     {"Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1", "Ash (<@U0ASH>): reply 2", bot},
		"allow_bots: [B1]":            {"Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1", "Ash (<@U0ASH>): reply 2"},
		"bot_messages: ignore":        {"Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1", "Ash (<@U0ASH>): reply 2"},
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			h, root := openMidThread(t, plan{acme: "policy: {" + policy + "}"}, 2)
			h.putMessage("a bot speaks", inThreadOf(root.TS), byUser("U0PROGRAM"), func(p *slacktest.Post) { p.BotID = "B0PROGRAM" })
			same(t, h.mentionIn(root, "and now?"), []chatMessage{block(want...), {"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"}})
		})
	}
}

// TestTurnRunsWithoutThreadHistory if Slack does not return it. A line of the block says so,
// in later turns too.
func TestTurnRunsWithoutThreadHistory(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]slacktest.Fault{
		"down":    {Status: 503},
		"refused": {Error: "missing_scope"},
		"limited": slacktest.RateLimited(time.Minute),
		"slow":    {Latency: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, root := openMidThread(t, plan{slack: "timeout: 20s"}, 2)
			h.slack.Script("conversations.replies", fault)
			begin := []chatMessage{block("… (earlier messages could not be read)"), {"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"}}
			same(t, h.mentionIn(root, "and now?"), begin)
			h.posts(1)
			same(t, h.mentionIn(root, "and then?")[:2], begin)
		})
	}
}

// TestThreadHistoryHasNoDuplicates: the journal knows the first thread from its root, and
// some replies of the second one.
func TestThreadHistoryHasNoDuplicates(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := openMidThread(t, plan{fake: options}, 2)
	known := h.putMessage("known already", inThreadOf(root.TS))
	h.accept(messageOf(known).Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1)
	want := block("Ash (<@U0ASH>): who waters?", "helper: You do.", "Mara (<@U0MARA>): reply 1", "Ash (<@U0ASH>): reply 2", "Mara (<@U0MARA>): known already")
	same(t, h.mentionIn(root, "and now?")[0], want)
	h.posts(1)
	h.call(read)
	h.accept(messageOf(root).Event()) // its event is late
	h.awaitMetric(envelopesMetric("message", "duplicate", "duplicate"), 1)
	own := h.putMessage("a thread of our own time")
	h.accept(messageOf(own).Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 2)
	same(t, h.mentionIn(own, "and this?")[0], block("Mara (<@U0MARA>): a thread of our own time"))
	select {
	case c := <-read:
		t.Errorf("%v was read", c.Form)
	default:
	}
}

func TestNoThreadHistoryWithoutPassiveMemory(t *testing.T) {
	t.Parallel()
	h, root := openMidThread(t, plan{acme: "policy: {passive_memory: false}"}, 2)
	same(t, h.mentionIn(root, "and now?"), []chatMessage{{"user", "[Mara (<@U0MARA>)]: <@U0BOT> and now?"}})
}

// TestEndOfLongThreadHistory is read with a few calls.
func TestEndOfLongThreadHistory(t *testing.T) {
	t.Parallel()
	options, read := calls("conversations.replies")
	h, root := openMidThread(t, plan{acme: "context: {thread: 2}", fake: options}, 700)
	same(t, h.mentionIn(root, "and now?")[0],
		block("Ash (<@U0ASH>): who waters?", "… (699 earlier messages)", "Mara (<@U0MARA>): reply 699", "Ash (<@U0ASH>): reply 700"))
	if n := len(read); n > 5 {
		t.Errorf("%d calls", n)
	}
}
