package ui_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/adapters/browsertest"
)

// documented returns the first block of code in a language that CONVERSATION.md has.
func documented(t *testing.T, language string) string {
	t.Helper()
	doc, err := os.ReadFile("../CONVERSATION.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(doc)
	if found == nil {
		t.Fatalf("CONVERSATION.md has no block of %s", language)
	}
	return string(found[1])
}

// TestDocumentedPage runs the page of the documentation, which is of another origin than the server.
func TestDocumentedPage(t *testing.T) {
	f := serve(t, message(8, "How are the beds?", ""), message(7, "Dry.", ""), message(4, "", ""))
	page := strings.ReplaceAll(documented(t, "html"), "http://127.0.0.1:8484", f.URL)
	if lines := strings.Count(page, "\n"); lines > 22 {
		t.Errorf("it has %d lines", lines)
	}
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/token":
			_, _ = w.Write([]byte(token))
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(page))
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(pages.Close)
	f.origin = strings.Replace(pages.URL, "127.0.0.1", "localhost", 1)
	tab := browsertest.Open(t)
	tab.Goto(f.origin)
	tab.Role("textbox", "Type your message...").Type("How are the beds?")
	tab.Role("button", "Ask").Click()
	shown(t, tab, "[data-test=message]", "You: How are the beds?", "Answer: Dry.", "Completed")
	if begun := f.posted(t, tab, 1); begun.token != token {
		t.Errorf("the page's token was %q", begun.token)
	}
}

// The versions of the packages with which the documented component is built.
var packages = []string{"react@19.2.0", "react-dom@19.2.0", "esbuild@0.25.12"}

// callbacks renders a second element, with all properties that are functions.
const callbacks = `
window.given = Object.fromEntries(['startWorkflow', 'resetWorkflow', 'onFilesSelected', 'onRemoveFile', 'renderDocumentSearch', 'onRemoveDocument', 'getAttachedDocs', 'onAttachmentsSent',
	'getMessageContext', 'onClose'].map(name => [name, () => null]))
createRoot(document.getElementById('second')).render(<parley-conversation {...window.given} />)
`

// TestReact runs the documented component with React 19: a property, a callback and an event.
func TestReact(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("skipped: there is no npm")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("skipped: there is no folder for the packages:", err)
	}
	dir := filepath.Join(cache, "parley-test", "react-19.2.0")
	source := filepath.Join(t.TempDir(), "garden.jsx")
	if err := os.WriteFile(source, []byte(documented(t, "jsx")+callbacks), 0o600); err != nil {
		t.Fatal(err)
	}
	bundler := filepath.Join(dir, "node_modules", ".bin", "esbuild")
	if _, err := os.Stat(bundler); err != nil {
		if out, err := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--loglevel=error"}, packages...)...).CombinedOutput(); err != nil {
			t.Skipf("skipped: npm cannot install React: %v %s", err, out)
		}
	}
	build := exec.CommandContext(t.Context(), bundler, source, "--bundle", "--jsx=automatic", `--define:process.env.NODE_ENV="production"`)
	build.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	script, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, message(8, "dry?", ""), message(7, "Yes.", ""))
	f.scripts["react.js"] = string(script)
	settings, _ := json.Marshal(map[string]string{"server": f.URL, "token": token}) // texts always encode
	f.pages["page"] = `<!doctype html><title>page</title><link rel="icon" href="data:,"><div id="root"></div><div id="second" hidden></div><script type="module" src="/ui/conversation.js"></script>
<script>window.garden = ` + string(settings) + `</script><script type="module" src="/scripts/react.js"></script>`
	tab := browsertest.Open(t)
	tab.Goto(f.URL + "/page")
	tab.Role("textbox", "What about the garden?").Type("dry?")
	tab.Role("button", "Start Agent").Click()
	shown(t, tab, "[data-test=message]", "You: dry?", "Answer: Yes.")
	tab.Wait(`document.querySelector('#seen').textContent.length > 20`)
	for i := range 2 { // the context of the first message begins a thread for it
		if body := f.posted(t, tab, i+1).body; strings.Contains(body, "dry?") && !strings.Contains(body, `"metadata":{"plot":7}`) {
			t.Errorf("the message has no context: %s", body)
		}
	}
	tab.Role("button", "Close").Click()
	tab.Wait(`document.querySelector('#seen').textContent === 'closed'`)
	missing := browsertest.Eval[string](tab, `(c => Object.keys(given).filter(name => c[name] !== given[name]).join())(document.querySelector('#second parley-conversation'))`)
	if missing != "onClose" { // it is React's own, and the button has called it
		t.Errorf("%s are not given to the element", missing)
	}
}

// TestSize: all scripts of the page /chat, with the client, are small, also as text.
func TestSize(t *testing.T) {
	f := serve(t)
	f.pages["page"] = element("") + `<script type="module" src="/ui/chat.js"></script><p id="login"></p><p id="token"></p><p id="refused"></p><p id="chat"></p>`
	tab := browsertest.Open(t)
	tab.Goto(f.URL + "/page")
	tab.Find("[data-test=input]")
	tab.Faults() // the rest of the page /chat is missing
	sizes := browsertest.Eval[[]float64](tab, `(r => [r.length, r.reduce((n, e) => n + e.encodedBodySize, 0), r.reduce((n, e) => n + e.decodedBodySize, 0)])(performance.getEntriesByType('resource').filter(e => e.name.endsWith('.js')))`)
	t.Logf("%v scripts: %.0f bytes over the network, %.0f bytes of text", sizes[0], sizes[1], sizes[2])
	if sizes[0] != 3 || sizes[1] == 0 || sizes[2] > 48_000 {
		t.Errorf("%v", sizes)
	}
}
