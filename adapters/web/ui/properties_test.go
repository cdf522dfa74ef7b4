package ui_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// set sets properties of the element in the page's own script.
func set(tab *browsertest.Tab, script string) {
	browsertest.Eval[any](tab, "void (c => { window.calls ??= []; "+script+" })(document.querySelector('parley-conversation'))")
}

// called waits until the callbacks of the page have got values.
func called(t *testing.T, tab *browsertest.Tab, want string) {
	t.Helper()
	tab.Text("JSON.stringify(window.calls)", want)
	set(tab, "calls = []")
}

// TestStart begins a conversation without a run: with the page's callback, and by itself.
func TestStart(t *testing.T) {
	f := serve(t, message(8, "water them", ""), message(7, "Done.", ""))
	tab := f.open(t, `title="Garden" start-button-text="Ask" placeholder="What about the garden?" initial-message="I know the beds." id="c"`)
	tab.Find("[part=initial]")
	if text := tab.Find("[part=initial]").Text(); text != "I know the beds." {
		t.Errorf("the initial message is %q", text)
	}
	set(tab, `c.startWorkflow = async m => (calls.push(m), {run_id: '`+runID+`', workflow_id: '`+threadID+`'})`)
	tab.Wait("(e => e.clientHeight > 20)(" + in("[data-test=input]") + "[0])") // as soon as it is shown
	tab.Role("textbox", "What about the garden?").Type("water them")
	tab.Role("button", "Ask").Click()
	shown(t, tab, "[data-test=message]", "You: water them", "Answer: Done.")
	called(t, tab, `["water them"]`)
	if visible := browsertest.Eval[string](tab, in("[data-test=send], [data-test=start]")+".filter(e => !e.hidden).map(e => e.textContent).join()"); visible == "Ask" {
		t.Error("the start button is left")
	}
	tab = f.open(t, "")
	tab.Find("[data-test=input]").Type("water them")
	tab.Press(kb.Enter)
	shown(t, tab, "[data-test=message]", "You: water them", "Answer: Done.")
	if left := browsertest.Eval[string](tab, in("[data-test=input]")+"[0].value"); left != "" {
		t.Errorf("%q is left in the input", left)
	}
	begun := f.posted(t, tab, 1)
	if begun.path != "/api/v1/agent/runs" || begun.token != token || !strings.Contains(begun.body, `"content":"water them"`) {
		t.Errorf("%+v", begun)
	}
}

// TestStartFails: a refused start leaves the words in the input, and says why.
func TestStartFails(t *testing.T) {
	f := serve(t)
	tab := f.open(t, "")
	set(tab, `c.startWorkflow = async () => { throw new Error('no agent is free') }`)
	tab.Find("[data-test=input]").Type("water them")
	tab.Find("[data-test=start]").Click()
	tab.Wait(in("form [role=alert]") + "[0].textContent === 'no agent is free' && " + in("[data-test=input]") + "[0].value === 'water them'")
}

// TestSend sends a message with everything that the page adds, and shows it at once.
func TestSend(t *testing.T) {
	f := serve(t, message(8, "hi", ""), message(4, "Hello.", ""))
	tab := f.open(t, shows)
	shown(t, tab, "[data-type='4']", "Completed")
	set(tab, `c.getAttachedDocs = () => ['d1', 'd2']; c.getMessageContext = () => ({plot: 7}); c.onAttachmentsSent = () => calls.push('sent')`)
	tab.Find("[data-test=input]").Type("and the roses?")
	tab.Find("[data-test=send]").Click()
	shown(t, tab, "[data-type='8']", "You: hi", "You: and the roses? Attachments: store:d1 store:d2")
	var signal struct {
		Data struct{ Message, Metadata any }
	}
	if err := json.Unmarshal([]byte(f.posted(t, tab, 1).body), &signal); err != nil || fmt.Sprint(signal.Data) != "{and the roses?\nAttachments:\nstore:d1\nstore:d2 map[plot:7]}" {
		t.Errorf("%+v", signal)
	}
	called(t, tab, `["sent"]`)
}

// TestSendAgain: a message that the server refuses stays, with its reason and a button that sends it again.
func TestSendAgain(t *testing.T) {
	f := serve(t, message(8, "hi", ""))
	f.refuse = true
	tab := f.open(t, shows)
	shown(t, tab, "[data-type='8']", "You: hi")
	tab.Find("[data-test=input]").Type("more")
	tab.Press(kb.Enter)
	tab.Wait(in("[data-state=failed] [role=alert]") + "[0]?.textContent.includes('the workspace has a limit')")
	f.mu.Lock()
	f.refuse = false
	f.mu.Unlock()
	tab.Role("button", "Send again").Click()
	tab.Wait(in("[data-state=sent]") + ".length === 1 && " + in("[data-state=failed]") + ".length === 0")
	first, second := f.posted(t, tab, 1), f.posted(t, tab, 2)
	if first.body != second.body { // with the same client_message_id, it is one message
		t.Errorf("%s, then %s", first.body, second.body)
	}
	if faults := tab.Faults(); len(faults) != 1 {
		t.Errorf("%q", faults)
	}
}

