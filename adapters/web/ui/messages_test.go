package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// open opens a page with the element in a tab, with further attributes of the element.
func (f *fake) open(t *testing.T, attributes string) *browsertest.Tab {
	t.Helper()
	f.mu.Lock()
	f.pages["page"] = element(attributes)
	f.mu.Unlock()
	tab := browsertest.Open(t)
	tab.Size(900, 1400)
	tab.Goto(f.URL + "/page")
	return tab
}

// in is the expression for the elements of the conversation that a selector matches.
func in(selector string) string {
	return fmt.Sprintf("[...document.querySelector('parley-conversation').shadowRoot.querySelectorAll(%q)]", selector)
}

// shown waits until the elements of a selector have texts.
func shown(t *testing.T, tab *browsertest.Tab, selector string, want ...string) {
	t.Helper()
	list, _ := json.Marshal(want)
	tab.Wait(fmt.Sprintf("JSON.stringify(%s.map(e => e.innerText.replace(/\\s+/g, ' ').trim())) === JSON.stringify(%s)", in(selector), list))
}

// message returns a message in compact form, with its further members.
func message(kind int, text, more string) string {
	raw, _ := json.Marshal(text)
	return fmt.Sprintf(`{"t":%d,"m":%s,"ts":1790000000000%s}`, kind, raw, more)
}

// TestTypes shows a message of each type as people expect it.
func TestTypes(t *testing.T) {
	f := serve(t,
		message(8, "How is the garden?", ""),
		message(0, "plan.pdf was read", ""),
		message(1, "First, the beds.", ""),
		message(2, "Two steps", `,"d":{"plan":[{"goal":"Look","status":"completed"},{"goal":"Tell","status":"in_progress"},{"goal":"Rest"}]}`),
		message(3, "bed 1", ""), message(3, "bed 2", ""),
		message(13, "beds", `,"d":{"completed":3,"total":8}`), message(13, "beds", `,"d":{"completed":4,"total":8}`),
		message(5, "No water", ""), message(6, "The pump is broken", ""),
		message(12, "It is w", `,"i":"a"`), message(12, "ell", `,"i":"a"`),
		message(12, "so far", `,"i":"b"`),
		message(9, "Shall I water it?", `,"d":{"ux":{"options":[{"id":"y","label":"Yes"},{"id":"n","label":"No"}]}}`),
		message(10, "", ""))
	tab := f.open(t, shows)
	for kind, want := range map[int]string{0: "plan.pdf was read", 5: "Warning: No water", 6: "Error: The pump is broken", 8: "You: How is the garden?", 10: "Waiting for you",
		3: "bed 2", 13: "beds 4 of 8 beds"} {
		shown(t, tab, fmt.Sprintf("[data-test=message][data-type='%d']", kind), want)
	}
	shown(t, tab, "[data-type='12'] [data-test=answer]", "It is well", "so far")
	shown(t, tab, "[data-test=task]", "Look done", "Tell active", "Rest open")
	shown(t, tab, "[data-type='9'] [data-test=option]", "Yes", "No")
	shown(t, tab, "[data-test=update]", "bed 2", "beds 4 of 8 beds")
	if folded := browsertest.Eval[bool](tab, "!"+in("[data-test=thought]")+"[0].open"); !folded {
		t.Error("a thought is not folded")
	}
	f.say(message(7, "It is **well**.", `,"i":"a","h":"<p>It is <strong>well</strong>.</p>"`), message(1, "so far", `,"i":"b"`),
		message(2, "", `,"d":{"plan":[{"goal":"Look","status":"completed"},{"goal":"Tell","status":"completed"}]}`),
		message(3, "bed 3", ""), message(4, "", ""))
	shown(t, tab, "[data-type='4']", "Completed")
	shown(t, tab, "[data-type='7']", "Answer: It is well.")
	shown(t, tab, "[data-test=task]", "Look done", "Tell done")
	shown(t, tab, "[data-test=update]", "bed 2", "beds 4 of 8 beds", "bed 3") // a line of its own after other messages
	if left := tab.Count("[data-type='12'], [data-type='10']"); left != 0 || tab.Count("[data-type='1']") != 2 || tab.Count("[data-type='7'] strong") != 1 {
		t.Errorf("%d chunks are left: %q", left, tab.Texts("[data-test=message]"))
	}
	tab.Wait(in("[data-test=connection]") + "[0].dataset.state === 'ended' || " + in("[data-test=connection]") + "[0].dataset.state === 'idle'")
	tab.Screenshot("types")
}

