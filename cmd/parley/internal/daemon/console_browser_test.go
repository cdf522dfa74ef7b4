package daemon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
	"parley/adapters/slack/slacktest"
)

// person opens the console in a browser, logged in with a ticket.
func (h *harness) person() (*browsertest.Tab, string) {
	h.t.Helper()
	tab := browsertest.Open(h.t)
	door, err := h.operate().Console(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	tab.Goto(door.URL)
	tab.Wait(`document.querySelector("[data-test=needs]")`)
	base := strings.TrimSuffix(browsertest.Eval[string](tab, "document.baseURI"), "/")
	return tab, base
}

// press opens the confirmation of an operation, leaves a note, and confirms it.
func press(tab *browsertest.Tab, test, note string) {
	tab.Find("details.act:has([data-test=" + test + "]) > summary").Click()
	tab.Wait(`document.querySelector("details.act[open] [data-test=` + test + `]")`)
	tab.Find("details.act[open] input[name=note]").Type(note)
	tab.Find("details.act[open] [data-test=" + test + "]").Click()
}

// atResult waits for the words of a result, which have the focus.
func atResult(tab *browsertest.Tab, words string) {
	tab.Wait(`document.activeElement.matches(".said") && document.activeElement.innerText.includes("` + words + `")`)
}

// TestPersonFindsAnIgnoredMention and the key that decided.
func TestPersonFindsAnIgnoredMention(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {allow_users: [U0NOBODY]}"})
	m := h.mention("are you there?")
	h.awaitMetric(`parley_envelopes_total{disposition="ignored",kind="message",reason="user-refused",workspace="acme"}`, 1)
	tab, _ := h.person()
	tab.Press("/")
	tab.Wait(`document.activeElement.id === "find"`)
	browsertest.Eval[any](tab, `void (document.activeElement.value = "")`) // the protocol sends the character beside the key
	tab.Find("#find").Type(room + "/" + m.TS)
	tab.Press(kb.Enter)
	tab.Wait(`document.querySelector("[data-test=why-reason]")?.innerText.startsWith("user-refused")`)
	if key := strings.Join(tab.Texts("[data-test=why-key]"), "\n"); !strings.Contains(key, "policy.allow_users: [U0NOBODY]") || !strings.Contains(key, "acme.yaml:") {
		t.Errorf("the key is %q", key)
	}
}

// TestPersonRepairsADeadLetter tries it, resubmits it in vain, and discards it.
func TestPersonRepairsADeadLetter(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.awaitState("acme", "up")
	body := string(h.newMessage("<@" + slacktest.BotUser + "> are you there?").Mention())
	h.accept([]byte(strings.Replace(body, `"text":`, `"text":7,"was":`, 1)))
	h.letter(h.operate())
	tab, base := h.person()
	tab.Role("link", "1 dead letter").Click()
	tab.Find("[data-test=dead-row] a.open").Click()
	tab.Find("[data-test=dry-run]").Click()
	atResult(tab, "If Parley recorded it now: dead")
	press(tab, "retry", "once more")
	atResult(tab, "Resubmitted: dead")
	press(tab, "discard", "of no use")
	atResult(tab, "Discarded.")
	tab.Goto(base + "/audit")
	if notes := strings.Join(tab.Texts("td[data-name=Note]"), " "); notes != "of no use once more" {
		t.Errorf("the audit has %q", notes)
	}
}

// TestPersonResendsAPost that the platform may or may not have.
func TestPersonResendsAPost(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, unknown: hold"})
	h.slack.Script("chat.postMessage", slacktest.Fault{Cut: true})
	h.slack.Script("conversations.replies", slacktest.Fault{Error: "missing_scope"})
	h.mention("are you there?")
	h.answerNext(replyWith("Yes."))
	for h.metric(`parley_deliveries_total{state="unknown",workspace="acme"}`) == 0 && h.poll() {
		h.clock.advance(time.Second)
	}
	h.held(h.operate(), "unknown")
	tab, _ := h.person()
	tab.Role("link", "1 post with an unknown result").Click()
	tab.Find("[data-test=delivery-row] a.open").Click()
	press(tab, "resend", "it is not there")
	atResult(tab, "The delivery is")
	if posts := h.posts(1); posts[0].Text != "Yes." {
		t.Errorf("%+v", posts)
	}
}

// TestPersonApproves what an agent asks for.
func TestPersonApproves(t *testing.T) {
	t.Parallel()
	a := openAskingWith(t, ", 'operator:local'")
	a.mention("water the tomatoes")
	same(t, <-a.inputs, "")
	a.posts(1)
	tab, _ := a.person()
	tab.Role("link", "1 open question").Click()
	press(tab, "approve", "the beds are dry")
	atResult(tab, "The question is answered")
	same(t, <-a.inputs, `[{"interruptId":"i1","status":"resolved","payload":{"approved":true}}]`)
}

// TestPersonWatchesAThread while it grows, and tries a message.
func TestPersonWatchesAThread(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	root := h.mention("<i>first</i>")
	h.answerNext(replyWith("One."))
	h.awaitMetric(sent, 1)
	tab, base := h.person()
	tab.Goto(base + "/threads")
	tab.Find("[data-test=thread-row] a.open").Click()
	tab.Wait(`document.querySelectorAll("#messages article").length === 2`)
	second := h.newMessage("<@" + slacktest.BotUser + "> second")
	second.ThreadTS = root.TS
	h.accept(second.Mention())
	h.answerNext(replyWith("Two."))
	tab.Wait(`document.querySelectorAll("#messages article").length === 4 && document.querySelector("#m4").innerText.includes("Two.")`)
	if got := tab.Find("#m1 [data-test=typed] .text").Text(); !strings.Contains(got, "<i>first</i>") {
		t.Errorf("the first message is %q", got)
	}
	tab.Goto(base + "/try")
	tab.Find("[data-test=try-text]").Type("what would you say?")
	tab.Find("[data-test=try-send]").Click()
	h.answerNext(replyWith("This."))
	tab.Wait(`document.querySelector("[data-test=try-answer]")?.innerText === "This."`)
	if link := browsertest.Eval[string](tab, `document.querySelector("main a[href$='/chat']").href`); link != h.url+"/chat" {
		t.Errorf("the conversation is at %s", link)
	}
}
