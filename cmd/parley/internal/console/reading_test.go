package console_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/adapters/browsertest"
)

// TestStrangersTextIsText looks at messages that try to be something else. browsertest fails the test if one breaks the
// policy of the page.
func TestStrangersTextIsText(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Goto(s.inside + "/threads/" + hostileID)
	texts := tab.Texts("[data-test=typed] .text")
	if len(texts) != len(hostile) {
		t.Fatalf("%d texts", len(texts))
	}
	for i, want := range hostile {
		want = strings.ReplaceAll(want, "\x00", "\ufffd")
		if len(want) > 1200 {
			want = want[:1200]
		}
		if texts[i] != want {
			t.Errorf("text %d is %q", i, texts[i])
		}
	}
	if n := tab.Count("main :is(script, img, svg, b, [onclick])"); n != 0 {
		t.Errorf("%d elements of strangers", n)
	}
	if title := browsertest.Eval[string](tab, "document.title"); title == "broken" {
		t.Error("a script ran")
	}
	if seen := browsertest.Eval[bool](tab, `Array.from(document.querySelectorAll("[data-test=typed] > p:first-child")).every(e => /^\d+ · .* · .* ago/.test(e.innerText))`); !seen {
		t.Error("a name hides the words beside it")
	}
	tab.Goto(s.inside + "/threads/" + hostileID + "?whole=4")
	if got := tab.Texts("[data-test=typed] .text"); len(got) != 1 || got[0] != hostile[3] {
		t.Error("the whole text is another one")
	}
	if n := browsertest.Eval[int](tab, "document.documentElement.scrollWidth - innerWidth"); n > 0 {
		t.Errorf("a long word makes the page %d pixels too wide", n)
	}
}

// TestKeys moves through a list, opens a row, and goes to the search.
func TestKeys(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Goto(s.inside + "/threads")
	second := browsertest.Eval[string](tab, `document.querySelectorAll("[data-row] a.open")[1].href`)
	for _, key := range []string{"j", "j", "j", "k"} {
		tab.Press(key)
	}
	if at := browsertest.Eval[string](tab, "document.activeElement.href"); at != second {
		t.Errorf("the focus is at %s, not at %s", at, second)
	}
	tab.Press(kb.Enter)
	tab.Wait(`location.href === "` + second + `"`)
	tab.Press("/")
	tab.Wait(`document.activeElement.id === "find"`)
	browsertest.Eval[any](tab, `void (document.activeElement.value = "")`) // the protocol sends the character beside the key
	tab.Role("searchbox", "Words, a permalink, a message, a thread or a run").Type(roomID + "/" + passiveTS)
	tab.Press(kb.Enter)
	tab.Wait(`document.querySelector("[data-test=why-reason]")?.innerText.includes("no-mention")`)
	if key := tab.Find("[data-test=why-key]").Text(); key != "policy.require_mention: true acme-workspace.yaml:6" {
		t.Errorf("the key is %q", key)
	}
}

// nameless are the elements that a screen reader cannot name, and the landmarks that are missing or doubled.
const nameless = `[...Array.from(document.querySelectorAll("input:not([type=hidden]), select, textarea")).filter(e => !e.labels?.length).map(e => e.outerHTML),
	...Array.from(document.querySelectorAll("a, button, summary")).filter(e => !e.textContent.trim()).map(e => e.outerHTML),
	...Array.from(document.querySelectorAll("[role=img]")).filter(e => !e.getAttribute("aria-label")).map(e => e.outerHTML),
	...["h1", "main", "nav[aria-label]", "[role=search]", "body > header"].filter(e => document.querySelectorAll(e).length !== 1),
	...[document.documentElement.lang === "en" ? [] : ["lang"]].flat()]`

// TestEverythingHasAName looks at each page as assistive technology does.
func TestEverythingHasAName(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	for name, path := range pagesOf {
		tab.Goto(s.inside + path)
		if list := browsertest.Eval[[]string](tab, nameless); len(list) > 0 {
			t.Errorf("%s: %q", name, list)
		}
	}
	tab.Goto(s.inside + "/approvals")
	for _, landmark := range []struct{ role, name string }{{"navigation", "Pages"}, {"main", ""}, {"heading", "Approvals"}, {"link", "Skip to the content"}, {"button", "Log out"}} {
		tab.Role(landmark.role, landmark.name)
	}
	tab.Press(kb.Tab)
	if first := browsertest.Eval[string](tab, "document.activeElement.className"); first != "skip" {
		t.Errorf("the first stop is %q", first)
	}
}

// TestReadingNeedsNoScript switches the scripts off.
func TestReadingNeedsNoScript(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Goto("about:blank") // the script of a page that is open would be cut off
	tab.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	for path, want := range map[string]string{
		"/": "3 dead letters", "/threads/" + shownThread: "when did we water them last?", "/runs/" + doneRun: "loading the model", "/log": "agent is failing", "/workspaces/acme": "policy.allow_channels", "/dead/1": "event_callback",
	} {
		tab.Goto(s.inside + path)
		if text := tab.Find("main").Text(); !strings.Contains(text, want) || path != "/workspaces/acme" && path != "/dead/1" && !strings.Contains(text, "UTC") {
			t.Errorf("%s: %s", path, text)
		}
	}
	tab.Goto(s.inside + "/approvals")
	tab.Find("details.act summary").Click()
	tab.Wait(`document.querySelector("[data-test=approve]").getBoundingClientRect().height > 0`)
}