// TestProperties sets each property that changes what one sees.
func TestProperties(t *testing.T) {
	f := serve(t, message(8, "hi", ""), message(7, "", `,"h":"<pre><code class=\"language-fusion-fragment\">{\"title\":\"Plot\",\"fields\":[{\"label\":\"Size\",\"key\":\"plot.size\",\"unit\":\"ha\"}]}</code></pre>"`))
	tab := f.open(t, `run='{"runId":"`+runID+`","workflowId":"`+threadID+`"}' is-modal full-width`)
	shown(t, tab, "[data-type='8']", "You: hi")
	for _, step := range []struct{ set, expect string }{
		{``, in("[part=title]") + "[0].textContent === '" + threadID + "'"},
		{`c.title = 'Garden'`, in("[part=title]") + "[0].textContent === 'Garden' && !document.querySelector('parley-conversation').hasAttribute('title')"},
		{`c.setAttribute('title', 'Beds')`, in("[part=title]") + "[0].textContent === 'Beds'"},
		{`c.interactive = false`, in("form") + "[0].hidden"},
		{`c.interactive = true`, "!" + in("form") + "[0].hidden"},
		{`c.hideUserInput = true`, in("form") + "[0].hidden"},
		{`c.hideUserInput = false`, "!" + in("form") + "[0].hidden"},
		{`c.placeholder = 'Go on'`, in("[data-test=input]") + "[0].placeholder === 'Go on'"},
		{`c.isUploading = true; c.shadowRoot.querySelector('[data-test=input]').value = 'x'`, in("[data-test=send]") + "[0].disabled"},
		{`c.isUploading = false`, "!" + in("[data-test=send]") + "[0].disabled"},
		{`c.inputClassName = 'wide'; c.inputContainerClassName = 'dark'`, in("textarea.wide[part~=wide]") + ".length && " + in("form.dark[part~=dark]") + ".length"},
		{`c.acceptedFileTypes = '.txt'; c.maxFiles = 1`, in("[data-test=file]") + "[0].accept === '.txt' && !" + in("[data-test=file]") + "[0].multiple"},
		{``, in("[data-test=close], [data-test=reset]") + ".every(e => e.hidden)"},
		{`c.onClose = (...a) => calls.push(['close', ...a]); c.resetWorkflow = () => (calls.push('reset'), false)`, in("[data-test=close], [data-test=reset]") + ".every(e => !e.hidden)"},
		{`c.addEventListener('close', () => calls.push('event')); for (const e of c.shadowRoot.querySelectorAll('[data-test=close], [data-test=reset]')) e.click()`, `JSON.stringify(calls) === '["reset","event",["close"]]'`},
		{`calls = []; c.uploadedFiles = [{id: 'u1', name: 'a.pdf', size: 2048}]; c.onRemoveFile = id => calls.push(id)`, in(".chip") + "[0]?.innerText.includes('a.pdf') "},
		{`c.shadowRoot.querySelector('[data-test=remove-file]').click()`, `calls[0] === 'u1'`},
		{`calls = []; c.uploadedFiles = null; c.selectedDocuments = [{id: 'd1', name: 'Deed'}]; c.onRemoveDocument = id => calls.push(id)`, in(".chip") + "[0]?.innerText.includes('Deed')"},
		{`c.shadowRoot.querySelector('[data-test=remove-document]').click()`, `calls[0] === 'd1'`},
		{`c.renderDocumentSearch = () => Object.assign(document.createElement('input'), {placeholder: 'Search'})`, in(".search input") + ".length === 1"},
		{`c.renderDocumentSearch = null`, in(".search input") + ".length === 0"},
		{`c.fusionData = {plot: {size: 3}}; c.run = null`, in("[data-test=message]") + ".length === 0"},
		{`c.run = {run_id: '` + runID + `', workflow_id: '` + threadID + `'}`, in("[data-test=fusion]") + "[0]?.innerText.replace(/\\s+/g, ' ').includes('Plot Size 3 ha')"},
		{`c.run = null`, in("[data-test=message]") + ".length === 0 && !" + in("[data-test=start]") + "[0].hidden"},
	} {
		set(tab, step.set)
		tab.Wait(step.expect)
	}
	size := "(e => e.getBoundingClientRect().width)(" + in("[data-test=input]") + "[0])"
	full := browsertest.Eval[float64](tab, size)
	set(tab, `c.fullWidth = false`)
	tab.Wait(fmt.Sprintf("%s < %v", size, full-100))
}

