package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// pageOfElement embeds a conversation of a daemon in a page of another origin.
const pageOfElement = `<!doctype html><title>shop</title><link rel=icon href="data:,"><script type=module src="%[1]s/ui/conversation.js"></script>
<parley-conversation token="%[2]s"></parley-conversation>`

// TestConversationOverKilledDaemon kills the daemon during an answer, and starts it at the same address. The page shows that the
// connection is lost, and then what is stored, once.
func TestConversationOverKilledDaemon(t *testing.T) {
	t.Parallel()
	var base string
	pages := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, pageOfElement, base, webToken)
	}))
	origin := strings.Replace("http://"+pages.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	model := newCountingModel(t)
	dir := clientDir(t, origin, model.URL)
	daemon := start(t, dir, os.Args[0], "run")
	address := daemon.address()
	base = "http://" + address
	pages.Start()
	t.Cleanup(pages.Close)

	tab := browsertest.Open(t)
	tab.Goto(origin)
	tab.Find("[data-test=input]").Type("count")
	tab.Press(kb.Enter)
	pieces := model.next(t)
	texts := func(selector, want string) {
		t.Helper()
		tab.Text(fmt.Sprintf("[...document.querySelector('parley-conversation').shadowRoot.querySelectorAll(%q)].map(e => e.textContent.replace(/\\s+/g, ' ').trim()).join('|')", selector), want)
	}
	say(t, pieces, "one ")
	say(t, pieces, "two ")
	texts("[data-test=answer]", "one two")

	if err := daemon.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.cmd.Wait() // killed by the test
	texts("[data-test=connection][data-state=reconnecting]", "Connection lost, reconnecting…")
	raw, err := os.ReadFile(dir + "/parley.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "parley.yaml", strings.Replace(string(raw), "127.0.0.1:0", address, 1))
	start(t, dir, os.Args[0], "run")
	pieces = model.next(t) // the run is asked again
	for _, text := range []string{"uno ", "dos ", "tres"} {
		say(t, pieces, text)
	}
	close(pieces)
	texts("[data-type='7']", "Answer: uno dos tres")
	texts("[data-test=message]", stored(tab, base))
	if faults := strings.Join(tab.Faults(), "\n"); !strings.Contains(faults, "ERR_") {
		t.Errorf("the page has lost no connection: %s", faults)
	}
}

// stored returns how the run that a page shows is shown, if one shows each stored message once.
func stored(tab *browsertest.Tab, base string) string {
	return browsertest.Eval[string](tab, fmt.Sprintf(`(async () => {
	const {WorkflowsApi} = await import('%s/sdk/parley.js')
	const list = await new WorkflowsApi({token: %q}).retrieveMessages(document.querySelector('parley-conversation').run)
	const words = {1: m => 'Thought' + m.message, 4: m => 'Completed', 7: m => 'Answer: ' + m.message, 8: m => 'You: ' + m.message}
	return list.filter(m => m.type !== 12).map(m => words[m.type]?.(m) ?? m.type + m.message).join('|')
})()`, base, webToken))
}

// TestConversationShowsAWorkstream launches a workstream while the page shows the run. The page gives it a tab with its own messages,
// and the answer of the run is in the main list.
func TestConversationShowsAWorkstream(t *testing.T) {
	t.Parallel()
	var base string
	pages := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, pageOfElement, base, webToken)
	}))
	origin := strings.Replace("http://"+pages.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	taken := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct {
			RunID string `json:"run_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			w.WriteHeader(http.StatusBadRequest) // the daemon ends with the test, maybe amid a request
			return
		}
		w.WriteHeader(http.StatusAccepted)
		taken <- input.RunID
	}))
	t.Cleanup(hook.Close)
	dir := clientDir(t, origin, "")
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nagents:\n  - {id: echo, kind: webhook, url: \""+hook.URL+"\", secret: "+leadSecret+
		", workstreams: {agents: [books]}}\n  - {id: books, kind: echo}\n")
	address := start(t, dir, os.Args[0], "run").address()
	base = "http://" + address
	pages.Start()
	t.Cleanup(pages.Close)

	tab := browsertest.Open(t)
	tab.Goto(origin)
	tab.Find("[data-test=input]").Type("who is right?")
	tab.Press(kb.Enter)
	run := <-taken
	status, launched := httpCall(t, http.MethodPost, address+"/runs/"+run+"/workstreams", leadSecret, `{"task":"Look it up.","agent":"books","name":"the books"}`, "")
	var child struct {
		ID string `json:"launch_id"`
	}
	if err := json.Unmarshal([]byte(launched), &child); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v", status, launched, err)
	}
	texts := func(selector, want string) {
		t.Helper()
		tab.Text(fmt.Sprintf("[...document.querySelector('parley-conversation').shadowRoot.querySelectorAll(%q)].map(e => e.innerText.replace(/\\s+/g, ' ').trim()).join('|')", selector), want)
	}
	texts("[data-test=workstream-"+child.ID+"]", "the books completed")
	tab.Find("[data-test=workstream-" + child.ID + "]").Click()
	tab.Wait("document.querySelector('parley-conversation').shadowRoot.querySelector('.list:not([hidden])').innerText.includes('Look it up.')")
	if status, answer := httpCall(t, http.MethodPost, address+"/api/v1/runs/"+run+"/reply", leadSecret, `{"content":"Both are."}`, ""); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	tab.Find("[data-test=workstream-main]").Click()
	texts(".list:not([hidden]) [data-test=answer]", "Answer: Both are.")
	texts("[data-test=workstream-"+child.ID+"]", "the books completed")
}