// TestEnds: the words of a COMPLETE are the answer of a run without one, and TERMINATED says why.
func TestEnds(t *testing.T) {
	f := serve(t, message(12, "draft", `,"i":"a"`), message(4, "The words of the end", ""))
	tab := f.open(t, shows)
	shown(t, tab, "[data-test=message]", "Answer: The words of the end", "Completed")
	g := serve(t, message(12, "half", `,"i":"a"`), message(11, "out of time", ""))
	tab = g.open(t, shows)
	shown(t, tab, "[data-test=message]", "half", "Stopped: out of time")
}

// TestWorking: from the question to the first words, an answer or a failure the conversation says that the agent works, also to a
// screen reader; what comes from the history shows no sign.
func TestWorking(t *testing.T) {
	for name, said := range map[string]string{"a chunk": message(12, "We", ""), "an answer": message(7, "Well.", ""), "a failure": message(6, "Broken.", ""), "a stop": message(11, "", "")} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, message(8, "How is the garden?", ""))
			tab := f.open(t, shows)
			works := in("[data-test=working]") + "[0].innerText.startsWith('The agent is thinking…')"
			tab.Wait(works)
			if role := browsertest.Eval[string](tab, in("[data-test=working]")+"[0].role"); role != "status" {
				t.Errorf("its role is %q", role)
			}
			f.say(message(1, "Hm.", ""), message(12, "elsewhere", `,"w":"books"`))
			shown(t, tab, "[data-test=thought]", "Thought")
			if !browsertest.Eval[bool](tab, works) {
				t.Error("a thought ends the sign")
			}
			f.say(said)
			shown(t, tab, "[data-test=working]", "")
		})
	}
}

// TestFailure: a failed run is no stopped one. Its error has a button that asks the question again.
func TestFailure(t *testing.T) {
	f := serve(t, message(8, "How is the garden?", ""), message(6, "Sorry.", ""), message(11, "", ""))
	tab := f.open(t, shows)
	shown(t, tab, "[data-test=message]", "You: How is the garden?", "Error: Sorry. Try again")
	f.turn()
	tab.Find("[data-test=again]").Click()
	shown(t, tab, "[data-test=message]", "You: How is the garden?", "Error: Sorry.", "You: How is the garden?")
	if again := f.posted(t, tab, 1).body; !strings.Contains(again, `"How is the garden?"`) {
		t.Errorf("asked again: %s", again)
	}
}

// TestQuestion answers a question with a button, which then cannot be pressed again.
func TestQuestion(t *testing.T) {
	f := serve(t, message(8, "water", ""), message(9, "Which bed?", `,"d":{"ux":{"options":[{"id":"n","label":"North"},{"id":"s","label":"South"}]}}`), message(4, "", ""))
	tab := f.open(t, shows+" interactive=false")
	shown(t, tab, "[data-type='4']", "Waiting for you")
	f.turn(message(4, "", "")) // the run of the answer asks nothing
	tab.Role("button", "South").Click()
	shown(t, tab, "[data-type='8']", "You: water", "You: South")
	tab.Wait(in("[data-test=option]") + ".every(e => e.disabled)")
	if pressed := browsertest.Eval[string](tab, in("[data-test=option][aria-pressed=true]")+".map(e => e.textContent).join()"); pressed != "South" {
		t.Errorf("%q is pressed", pressed)
	}
	post := f.posted(t, tab, 1)
	var signal struct {
		Signal string
		Data   struct {
			Message  string
			Metadata map[string]string
		}
	}
	if err := json.Unmarshal([]byte(post.body), &signal); err != nil || post.path != "/runs/"+runID+"/signals" || post.token != token ||
		signal.Signal != "UserInput" || signal.Data.Message != "South" || signal.Data.Metadata["option_id"] != "s" {
		t.Errorf("%+v", post)
	}
	tab.Wait(in("form") + "[0].hidden") // the question was the only reason to write
}

// posted waits for the nth request with a body.
func (f *fake) posted(t *testing.T, tab *browsertest.Tab, n int) post {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.posts) < n {
		f.mu.Unlock()
		browsertest.Eval[any](tab, "new Promise(requestAnimationFrame)")
		f.mu.Lock()
	}
	return f.posts[n-1]
}

