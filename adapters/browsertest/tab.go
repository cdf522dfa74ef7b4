package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// answerWithin bounds one step of a tab, on a busy machine too.
const answerWithin = 2 * time.Minute

// Tab is a tab of the browser, with cookies and storage of its own. Its methods fail the test if a step
// has an error or takes longer than two minutes. One goroutine uses a tab at a time.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	heard  *sync.Cond // the collector has added to faults or has heard a mark
	faults []string
	marked int // the last mark that the collector has heard
	marks  int // the last mark that was sent
	ended  bool
}

// Open opens an empty tab, and closes it when the test ends. It skips the test if there is no
// browser. The test fails if the page has logged an error, has left an exception uncaught, or has
// broken its Content-Security-Policy, unless the test has taken that with Faults.
func Open(t testing.TB) *Tab {
	t.Helper()
	if err := start(); err != nil {
		if os.Getenv(Required) != "" || errors.Is(err, errUnmanaged) {
			t.Fatalf("no browser: %v", err)
		}
		t.Skipf("skipped: no browser; %s sets its path: %v", Address, err)
	}
	ctx, closeTab := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	tab := &Tab{t: t, ctx: ctx}
	tab.heard = sync.NewCond(&tab.mu)
	if err := chromedp.Do(ctx); err != nil {
		closeTab()
		t.Fatalf("open a tab: %v", err)
	}
	console := chromedp.Console(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range console {
			if err != nil {
				break
			}
			tab.hear(m)
		}
		tab.end()
	}()
	t.Cleanup(func() {
		for _, fault := range tab.Faults() {
			t.Errorf("the page has a fault: %s", fault)
		}
		closeTab()
		<-done
	})
	return tab
}

// markPrefix begins the message with which Faults learns that it has heard everything before.
const markPrefix = "browsertest mark "

// hear takes one message of the page's console.
func (tab *Tab) hear(m chromedp.ConsoleMessage) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	var mark int
	switch {
	case m.Type == chromedp.ConsoleDebug && strings.HasPrefix(m.Text, markPrefix):
		_, _ = fmt.Sscan(strings.TrimPrefix(m.Text, markPrefix), &mark) // our own words
		tab.marked = mark
	case m.Type == chromedp.ConsoleError, m.IsException():
		tab.faults = append(tab.faults, fmt.Sprintf("%s (%s:%d)", m, m.URL, m.Line+1))
	}
	tab.heard.Broadcast()
}

// end takes the end of the console.
func (tab *Tab) end() {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.ended = true
	tab.heard.Broadcast()
}

// Faults returns the page's errors, uncaught exceptions and violations of its
// Content-Security-Policy since the last call, in order. The test does not fail because of those.
func (tab *Tab) Faults() []string {
	tab.t.Helper()
	tab.marks++
	ctx, cancel := context.WithTimeout(tab.ctx, answerWithin)
	defer cancel()
	mark := fmt.Sprintf("console.debug(%q)", fmt.Sprint(markPrefix, tab.marks))
	_, err := chromedp.Run(ctx, chromedp.Evaluate[any](mark))
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for err == nil && tab.marked < tab.marks && !tab.ended {
		tab.heard.Wait()
	}
	faults := tab.faults
	tab.faults = nil
	return faults
}

// Do executes steps of chromedp, of which each must end within two minutes.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	for _, step := range steps {
		run(tab, "a step", step)
	}
}

// run executes one action within answerWithin. what names it in the test's failure.
func run[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, answerWithin)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.t.Fatalf("%s: %v; the page's faults: %q", what, err, tab.Faults())
	}
	return value
}

// Goto opens a page and waits until it is loaded.
func (tab *Tab) Goto(address string) {
	tab.t.Helper()
	run(tab, "go to "+address, chromedp.Navigate(address))
}

// Eval returns the JSON value of a JavaScript expression in the page. It waits for a promise.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return run(tab, "evaluate "+expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Wait waits until a JavaScript expression is true in the page, or in the page that replaces it.
func (tab *Tab) Wait(expression string) {
	tab.t.Helper()
	run(tab, "wait for "+expression, until("!!("+expression+")"))
}

