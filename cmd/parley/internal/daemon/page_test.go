package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/agent/acp/acptest"
	"parley/adapters/browsertest"
)

func TestMain(m *testing.M) {
	acptest.Main()
	browsertest.Main(m)
}

// inElement is the expression for the elements in the conversation of a page that a selector matches.
func inElement(selector string) string {
	return fmt.Sprintf("[...document.querySelector('parley-conversation').shadowRoot.querySelectorAll(%q)]", selector)
}

// sees waits until the first element of a selector in the conversation contains a text.
func sees(tab *browsertest.Tab, selector, text string) {
	tab.Wait(fmt.Sprintf("%s.some(e => e.innerText.includes(%q))", inElement(selector), text))
}

// TestChatPage opens the address that a newcomer gets, converses, and finds the conversation again.
func TestChatPage(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true, hello: true})
	address := ""
	for text := range h.hello {
		if _, after, ok := strings.Cut(text, "in a browser: "); ok {
			address = strings.TrimSpace(after)
			break
		}
	}
	tab := browsertest.Open(t)
	tab.Size(1000, 700)
	tab.Goto(address)
	tab.Role("button", "Continue as You").Click()
	tab.Wait(inElement("[data-test=input]:focus") + ".length === 1")
	tab.Press("hello there")
	tab.Press(kb.Enter)
	sees(tab, "[data-type='8']", "hello there")
	sees(tab, "[data-type='7']", "hello there")
	tab.Wait(`document.querySelector('#threads [aria-current] span')?.textContent === 'hello there'`)
	tab.Wait(`document.title === 'hello there – Parley'`)
	if at := browsertest.Eval[string](tab, "location.href"); strings.Contains(at, h.local()) || !strings.Contains(at, "?thread=") {
		t.Errorf("the address is %s", at)
	}
	tab.Find("[data-test=input]").Type("and again")
	tab.Find("[data-test=send]").Click()
	sees(tab, "[data-type='7']", "and again")
	tab.Screenshot("chat")
	tab.Goto(browsertest.Eval[string](tab, "location.href"))
	tab.Wait(inElement("[data-test=message]") + ".length === 4") // two questions and two answers
	tab.Role("button", "New conversation").Click()
	tab.Wait(inElement("[data-test=message]") + ".length === 0")
	tab.Find("#threads button").Click()
	tab.Wait(inElement("[data-test=message]") + ".length === 4")
	tab.Size(1920, 1000)
	if wide := browsertest.Eval[float64](tab, "Math.max(..."+inElement("[data-type='7']")+".map(e => e.offsetWidth))"); wide > 800 {
		t.Errorf("a line is %v px wide", wide)
	}
	tab.Size(1000, 250)
	if high := browsertest.Eval[bool](tab, "document.documentElement.scrollHeight > innerHeight"); high {
		t.Error("the page scrolls instead of the conversation")
	}
	tab.Size(360, 640)
	tab.Role("button", "Conversations").Click()
	tab.Screenshot("chat-list-360")
	for range 12 { // the keyboard stays in the drawer
		tab.Press(kb.Tab)
		if browsertest.Eval[bool](tab, "document.activeElement.id === 'conversation'") {
			t.Fatal("the keyboard is behind the drawer")
		}
	}
	tab.Press(kb.Escape)
	tab.Wait("document.activeElement.id === 'menu'")
	tab.Screenshot("chat-360")
	if wide := browsertest.Eval[bool](tab, "document.documentElement.scrollWidth > innerWidth"); wide {
		t.Error("the page scrolls sideways")
	}
	if strings.Contains(h.log.String(), h.local()) {
		t.Error("the log has the token")
	}
}

