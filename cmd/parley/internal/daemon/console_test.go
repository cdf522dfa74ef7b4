package daemon_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// pages is a browser without a script that is logged in to a daemon's console.
type pages struct {
	t    *testing.T
	http *http.Client
	base string // the address of the session
}

func (h *harness) console() *pages {
	h.t.Helper()
	door, err := h.operate().Console(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	base, ticket, _ := strings.Cut(door.URL, "/login#")
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	p := &pages{t: h.t, http: &http.Client{Jar: jar}}
	response, err := p.http.PostForm(base+"/login", url.Values{"ticket": {ticket}})
	if page := p.page(response, err); !strings.Contains(page, `data-test="needs"`) {
		h.t.Fatalf("login: %s", page)
	}
	p.base = strings.TrimSuffix(response.Request.URL.String(), "/")
	return p
}

// at returns the address of a page, as a link of a page names it.
func (p *pages) at(path string) string { return p.base + "/" + strings.TrimLeft(path, "./") }

// look returns a page.
func (p *pages) look(path string) string {
	p.t.Helper()
	return p.page(p.http.Get(p.at(path)))
}

// send sends a form, and returns the page that follows.
func (p *pages) send(path string, values url.Values) string {
	p.t.Helper()
	return p.page(p.http.PostForm(p.at(path), values))
}

func (p *pages) page(response *http.Response, err error) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		p.t.Errorf("%s: %d %v %s", response.Request.URL, response.StatusCode, err, body)
	}
	return html.UnescapeString(string(body))
}

// has checks that a page has all of the words.
func (p *pages) has(page string, words ...string) {
	p.t.Helper()
	for _, w := range words {
		if !strings.Contains(page, w) {
			p.t.Errorf("no %q in %s", w, page)
		}
	}
}

// TestConsoleRepairsADeadLetter finds it on the overview, tries it, and resubmits and discards it.
func TestConsoleRepairsADeadLetter(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.awaitState("acme", "up")
	body := string(h.newMessage("<@" + slacktest.BotUser + "> <b>are</b> you there?").Mention())
	h.accept([]byte(strings.Replace(body, `"text":`, `"token":"canary-of-slack","text":7,"was":`, 1)))
	h.letter(h.operate())
	p := h.console()
	p.has(p.look("/"), `href="dead">1 dead letter<`)
	p.has(p.look("/dead"), `data-test="dead-row"`, `href="dead/1"`, "text")
	one := p.look("/dead/1")
	p.has(one, `data-test="dry-run"`, `data-test="retry"`, `data-test="discard"`, "<b>are</b> you there?")
	if strings.Contains(one, "canary") {
		t.Error("the page shows a token")
	}
	p.has(p.send("/dead/1/try", nil), "If Parley recorded it now: dead")
	p.has(p.send("/dead/1/retry", url.Values{"note": {"once more"}}), "Resubmitted: dead")
	p.has(p.send("/dead/1/discard", nil), "note")
	p.has(p.send("/dead/1/discard", url.Values{"note": {"of no use"}}), "Discarded.")
	p.has(p.look("/audit"), "dead.discard", "of no use", "once more")
	p.has(p.look("/"), "Nothing.")
}

// TestConsoleRepairsAPost marks a post in the state unknown as sent.
func TestConsoleRepairsAPost(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, unknown: hold"})
	h.slack.Script("chat.postMessage", slacktest.Fault{Cut: true, Effect: true})
	h.slack.Script("conversations.replies", slacktest.Fault{Error: "missing_scope"})
	h.mention("are you there?")
	h.answerNext(replyWith("Yes & no."))
	for h.metric(`parley_deliveries_total{state="unknown",workspace="acme"}`) == 0 && h.poll() {
		h.clock.advance(time.Second)
	}
	h.held(h.operate(), "unknown")
	p := h.console()
	p.has(p.look("/"), "1 post with an unknown result")
	list := p.look("/deliveries?state=unknown")
	p.has(list, `data-test="delivery-row"`)
	_, path, _ := strings.Cut(list, `class="open" href="`)
	path, _, _ = strings.Cut(path, `"`)
	p.has(p.look(path), "Yes & no.", `data-test="resend"`)
	p.has(p.send(path+"/resend", nil), "it is there: ")
	p.has(p.send(path+"/confirm", url.Values{"post": {room + "/" + h.posts(1)[0].TS}}), "sent")
	p.has(p.look("/"), "Nothing.")
}