// files makes files of the names, and returns their paths.
func files(t *testing.T, names ...string) (paths []string) {
	for _, name := range names {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestFiles adds five files and no sixth, none of another type and none that is too large, and sends them.
func TestFiles(t *testing.T) {
	f := serve(t, message(8, "hi", ""))
	tab := f.open(t, shows+` accepted-file-types=".txt,image/*" max-file-bytes="1000"`)
	shown(t, tab, "[data-type='8']", "You: hi")
	says := func(want string) {
		t.Helper()
		tab.Wait(fmt.Sprintf("%s[0].textContent.includes(%q)", in("form [role=alert]"), want))
	}
	large := files(t, "large.txt")[0]
	if err := os.WriteFile(large, make([]byte, 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	picker := tab.Find("[data-test=file]")
	picker.Upload(files(t, "a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt")...)
	says("at most 5 files")
	shown(t, tab, ".chip", "a.txt 1 KB ×", "b.txt 1 KB ×", "c.txt 1 KB ×", "d.txt 1 KB ×", "e.txt 1 KB ×")
	tab.Role("button", "Remove c.txt").Click()
	picker.Upload(files(t, "run.exe")...)
	says("run.exe is not of an accepted type")
	picker.Upload(large)
	says("large.txt is too large: 2 KB of at most 1 KB")
	drop := `(names => { const data = new DataTransfer(); names.forEach(n => data.items.add(new File(['x'], n, {type: 'image/png'})));
		const on = document.querySelector('parley-conversation').shadowRoot.querySelector('[part=conversation]');
		for (const type of ['dragenter', 'dragover', 'drop']) on.dispatchEvent(new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true, composed: true})) })`
	browsertest.Eval[any](tab, "void "+drop+"(['rose.png'])")
	shown(t, tab, ".chip", "a.txt 1 KB ×", "b.txt 1 KB ×", "d.txt 1 KB ×", "e.txt 1 KB ×", "rose.png 1 KB ×")
	tab.Find("[data-test=input]").Type("look")
	tab.Find("[data-test=send]").Click()
	tab.Wait(in("[data-type='8'] .files li") + ".length === 5 && " + in(".chip") + ".length === 0")
	sent := f.posted(t, tab, 7) // six uploads, and the message
	for _, want := range []string{`"message":"look"`, `"name":"a.txt"`, `"name":"rose.png"`, "/storage/v1/object/sign/attachments/6"} {
		if !strings.Contains(sent.body, want) || strings.Contains(sent.body, "c.txt") {
			t.Errorf("%s has no %s", sent.body, want)
		}
	}
	tab.Screenshot("files")
	set(tab, `c.onFilesSelected = list => calls.push(list.map(f => f.name))`)
	picker.Upload(files(t, "g.txt")...)
	called(t, tab, `[["g.txt"]]`)
	set(tab, `c.onFilesSelected = null; c.addEventListener('filesselected', e => { e.preventDefault(); calls.push(e.detail.length) })`)
	picker.Upload(files(t, "h.txt")...)
	called(t, tab, `[1]`)
	if n := tab.Count(".chip"); n != 0 {
		t.Errorf("%d files are the element's own", n)
	}
}

// TestStartWithFiles shows the files of the first message.
func TestStartWithFiles(t *testing.T) {
	f := serve(t, message(7, "Seen.", ""))
	tab := f.open(t, "")
	tab.Find("[data-test=file]").Upload(files(t, "a.txt")...)
	shown(t, tab, ".chip[data-state=ready]", "a.txt 1 KB ×")
	tab.Find("[data-test=input]").Type("look")
	tab.Press(kb.Enter)
	shown(t, tab, "[data-test=message]", "You: look a.txt", "Answer: Seen.")
}

// TestAccessibility finds every control by its role and name, and uses the conversation with the keyboard alone.
func TestAccessibility(t *testing.T) {
	f := serve(t, message(8, "hi", ""), message(1, "thinking", ""), message(13, "Beds", `,"d":{"completed":1,"total":2}`), message(3, "x", `,"w":"side"`),
		message(9, "Which?", `,"d":{"ux":{"options":[{"id":"a","label":"Left"}]}}`))
	tab := f.open(t, shows)
	set(tab, `c.onClose = c.resetWorkflow = () => {}`)
	for _, one := range [][2]string{{"region", "Garden"}, {"heading", "Garden"}, {"log", "Messages"}, {"textbox", "Type your message..."}, {"button", "Add files"}, {"button", "Stop"},
		{"button", "Close"}, {"button", "Start again"}, {"tablist", "Workstreams"}, {"tab", "side running"}, {"group", "Answers"}, {"button", "Left"}, {"progressbar", "Beds"}} {
		tab.Role(one[0], one[1])
	}
	unnamed := browsertest.Eval[int](tab, in("button, textarea, input, [role=log], [role=tablist]")+".filter(e => !e.hidden && !(e.ariaLabel || e.textContent.trim())).length")
	if unnamed != 0 {
		t.Errorf("%d controls have no name", unnamed)
	}
	tab.Find("[data-test=input]").Type("by keyboard")
	tab.Press(kb.Enter)
	shown(t, tab, "[data-type='8']", "You: hi", "You: by keyboard")
	tab.Find("[role=log]")
	if live := browsertest.Eval[string](tab, in("[role=log]")+"[0].ariaLive"); live != "polite" {
		t.Errorf("new messages are announced %q", live)
	}
}