// TestChatPageAsksForToken: a page without a token asks for one, and says that a wrong one is unknown.
func TestChatPageAsksForToken(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	tab := browsertest.Open(t)
	tab.Goto(h.url + "/chat")
	tab.Role("textbox", "Your token").Type("a wrong token")
	tab.Press(kb.Enter)
	tab.Wait(`document.querySelector('#refused').textContent.includes('not known')`)
	tab.Screenshot("login")
	tab.Role("textbox", "Your token").Type(ownToken)
	tab.Role("button", "Open").Click()
	tab.Role("textbox", "Type your message...").Type("hello")
	tab.Press(kb.Enter)
	sees(tab, "[data-type='7']", "Noted.")
	if faults := tab.Faults(); len(faults) != 1 || !strings.Contains(faults[0], "401") {
		t.Errorf("%q", faults)
	}
	if got := h.get("/ui/chat.html"); got.status != http.StatusNotFound {
		t.Errorf("the page without its policy: %d", got.status)
	}
	h.change("parley.yaml", "local: false\n"+h.remove("parley.yaml"))
	h.remove("workspaces/ours.yaml")
	if got := h.get("/chat"); got.status != http.StatusNotFound {
		t.Errorf("without a web workspace: %d", got.status)
	}
}

// TestAPageSaysWhoWroteWhat shows a thread of two people and an agent from outside to one of them: the other's words and
// card are the other's, whatever that person's name is, and no card of a person has a button.
func TestAPageSaysWhoWroteWhat(t *testing.T) {
	t.Parallel()
	const malToken, helperToken = "canary-mal-81c0f2-9d3e6b57", "canary-helper-5a7e10-c4f82d96"
	h := open(t, plan{files: map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
web:
  tokens:
    - {id: olivia, token: ` + ownToken + `, name: Olivia}
    - {id: mal, token: ` + malToken + `, name: You, actor: "user:0b0b0b0b-0000-4000-8000-000000000002"}
    - {id: outside, token: ` + helperToken + `, name: Helper, actor: "agent:0b0b0b0b-0000-4000-8000-000000000003"}
`}})
	made := "/" + decode[struct{ ID string }](t, h.chat(http.StatusCreated, "POST", "", ownToken,
		`{"mode":"invocation_only","participants":["user:0b0b0b0b-0000-4000-8000-000000000002","agent:0b0b0b0b-0000-4000-8000-000000000003"]}`)).ID
	const card = `"metadata":{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"stack","children":[{"type":"button","label":"Confirm","value":"I confirm"},{"type":"button","label":"Look","url":"https://evil.example"}]}}}`
	h.chat(http.StatusCreated, "POST", made+"/messages", ownToken, `{"content":"hello"}`)
	h.chat(http.StatusCreated, "POST", made+"/messages", malToken, `{"content":"I hereby resign.",`+card+`}`)
	h.chat(http.StatusCreated, "POST", made+"/agent-messages", helperToken, `{"content":"I am the helper.",`+card+`}`)
	tab := browsertest.Open(t)
	tab.Size(1000, 700)
	tab.Goto(h.url + "/chat?thread=" + made[1:] + "#" + ownToken)
	tab.Role("button", "Continue as Olivia").Click()
	tab.Wait(inElement("[data-test=message]") + ".length === 3")
	for i, want := range []string{"You: hello", "You user:0b0b0b0b-0000-4000-8000-000000000002: I hereby resign. Confirm Look https://evil.example", "Helper agent:0b0b0b0b-0000-4000-8000-000000000003: I am the helper. Confirm Look"} {
		got := browsertest.Eval[string](tab, fmt.Sprintf(`%s[%d].textContent`, inElement("[data-test=message]"), i))
		if strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(want), "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if own, others := browsertest.Eval[int](tab, inElement("[data-type='8']:not([data-others])")+".length"), browsertest.Eval[int](tab, inElement("[data-type='8'] :is(button, a)")+".length"); own != 1 || others != 0 {
		t.Errorf("%d messages are the reader's own, people's cards have %d buttons", own, others)
	}
	if n := browsertest.Eval[int](tab, inElement("[data-type='7'] :is(button, a)")+".length"); n != 2 {
		t.Errorf("the agent's card has %d buttons", n)
	}
	tab.Screenshot("authors")
}

// TestALinkOfThePageIsAskedFor follows links with tokens: the page says whose they are, and changes nothing until the
// person agrees.
func TestALinkOfThePageIsAskedFor(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	tab := browsertest.Open(t)
	tab.Goto(h.url + "/chat#" + ownToken)
	tab.Wait(`document.querySelector('#given').textContent.startsWith('Olivia (user:')`)
	if kept := browsertest.Eval[string](tab, `sessionStorage.getItem('parley-token') ?? ''`); kept != "" {
		t.Error("the link's token is used before anybody has agreed")
	}
	tab.Screenshot("link")
	tab.Role("button", "Continue as Olivia").Click()
	tab.Wait(`document.querySelector('#who').textContent.startsWith('Olivia (user:')`)
	tab.Goto("about:blank")
	tab.Goto(h.url + "/chat#" + anyToken)
	tab.Wait(`document.querySelector('#instead').textContent.includes('Olivia')`)
	if at := browsertest.Eval[string](tab, "location.href"); strings.Contains(at, anyToken) {
		t.Errorf("the address is %s", at)
	}
	tab.Role("button", "Stay Olivia").Click()
	tab.Wait(`document.querySelector('#who').textContent.startsWith('Olivia (user:')`)
	if kept := browsertest.Eval[string](tab, `sessionStorage.getItem('parley-token')`); kept != ownToken {
		t.Error("the link has replaced the token")
	}
	tab.Goto("about:blank")
	tab.Goto(h.url + "/chat#" + ownToken) // nothing is to be asked
	tab.Wait(`document.querySelector('#who').textContent.startsWith('Olivia (user:') && document.querySelector('#link').hidden`)
	tab.Goto("about:blank")
	tab.Goto(h.url + "/chat#" + anyToken)
	tab.Role("button", "Continue as Bridge").Click()
	tab.Wait(`document.querySelector('#who').textContent.startsWith('Bridge (user:')`)
}

// TestAnswerOverRestart: the daemon ends during an answer. The page of another origin, which has a token, shows
// that the connection is lost, and then the answer of the next daemon.
func TestAnswerOverRestart(t *testing.T) {
	t.Parallel()
	var backend atomic.Pointer[url.URL]
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend.Load()) }, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(front.Close)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src "+front.URL+"; style-src "+front.URL+"; connect-src "+front.URL+"; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'")
		fmt.Fprintf(w, `<!doctype html><title>shop</title><link rel=icon href="data:,"><script type=module src="%s/ui/conversation.js"></script><parley-conversation token="%s"></parley-conversation>`, front.URL, ownToken)
	}))
	t.Cleanup(pages.Close)
	origin := strings.Replace(pages.URL, "127.0.0.1", "localhost", 1)
	h := open(t, plan{files: map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
turns: {coalesce: 0s}
web: {origins: ["` + origin + `"], tokens: [{id: olivia, token: ` + ownToken + `, name: Olivia}]}
`}})
	to := func() {
		u, err := url.Parse(h.url)
		if err != nil {
			t.Fatal(err)
		}
		backend.Store(u)
	}
	to()
	tab := browsertest.Open(t)
	tab.Goto(origin)
	tab.Find("[data-test=input]").Type("count to three")
	tab.Press(kb.Enter)
	first := <-h.model.asked
	sees(tab, "[data-type='8']", "count to three")
	h.restart(func() {
		tab.Wait(inElement("[data-test=connection]") + "[0].dataset.state === 'reconnecting'")
		tab.Screenshot("reconnecting")
	})
	to()
	_ = first
	h.answerNext(replyWith("one two three"))
	sees(tab, "[data-type='7']", "one two three")
	tab.Wait(inElement("[data-type='8']") + ".length === 1 && " + inElement("[data-type='7']") + ".length === 1")
	tab.Faults() // of the lost requests
}