// Text waits until a JavaScript expression is a text in the page, or in the page that replaces it. If it stays
// another one, the failure shows that one.
func (tab *Tab) Text(expression, want string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, answerWithin)
	defer cancel()
	quoted, _ := json.Marshal(want) // a string has no error
	if _, err := chromedp.Run(ctx, until(fmt.Sprintf("(%s) === %s", expression, quoted))); err != nil {
		tab.t.Fatalf("wait for a text: %v\ngot:  %q\nwant: %q\nof %s; the page's faults: %q", err, Eval[string](tab, "String("+expression+")"), want, expression, tab.Faults())
	}
}

// until is the action that waits until a JavaScript expression is true.
func until(expression string) chromedp.Action[bool] {
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(pollEvery), chromedp.WithPollingTimeout(answerWithin))
	return func(ctx context.Context, t *chromedp.Target) (bool, error) {
		for {
			value, err := poll(ctx, t)
			if err == nil || ctx.Err() != nil || !replaced.MatchString(err.Error()) {
				return value, err
			}
		}
	}
}

// replaced matches the error of a step that was in a page when another page replaced it.
var replaced = regexp.MustCompile(`Inspected target navigated|Cannot find (default execution )?context|Execution context was destroyed`)

// pollEvery is the time between two looks at a page.
const pollEvery = 20 * time.Millisecond

// again executes an action until it succeeds or has a final error. It returns the last error if the time ends before.
func again[T any](action chromedp.Action[T]) chromedp.Action[T] {
	return func(ctx context.Context, t *chromedp.Target) (T, error) {
		for {
			value, err := action(ctx, t)
			if _, stays := errors.AsType[final](err); err == nil || stays {
				return value, err
			}
			select {
			case <-time.After(pollEvery):
			case <-ctx.Done():
				return value, err
			}
		}
	}
}

// final is an error that another try cannot mend.
type final struct{ error }

// loaded waits until the page is loaded. The scripts of a page that still loads don't hear of a person's keys and clicks.
func (tab *Tab) loaded() {
	tab.t.Helper()
	tab.Wait(`document.readyState === "complete"`)
}

// Press waits until the page is loaded, and presses keys, such as kb.Enter of chromedp, in the focused element.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	tab.loaded()
	run(tab, "press keys", chromedp.KeyEvent(keys))
}

// Size sets the size of the page, in CSS pixels.
func (tab *Tab) Size(width, height int64) {
	tab.t.Helper()
	run(tab, "set the size", chromedp.EmulateViewport(width, height))
}

// Theme makes the browser prefer "light" or "dark" pages.
func (tab *Tab) Theme(name string) {
	tab.t.Helper()
	tab.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return chromedp.Void{}, err
	})
}

// Screenshot writes a picture of the whole page as NAME.png to the folder that Pictures names, if it
// is set. The picture has the page's 128 most frequent colours, so that it stays small.
func (tab *Tab) Screenshot(name string) {
	tab.t.Helper()
	folder := os.Getenv(Pictures)
	if folder == "" {
		return
	}
	full, err := png.Decode(bytes.NewReader(run(tab, "take a screenshot", chromedp.FullScreenshot(100))))
	if err != nil {
		tab.t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err = encoder.Encode(&out, reduced(full)); err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), out.Bytes(), 0o644)
	}
	if err != nil {
		tab.t.Fatal(err)
	}
}

// reduced returns a picture with a palette of its most frequent colours.
func reduced(full image.Image) image.Image {
	const colours = 128
	count := map[color.RGBA]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), slices.Compare([]uint8{a.R, a.G, a.B}, []uint8{b.R, b.G, b.B}))
	})
	var palette color.Palette
	for _, c := range frequent[:min(colours, len(frequent))] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(full.Bounds(), palette)
	near := map[color.RGBA]uint8{}
	for c := range count {
		near[c] = uint8(palette.Index(c))
	}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			small.SetColorIndex(x, y, near[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)])
		}
	}
	return small
}