// TestWorkstreams: each workstream has a tab with its state, and the arrow keys go from tab to tab.
func TestWorkstreams(t *testing.T) {
	f := serve(t, message(8, "compare", ""), message(3, "searching", `,"w":"research","d":{"phase":"planning"}`), message(7, "done", `,"w":"prices"`), message(4, "", `,"w":"prices"`),
		message(6, "broken", `,"w":"images"`))
	tab := f.open(t, shows)
	shown(t, tab, "[role=tab]", "Main running", "research running, planning", "prices completed", "images failed")
	shown(t, tab, ".list:not([hidden]) [data-test=message]", "You: compare")
	tab.Find("[data-test=workstream-prices]").Click()
	shown(t, tab, ".list:not([hidden]) [data-test=message]", "Answer: done", "Completed")
	tab.Press(kb.ArrowLeft)
	shown(t, tab, "[role=tab][aria-selected=true]", "research running, planning")
	f.say(message(4, "", `,"w":"research"`))
	shown(t, tab, "[data-test=workstream-research]", "research completed")
	tab.Role("tab", "Main running")
}

// TestHostileContent: no text of an agent becomes a script, a style or a request.
func TestHostileContent(t *testing.T) {
	const evil = `<img src=x onerror="document.title='hurt'"><script>document.title='hurt'</script><svg onload="document.title='hurt'"><style>*{display:none}</style>` +
		`<a href="javascript:document.title='hurt'">click</a><iframe srcdoc="<script>top.document.title='hurt'</script>"></iframe><form action="https://evil.example"><input name=x><button>go</button></form>` +
		`<p style="position:fixed" class="root" id="x" onclick="document.title='hurt'" part="send">text</p><img src="https://evil.example/pixel.png" alt="a pixel"><table><tr><td onmouseover="document.title='hurt'">cell</table>` +
		`<math><mtext><table><mglyph><style><img src=x onerror="document.title='hurt'">`
	quoted, _ := json.Marshal(evil)
	deep := strings.Repeat(`{"type":"stack","children":[`, 200) + `{"type":"text","content":"deep"}` + strings.Repeat(`]}`, 200)
	var all []string
	for kind := range 14 {
		if kind == 4 || kind == 11 {
			continue
		}
		all = append(all, message(kind, evil, fmt.Sprintf(`,"w":"%s","h":%s,"i":"%d","d":{"ux":{"options":[{"id":%s,"label":%s}]},"plan":[{"goal":%s,"status":%s}],"tool":%s,"files":[{"name":%s,"url":"javascript:alert(1)"}],"name":%s,"ack":%s}`,
			[]string{"main", `x\"y<b>`}[kind%2], quoted, kind, quoted, quoted, quoted, quoted, quoted, quoted, quoted, quoted)))
	}
	for _, root := range []string{deep, `null`, `7`, `"text"`, `[]`, `{"type":"__proto__"}`, `{"type":"constructor","children":5}`, `{"type":"table","columns":7,"rows":{"a":1}}`,
		`{"type":"image","url":"javascript:alert(1)","alt":` + string(quoted) + `}`, `{"type":"button","label":"go","url":"javascript:document.title='hurt'"}`,
		`{"type":"text","role":"title","content":` + string(quoted) + `}`, `{"type":"image","url":"https://evil.example/x.png","alt":"x"}`} {
		all = append(all, message(7, "", `,"d":{"uiSchema":{"version":"2.0","locale":"en","status":"info","theme":"default","root":`+root+`}}`))
	}
	all = append(all, message(7, "", `,"h":"<pre><code class=\"language-fusion-fragment\">{\"title\":{\"a\":1},\"sections\":[{\"fields\":[{\"key\":\"__proto__.x\",\"label\":7},null]},null]}</code></pre>"`), message(99, "unknown", ""), message(3, "the end", ""))
	f := serve(t, all...)
	f.policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; require-trusted-types-for 'script'; trusted-types 'none'"
	tab := f.open(t, shows)
	shown(t, tab, ".list:not([hidden]) > :last-child", "the end")
	for _, fault := range tab.Faults() {
		if !strings.Contains(fault, "404") { // an image of this very server is shown
			t.Error(fault)
		}
	}
	if title := browsertest.Eval[string](tab, "document.title"); title != "page" {
		t.Errorf("the title is %q: a script ran", title)
	}
	for _, selector := range []string{"script", "style", "iframe", "svg", "math", "mglyph", ".rich form", ".rich input", "[onerror]", "[onclick]", "[style]:not(textarea)", "[href^='javascript']", "#x", ".rich .root", "img[src*=evil]"} {
		if n := browsertest.Eval[int](tab, in(selector)+".length"); n != 0 {
			t.Errorf("%d elements are %s", n, selector)
		}
	}
	if n := tab.Count("button.foreign"); n == 0 {
		t.Error("no foreign image waits for a click")
	}
}

