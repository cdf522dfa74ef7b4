package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// serve serves a page, with a policy that admits its own script alone.
func serve(t *testing.T, body string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-page'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>page</title><body>%s", body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const form = `<p id=out>empty</p><x-form></x-form>
<script nonce=page>
customElements.define('x-form', class extends HTMLElement {
	connectedCallback() {
		this.attachShadow({mode: 'open'}).innerHTML = '<input aria-label=Words><input type=file aria-label=File><button>Send</button><button hidden>Send</button>'
		const [words, file] = this.shadowRoot.querySelectorAll('input')
		const tell = () => out.textContent = [words.value, ...Array.from(file.files, f => f.name)].join(' ')
		this.shadowRoot.querySelector('button').onclick = tell
		words.onkeydown = e => e.key == 'Enter' && tell()
	}
})
</script>`

func TestPerson(t *testing.T) {
	tab := browsertest.Open(t)
	tab.Goto(serve(t, form))
	tab.Role("textbox", "Words").Type("good morning")
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	tab.Find("input[type=file]").Upload(file)
	tab.Role("button", "Send").Click()
	if got, want := tab.Find("#out").Text(), "good morning a.txt"; got != want {
		t.Errorf("after the click: %q, want %q", got, want)
	}
	tab.Find("input").Type("!")
	tab.Press(kb.Enter)
	tab.Wait(`document.querySelector('#out').textContent == 'good morning! a.txt'`)
	if got := browsertest.Eval[[]int](tab, "Promise.resolve([1, 2])"); len(got) != 2 {
		t.Errorf("a promise: %v", got)
	}
	if n, texts := tab.Count("button"), tab.Texts("button"); n != 2 || texts[0] != "Send" {
		t.Errorf("%d buttons with %q, want two", n, texts)
	}
}

// TestPageChanges clicks and types in elements that the page replaces after they were found.
func TestPageChanges(t *testing.T) {
	tab := browsertest.Open(t)
	tab.Goto(serve(t, `<p id=out></p><div id=main></div><script nonce=page>
function draw() { main.innerHTML = '<input><button>Send</button>'; main.lastChild.onclick = () => out.textContent = main.firstChild.value }
draw()
</script>`))
	words, button := tab.Find("input"), tab.Role("button", "Send")
	browsertest.Eval[any](tab, "draw()")
	words.Type("good morning")
	button.Click()
	if got := tab.Find("#out").Text(); got != "good morning" {
		t.Errorf("after the click: %q", got)
	}
}

// TestPageLoads presses a key in a page whose script comes late.
func TestPageLoads(t *testing.T) {
	late := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/late":
			close(late)
		case "/script.js":
			<-late
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `document.addEventListener('keydown', e => document.title = e.key)`)
		case "/next":
			fmt.Fprint(w, `<!doctype html><title>next</title><script defer src=script.js></script><script>setTimeout(() => fetch('late'), 500)</script>`)
		default:
			fmt.Fprint(w, `<!doctype html><link rel=icon href=data:,>`)
		}
	}))
	t.Cleanup(server.Close)
	tab := browsertest.Open(t)
	tab.Goto(server.URL)
	browsertest.Eval[any](tab, "void (location.href = 'next')")
	tab.Wait("document.title === 'next'")
	tab.Press("j")
	tab.Wait("document.title === 'j'")
}

func TestFaults(t *testing.T) {
	tab := browsertest.Open(t)
	tab.Goto(serve(t, `<script nonce=page>console.error('first'); console.log('no fault'); setTimeout(() => { throw Error('second'); })</script>
<script>out.textContent = 'not admitted'</script><p id=out>`))
	tab.Wait("document.readyState == 'complete'")
	browsertest.Eval[any](tab, "new Promise(resolve => setTimeout(resolve))")
	faults := strings.Join(tab.Faults(), "\n")
	for _, want := range []string{"first", "second", "Content Security Policy"} {
		if !strings.Contains(faults, want) {
			t.Errorf("the faults have no %q:\n%s", want, faults)
		}
	}
	if strings.Contains(faults, "no fault") {
		t.Errorf("a log entry is a fault:\n%s", faults)
	}
	if again := tab.Faults(); len(again) > 0 {
		t.Errorf("faults that were taken came again: %q", again)
	}
}

func TestTabsShareNothing(t *testing.T) {
	page := serve(t, "")
	first, second := browsertest.Open(t), browsertest.Open(t)
	first.Goto(page)
	second.Goto(page)
	browsertest.Eval[any](first, "void localStorage.setItem('name', 'first')")
	if got := browsertest.Eval[*string](second, "localStorage.getItem('name')"); got != nil {
		t.Errorf("the second tab sees %q of the first", *got)
	}
}

func TestScreenshot(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(browsertest.Pictures, folder)
	tab := browsertest.Open(t)
	tab.Goto(serve(t, "<h1>Hello</h1>"))
	tab.Size(320, 200)
	tab.Screenshot("hello")
	if picture, err := os.ReadFile(filepath.Join(folder, "hello.png")); err != nil || !strings.HasPrefix(string(picture), "\x89PNG") {
		t.Errorf("the screenshot is no picture: %v", err)
	}
}