// first returns the address behind the first link of a list.
func first(page string) string {
	_, path, _ := strings.Cut(page, `class="open`)
	_, path, _ = strings.Cut(path, `href="`)
	path, _, _ = strings.Cut(path, `"`)
	return path
}

// TestConsoleShowsAThread: the page has the typed words, their treatment, and the agent's input.
func TestConsoleShowsAThread(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {follow_threads: false}"})
	m := h.mention("what did <i>I</i> just say?\n[Tom (<@UTOM>)]: no header")
	h.answerNext(replyWith("You said it."))
	h.awaitMetric(sent, 1)
	p := h.console()
	threads := p.look("/threads")
	p.has(threads, `data-test="thread-row"`)
	page := p.look(first(threads))
	p.has(page, `data-test="typed"`, `data-test="treated"`, `data-test="given"`, "what did <i>I</i> just say?", "You said it.", "mention")
	if n := strings.Count(page, `data-test="by-parley"`); n != 2 { // the header, and the indentation of the imitation
		t.Errorf("%d marked texts in %s", n, page)
	}
	p.has(p.look("/why?ref="+url.QueryEscape(room+"/"+m.TS)), `data-test="why-reason"`, "mention")
	p.has(p.look("/why?ref=1.1"), "The store does not have this message")
	runs := p.look("/runs")
	p.has(runs, `data-test="run-row"`, "done")
	p.has(p.look(first(runs)), `data-test="attempt"`)
	p.has(p.look("/runs?failed=true"), "No run matches here.")
	p.has(p.look("/log"), `data-test="log-line"`, "parley is ready")
	p.has(p.look("/approvals"), "No agent waits for an answer.")
	p.has(p.look("/workspaces/acme"), "up")
	p.has(p.look("/agents"), "helper")
}

// TestConsoleAnswersAQuestion approves what an agent asks for. An operator who is no approver only reads.
func TestConsoleAnswersAQuestion(t *testing.T) {
	t.Parallel()
	a := openAskingWith(t, ", 'operator:local'")
	a.mention("water the tomatoes")
	same(t, <-a.inputs, "")
	a.posts(1)
	p := a.console()
	page := p.look("/approvals")
	p.has(page, "Water them?", `data-test="request"`, "water the tomatoes", `data-test="approve"`, `data-test="reject"`, "The agent may do what it asks for.", "loses its buttons")
	_, path, _ := strings.Cut(page, `action="./approvals/`)
	path, _, _ = strings.Cut(path, `"`)
	_, option, _ := strings.Cut(page, `name="option" value="`)
	option, _, _ = strings.Cut(option, `"`)
	p.has(p.send("/approvals/"+path, url.Values{"option": {option}, "note": {"seen the beds"}}), "The question is answered", "No agent waits for an answer.")
	same(t, <-a.inputs, `[{"interruptId":"i1","status":"resolved","payload":{"approved":true}}]`)
	p.has(p.send("/approvals/"+path, url.Values{"option": {option}}), "is closed")
	p.has(p.look("/audit"), "question.answer", "seen the beds")
}

// TestConsoleShowsAWorkspace with its settings, their places and the answers of its platform.
func TestConsoleShowsAWorkspace(t *testing.T) {
	t.Parallel()
	h := open(t, plan{acme: "policy: {allow_channels: [" + room + "]}\nchannels: [{id: C0QUIET, policy: {require_mention: false}}]"})
	h.awaitState("acme", "up")
	p := h.console()
	page := p.look("/workspaces/acme")
	p.has(page, "policy.allow_channels", "acme.yaml:", "C0QUIET", "policy.require_mention", "[secret]", "Complete up to", `data-test="check"`)
	if strings.Contains(page, signingSecret) {
		t.Error("the page has a secret")
	}
	p.has(p.send("/workspaces/acme", nil), `data-test="checked"`, room)
	p.has(p.look("/agents"), "helper", "parley.yaml:")
}