// TestManyMessages shows 1,000 messages, and the newest one without a scroll.
func TestManyMessages(t *testing.T) {
	var all []string
	for i := range 1000 {
		all = append(all, message([]int{8, 7}[i%2], fmt.Sprintf("message %d %s", i, strings.Repeat("and words ", i%40)), fmt.Sprintf(`,"i":"%d"`, i)))
	}
	f := serve(t, all...)
	tab := f.open(t, shows)
	tab.Wait(in("[data-test=message]") + ".length === 1000")
	tab.Wait("(l => l.scrollTop + l.clientHeight > l.scrollHeight - 80)(" + in(".list") + "[0])")
	if high := browsertest.Eval[bool](tab, "document.documentElement.scrollHeight > innerHeight"); high {
		t.Error("the page scrolls, too")
	}
	browsertest.Eval[any](tab, "void "+in(".list")+"[0].scrollTo(0, 0)")
	f.say(message(7, "the newest", ""))
	tab.Wait(in("[data-test=message]") + ".length === 1001 && getComputedStyle(" + in(".latest") + "[0]).visibility === 'visible'")
	if at := browsertest.Eval[float64](tab, in(".list")+"[0].scrollTop"); at > 100 {
		t.Errorf("a new message has moved the reader to %v", at)
	}
	tab.Role("button", "Newest message ↓").Click()
	tab.Wait("(l => l.scrollTop + l.clientHeight > l.scrollHeight - 80)(" + in(".list") + "[0])")
}

// watch counts the frames of a page, its long tasks, and the changes of the conversation with the moments in which they come.
const watch = `void (window.work = {frames: 0, long: 0, moments: 0, changes: 0},
	(function next() { work.frames++; requestAnimationFrame(next) })(),
	new PerformanceObserver(list => work.long += list.getEntries().length).observe({type: 'longtask'}),
	new MutationObserver(list => { work.moments++; work.changes += list.length }).observe(document.querySelector('parley-conversation').shadowRoot,
		{subtree: true, childList: true, characterData: true, attributes: true}))`

// TestFastStream: 5,000 chunks cost changes of the page by its frames, not by the chunks.
func TestFastStream(t *testing.T) {
	f := serve(t, message(8, "count", ""))
	tab := f.open(t, shows)
	shown(t, tab, "[data-type='8']", "You: count")
	browsertest.Eval[any](tab, watch)
	before := busy(tab)
	var text strings.Builder
	for i := range 5000 {
		chunk := fmt.Sprintf("word %d%s", i, []string{" ", " ", " ", "\n"}[i%4])
		text.WriteString(chunk)
		f.say(message(12, chunk, `,"i":"a"`))
		if i%50 == 49 {
			browsertest.Eval[any](tab, "new Promise(requestAnimationFrame)")
		}
	}
	f.say(message(3, "end", ""))
	shown(t, tab, "[data-type='3']", "end")
	work := browsertest.Eval[struct{ Frames, Long, Moments, Changes int }](tab, "work")
	blocks := browsertest.Eval[[]string](tab, in("[data-test=answer] .text > div")+".map(e => e.textContent)")
	if got := strings.Join(blocks, "\n"); got != text.String() {
		t.Errorf("%d characters are shown, want %d", len(got), text.Len())
	}
	if most := work.Moments + 2*len(blocks) + 10; work.Changes > most || work.Moments > work.Frames+10 {
		t.Errorf("%+v with %d blocks of text: more than %d changes, or more than one moment a frame", work, len(blocks), most)
	}
	t.Logf("5,000 chunks: %+v; in a frame %.2f ms of the page's thread", work, (busy(tab)-before)*1000/float64(work.Frames))
}

// busy returns how many seconds a page has spent with scripts, styles and layout.
func busy(tab *browsertest.Tab) (seconds float64) {
	tab.Do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		if _, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{}); err != nil {
			return chromedp.Void{}, err
		}
		metrics, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		for _, m := range metrics.Metrics {
			if m.Name == "ScriptDuration" || m.Name == "LayoutDuration" || m.Name == "RecalcStyleDuration" {
				seconds += m.Value
			}
		}
		return chromedp.Void{}, err
	})
	return seconds
}

// TestReconnects: the streams end during an answer; one sees it, and the answer goes on without a loss.
func TestReconnects(t *testing.T) {
	f := serve(t, message(8, "count", ""), message(12, "one ", `,"i":"a"`))
	tab := f.open(t, shows)
	shown(t, tab, "[data-test=connection]", "Live")
	f.end()
	tab.Wait(in("[data-test=connection]") + "[0].dataset.state === 'reconnecting'")
	f.say(message(12, "two ", `,"i":"a"`))
	f.begin()
	shown(t, tab, "[data-test=answer]", "one two")
	shown(t, tab, "[data-test=connection]", "Live")
	f.say(message(12, "three", `,"i":"a"`))
	shown(t, tab, "[data-test=answer]", "one two three")
}
