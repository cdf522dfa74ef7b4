package console_test

import (
	"fmt"
	"testing"
	"time"

	"parley/adapters/browsertest"
	"parley/ingest/journal/storage"
)

// picture is a page of the documentation's pictures. do is a step before the picture; empty for none.
type picture struct{ name, path, do string }

var pictures = []picture{
	{"overview", "/", ""}, {"threads", "/threads", ""}, {"thread", "/threads/" + shownThread, ""}, {"why", "/why?ref=" + roomID + "/" + passiveTS, ""}, {"runs", "/runs", ""},
	{"run", "/runs/" + doneRun, ""}, {"deliveries", "/deliveries", ""}, {"delivery", "/deliveries/2", `document.querySelector("details.act").open = true`}, {"dead", "/dead", ""},
	{"letter", "/dead/1", ""}, {"workspace", "/workspaces/acme", ""}, {"agents", "/agents", ""}, {"approvals", "/approvals", `document.querySelector("details.act").open = true`},
	{"try", "/try", `document.querySelector("textarea").value = "when did we water them last?"; document.querySelector("[data-test=try-send]").click()`},
	{"schedules", "/schedules", ""}, {"search", "/search?q=tomatoes", ""}, {"log", "/log", ""}, {"audit", "/audit", ""}, {"use", "/use?by=person&since=30d", ""},
}

// tooWide are the elements that a reader would have to scroll to the side for, or whose text leaves its box.
const tooWide = `Array.from(document.querySelectorAll("body *"))
	.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .visually-hidden, .skip"))
	.map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40))`

// pale are the texts whose contrast with their ground is less than 4.5.
const pale = `(() => {
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return parse(getComputedStyle(document.documentElement).backgroundColor); };
	return Array.from(document.querySelectorAll("body *")).filter(e => Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim()) || e.matches("input, select, textarea")).map(e => {
		const [a, b] = [light(parse(e.matches("text") ? getComputedStyle(e).fill : getComputedStyle(e).color)), light(ground(e))];
		return [e, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
	}).filter(([, contrast]) => contrast < 4.5).map(([e, contrast]) => contrast.toFixed(2) + " " + e.tagName + "." + e.className);
})()`

//go:generate sh -c "mkdir -p ../../../../.github/pictures/console && PARLEY_TEST_SCREENSHOTS=$(realpath ../../../../.github/pictures/console) go test -count=1 -run ^TestPictures$ ."

// TestPictures opens each page, light and dark, wide and narrow: nothing needs a scroll to the side. With a folder for
// screenshots, it makes the pictures of the documentation.
func TestPictures(t *testing.T) {
	base := time.Now()
	s := filled(t, base)
	s.calm(t)
	door := browsertest.Open(t)
	door.Size(1280, 800)
	door.Goto(s.address + "/login")
	door.Screenshot("login-light-1280")
	tab := s.enter(t)
	for _, look := range []string{"light", "dark"} {
		tab.Theme(look)
		for _, width := range []int64{1280, 390} {
			tab.Size(width, 800)
			for _, p := range pictures {
				tab.Goto(s.inside + p.path)
				if p.do != "" {
					browsertest.Eval[any](tab, "void ("+"(() => {"+p.do+"})()"+")")
				}
				if p.name == "try" {
					tab.Wait(`document.querySelector("[data-test=try-answer]")`)
				}
				name := fmt.Sprintf("%s-%s-%d", p.name, look, width)
				if wide := browsertest.Eval[[]string](tab, tooWide); len(wide) > 0 {
					t.Errorf("%s is too wide: %q", name, wide)
				}
				if scroll := browsertest.Eval[[]string](tab, `Array.from(document.querySelectorAll(".scroll")).filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent.slice(0, 60))`); len(scroll) > 0 {
					t.Errorf("%s scrolls to the side: %q", name, scroll)
				}
				if n := browsertest.Eval[int](tab, "document.documentElement.scrollWidth"); n > int(width) {
					t.Errorf("%s has %d pixels", name, n)
				}
				if list := browsertest.Eval[[]string](tab, pale); len(list) > 0 {
					t.Errorf("%s is pale: %q", name, list)
				}
				tab.Screenshot(name)
			}
		}
	}
}

// calm replaces the texts that look like markup, which the other tests need, by usual ones.
func (s *site) calm(t *testing.T) {
	t.Helper()
	err := s.journal.Engine().Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		for _, statement := range []string{
			"UPDATE messages SET content = 'who has the key of the shed?' WHERE thread = 2 AND seq = 1",
			"UPDATE schedule_ticks SET error = 'channel_not_found: the channel is gone' WHERE state = 'failed'",
			"UPDATE operator_log SET note = 'a test of mine' WHERE note <> ''",
			"UPDATE envelopes SET body = CAST(REPLACE(CAST(body AS TEXT), '<script>alert(1)</script>', 'bed 2') AS BLOB)",
			"UPDATE deliveries SET payload = REPLACE(REPLACE(payload, '<b>', ''), '</b>', '') WHERE payload <> ''",
		} {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
