package daemon_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// openCards opens a daemon whose agent gives the bodies of a channel as its direct answers, and a page with a conversation.
func openCards(t *testing.T) (h *harness, tab *browsertest.Tab, answers chan string) {
	t.Helper()
	answers = make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case body := <-answers:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hook.Close)
	h = open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 30s
agents: [{id: helper, kind: webhook, url: "` + hook.URL + `", secret: ` + laterSecret + `}, {id: echo, kind: echo}]
`}})
	tab = browsertest.Open(t)
	tab.Size(900, 1100)
	tab.Goto(h.url + "/chat#" + ownToken)
	tab.Role("button", "Continue as Olivia").Click()
	return h, tab, answers
}

// nodesOfCard has a node of each type, and one of an unknown type.
const nodesOfCard = `{"version":"2.0","locale":"en","status":"success","theme":"default","root":{"type":"stack","appearance":"card","children":[
	{"type":"text","role":"title","content":"The garden"},{"type":"badge","label":"DRY","status":"warning"},{"type":"image","url":"https://pictures.example/rose.png","alt":"a rose"},
	{"type":"text","role":"body","content":"Three <b>beds</b> need water."},{"type":"list","items":["roses",{"type":"badge","label":"ferns","status":"info"},3]},
	{"type":"table","columns":["bed","litres"],"rows":[["north",5],["south",{"type":"badge","label":"none","status":"error"}]]},
	{"type":"divider"},{"type":"progress","label":"Watered","value":1,"max":4},{"type":"progress","label":"Weeded","value":1},
	{"type":"hologram","content":"a new thing","children":[{"type":"text","content":"with a child"}]},
	{"type":"button","label":"Water them","value":"please water","action":{"id":"water"}},{"type":"button","label":"Read on","url":"https://garden.example/beds"}]}}`

// TestCardsInThePage shows cards of the agent's direct answers: a uiSchema with a node of each type, and hints. A button says its value.
func TestCardsInThePage(t *testing.T) {
	t.Parallel()
	h, tab, answers := openCards(t)
	answers <- `{"content":"Look.","uiSchema":` + nodesOfCard + `}`
	tab.Find("[data-test=input]").Type("how is it?")
	tab.Press(kb.Enter)
	sees(tab, "[data-test=ui] h3", "The garden")
	for selector, want := range map[string]string{
		".badge[data-status=warning]": "DRY", "button.foreign": "Show image “a rose” from pictures.example", "p[data-role=body]": "Three <b>beds</b> need water.",
		"li:nth-child(1)": "roses", "li .badge": "ferns", "li:nth-child(3)": "3", "th:nth-child(2)": "litres", "tbody tr:nth-child(1)": "north\t5", "td .badge[data-status=error]": "none",
		"a": "Read on", ".stack > div:not([class])": "a new thing\n\nwith a child",
	} {
		if got := tab.Texts("[data-test=ui] " + selector); len(got) == 0 || strings.TrimSpace(got[0]) != want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	if bars := browsertest.Eval[string](tab, inElement("progress")+".map(e => `${e.value}/${e.max}`).join()"); bars != "1/4,1/100" || tab.Count("[data-test=ui] hr") != 1 {
		t.Errorf("the progress is %s", bars)
	}
	tab.Screenshot("card")
	answers <- `{"content":"Done.","ui_hints":{"status":"success","title":"Watered","body":"All beds.","badges":["NEW"],"items":["north","south"],"actions":[{"label":"Thanks","value":"thank you"}],
		"image":{"url":"https://pictures.example/wet.png","alt":"wet"},"progress":{"value":2,"max":2}}}`
	tab.Role("button", "Water them").Click()
	sees(tab, "[data-type='8']", "please water")
	sees(tab, "[data-test=ui] h3", "Watered")
	tab.Role("button", "Thanks")
	page := browsertest.Eval[string](tab, "document.querySelector('parley-conversation').run.workflow_id")
	if got := h.request(http.MethodGet, "/api/v1/chat/threads/"+page+"/messages", ownToken, "", "").body; !strings.Contains(got, `"action":{"id":"water","value":"please water"}`) {
		t.Errorf("the press is %s", got)
	}
	tab.Screenshot("card-of-hints")
	shown := inElement("[data-test=ui]") + ".map(e => e.innerText).join('|')"
	before := browsertest.Eval[string](tab, shown)
	tab.Goto(browsertest.Eval[string](tab, "location.href")) // from the history, as from the run
	tab.Wait(inElement("[data-test=ui]") + ".length === 2")
	if after := browsertest.Eval[string](tab, shown); after != before {
		t.Errorf("the history shows %q, and the run has shown %q", after, before)
	}
	if strings.Contains(h.log.String(), ownToken) {
		t.Error("the log has the token")
	}
}

// TestFaultyCardOfADirectAnswer: the answer comes without its card, and a warning names the faulty node.
func TestFaultyCardOfADirectAnswer(t *testing.T) {
	t.Parallel()
	_, tab, answers := openCards(t)
	answers <- `{"content":"Look.","uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"stack","children":[{"type":"badge","label":"x","status":"fine"}]}}}`
	tab.Find("[data-test=input]").Type("how is it?")
	tab.Press(kb.Enter)
	sees(tab, "[data-type='7']", "Look.")
	sees(tab, "[data-type='5']", "uiSchema.root.children[0].status")
	if n := tab.Count("[data-test=ui]"); n != 0 {
		t.Errorf("%d cards are shown", n)
	}
}

// TestFaultyCardOfAPerson: a message whose metadata has a faulty card is refused with the path of the node, wherever it comes in.
func TestFaultyCardOfAPerson(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	made := h.started(ownToken, runInput(thread, "run-001", `"hi"`))
	const faulty = `"metadata":{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"stack","children":[{"type":"text","content":"a"},{"type":"text"}]}}}`
	const whole = `"metadata":{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":{"type":"text","content":"a"}}}`
	for path, body := range map[string][2]string{
		"/api/v1/workspaces/ours/messages":                    {`{"content":"look",`, `}`},
		"/api/v1/chat/threads/" + made.ThreadID + "/messages": {`{"content":"look",`, `}`},
		"/runs/" + made.RunID + "/signals":                    {`{"signal":"UserInput","data":{"message":"look",`, `}}`},
	} {
		refused := h.request(http.MethodPost, path, ownToken, "application/json", body[0]+faulty+body[1])
		if refused.status != http.StatusBadRequest || !strings.Contains(refused.body, `metadata.uiSchema.root.children[1].content"`) {
			t.Errorf("%s: %d %s", path, refused.status, refused.body)
		}
		if taken := h.request(http.MethodPost, path, ownToken, "application/json", body[0]+whole+body[1]); taken.status/100 != 2 {
			t.Errorf("%s: %d %s", path, taken.status, taken.body)
		}
	}
}
