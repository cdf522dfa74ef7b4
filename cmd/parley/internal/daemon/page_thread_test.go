package daemon_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// theirPage opens the page of a thread as the owner of a token.
func (h *harness) theirPage(t *testing.T, thread, token, name string) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t)
	tab.Size(1280, 800)
	tab.Goto(h.url + "/chat?thread=" + thread + "#" + token)
	tab.Role("button", "Continue as "+name).Click()
	tab.Wait(inElement("[data-test=input]") + ".length === 1 && !document.querySelector('#chat').hidden")
	return tab
}

// spoken waits until the list that a page shows has the messages, without the ends of runs.
func spoken(tab *browsertest.Tab, want ...string) {
	tab.Text(inElement(".list:not([hidden]) [data-test=message]:not([data-type='4'])")+`.map(e => e.textContent.replace(/\s+/g, ' ').trim()).join('|')`, strings.Join(want, "|"))
}

// TestPagesFollowTheirThread: two people see in their pages, as it happens and once, what the other writes, the runs of every message, and a
// workstream that goes on after its run. What one of them does in its tab is for the workstream.
func TestPagesFollowTheirThread(t *testing.T) {
	t.Parallel()
	const sam, samToken = "user:0b0b0b0b-0000-4000-8000-000000000002", "canary-sam-81c0f2-9d3e6b57"
	h := openLead(t, plan{files: map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
turns: {coalesce: 0s}
web:
  tokens:
    - {id: olivia, token: ` + ownToken + `, name: Olivia}
    - {id: sam, token: ` + samToken + `, name: Sam, actor: "` + sam + `"}
`}})
	thread := decode[struct{ ID string }](t, h.chat(http.StatusCreated, "POST", "", ownToken, `{"participants":["`+sam+`"]}`)).ID
	own, theirs := h.theirPage(t, thread, ownToken, "Olivia"), h.theirPage(t, thread, samToken, "Sam")
	both := func(selector, want string) {
		t.Helper()
		for _, tab := range []*browsertest.Tab{own, theirs} {
			tab.Text(inElement(selector)+`.map(e => e.innerText.replace(/\s+/g, ' ').trim()).join('|')`, want)
		}
	}
	own.Find("[data-test=input]").Type("who is right?")
	own.Press(kb.Enter)
	asked := <-h.inputs
	spoken(own, "You: who is right?")
	spoken(theirs, "Olivia "+oliviaID+": who is right?")
	both("[data-test=stop]:not([hidden])", "Stop")

	id := h.launch(asked.RunID, `{"task":"Look it up.","agent":"other","name":"the books"}`)
	child := <-h.inputs
	h.say(child.RunID, otherSecret, `{"t":1,"m":"First the catalogue."}`)
	both("[data-test=workstream-"+id+"]", "the books running, planning")
	h.reply(asked.RunID, "I have asked the books.")
	spoken(own, "You: who is right?", "Answer: I have asked the books.")
	spoken(theirs, "Olivia "+oliviaID+": who is right?", "Answer: I have asked the books.")
	both("[data-test=stop]:not([hidden])", "")

	// the run is over, and the workstream goes on
	h.say(child.RunID, otherSecret, `{"t":1,"m":"Then the shelves."}`, `{"t":12,"m":"It may be "}`)
	both("[data-test=workstream-"+id+"]", "the books running, synthesizing")
	for _, tab := range []*browsertest.Tab{own, theirs} {
		tab.Find("[data-test=workstream-" + id + "]").Click()
		spoken(tab, "Look it up.", "ThoughtFirst the catalogue.", "ThoughtThen the shelves.", "It may be")
	}
	h.say(child.RunID, otherSecret, `{"t":9,"m":"Which shelf?","d":{"ux":{"options":[{"id":"n","label":"North"},{"id":"s","label":"South"}]}}}`)
	both("[data-test=workstream-"+id+"]", "the books running, blocked")
	h.reply((<-h.inputs).RunID, "The books have a question.") // to its report
	both("[data-test=option]", "North|South")
	own.Screenshot("workstream-asks")
	theirs.Role("button", "North").Click()
	answered := <-h.inputs
	if got := answered.last(); got != "user: [Sam]: North" {
		t.Errorf("the workstream gets %q", got)
	}
	theirs.Find("[data-test=input]").Type("the upper one")
	theirs.Press(kb.Enter)
	theirs.Wait(inElement("[data-state=sent]") + ".length === 2") // before the workstream ends
	own.Wait(inElement("[data-test=option]:disabled") + ".length === 2")
	h.replyAs(answered.RunID, otherSecret, "On shelf 3.")
	late, report := <-h.inputs, <-h.inputs // of the workstream, and of its agent, which is told of the answer
	if strings.HasPrefix(late.last(), "system: ") {
		late, report = report, late
	}
	h.reply(report.RunID, "I am told.")
	for _, tab := range []*browsertest.Tab{own, theirs} { // a page shows what its two streams bring as it comes, so the end of the workstream waits
		tab.Wait(inElement("[data-test=answer]") + ".some(e => e.textContent === 'Answer: I am told.')")
	}
	if got := late.last(); got != "user: [Sam]: the upper one" {
		t.Errorf("the workstream gets %q", got)
	}
	h.replyAs(late.RunID, otherSecret, "On shelf 4.")
	both("[data-test=workstream-"+id+"]", "the books completed")
	h.reply((<-h.inputs).RunID, "It is on shelf 4.") // to the report of the last answer
	const begin = "Look it up.|ThoughtFirst the catalogue.|ThoughtThen the shelves.|It may be|Question: Which shelf?NorthSouth|"
	spoken(theirs, begin+"You: North|You: the upper one|Answer: On shelf 3.|Answer: On shelf 4.")
	spoken(own, begin+"Sam "+sam+": North|Answer: On shelf 3.|Sam "+sam+": the upper one|Answer: On shelf 4.")
	for _, tab := range []*browsertest.Tab{own, theirs} {
		tab.Find("[data-test=workstream-main]").Click()
		tab.Wait(inElement(".list:not([hidden]) [data-type='7']") + ".some(e => e.textContent === 'Answer: It is on shelf 4.')")
	}
	own.Screenshot("thread-of-two")
	for _, m := range h.messages("/"+thread, 1) {
		if strings.Contains(m, `"content":"North"`) || strings.Contains(m, "the upper one") {
			t.Errorf("words for the workstream are in the thread: %s", m)
		}
	}
	own.Size(390, 844)
	own.Theme("dark")
	own.Screenshot("thread-of-two-390")
	shown := inElement(".list:not([hidden]) [data-test=message]:not([data-type='4'])") + ".map(e => e.textContent.replace(/\\s+/g, ' ')).join('\\n')"
	before := browsertest.Eval[string](own, shown)
	own.Goto(browsertest.Eval[string](own, "location.href"))
	own.Text(shown, before)
}

// say adds messages to a run of an agent with a secret.
func (l *delegating) say(run, secret string, messages ...string) {
	l.t.Helper()
	if got := l.request(http.MethodPost, "/runs/"+run+"/updates", secret, "application/json", "["+strings.Join(messages, ",")+"]"); got.status != http.StatusAccepted {
		l.t.Fatalf("%d %s", got.status, got.body)
	}
}

// replyAs is reply for an agent with a secret.
func (l *delegating) replyAs(run, secret, text string) {
	l.t.Helper()
	if got := l.request(http.MethodPost, "/api/v1/runs/"+run+"/reply", secret, "application/json", `{"content":`+quoted(text)+`}`); got.status != http.StatusAccepted {
		l.t.Fatalf("%d %s", got.status, got.body)
	}
}
