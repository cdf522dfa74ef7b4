package console_test

import (
	"strings"
	"testing"
	"time"

	"parley/adapters/browsertest"
)

// TestUse chooses what the page about use has rows for. The bar of a row is as long as its part of the largest one.
func TestUse(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Goto(s.inside + "/agents")
	tab.Role("link", "Use").Click()
	tab.Wait(`document.title.startsWith("Use")`)
	if got := tab.Texts("#use td[data-name=Agent]"); len(got) != 2 || got[0] != "assistant" || got[1] != "coder" {
		t.Errorf("the agents are %q", got)
	}
	if got := tab.Texts(`#use tr:nth-child(2) td[data-name="Tokens in"]`); len(got) != 1 || got[0] != "–" {
		t.Errorf("the tokens of an agent that reports none are %q", got)
	}
	browsertest.Eval[any](tab, `void (document.querySelector("[name=by]").value = "person", document.querySelector("[name=since]").value = "30d")`)
	tab.Role("button", "Show").Click()
	tab.Wait(`location.search.includes("by=person")`)
	tab.Wait(`document.querySelectorAll("[data-test=used] rect").length === 30`)
	if got := tab.Texts("#use td[data-name=Person]"); len(got) != 4 || !strings.HasPrefix(got[0], "Mara") || !strings.Contains(strings.Join(got, " "), "nobody") {
		t.Errorf("the people are %q", got)
	}
	wide := browsertest.Eval[[]float64](tab, `Array.from(document.querySelectorAll("#use rect")).map(e => e.getBoundingClientRect().width / e.ownerSVGElement.getBoundingClientRect().width)`)
	if len(wide) != 4 || wide[0] < 0.99 || wide[1] >= wide[0] {
		t.Errorf("the bars are %v", wide)
	}
	high := browsertest.Eval[[]float64](tab, `Array.from(document.querySelectorAll("[data-test=used] rect")).map(e => e.getBoundingClientRect().height / e.ownerSVGElement.getBoundingClientRect().height)`)
	var highest float64
	for _, h := range high {
		highest = max(highest, h)
	}
	if highest < 0.9 || highest > 1.01 {
		t.Errorf("the highest bar has %v of the picture", highest)
	}
	tab.Goto(s.inside + "/use?since=2001-01-01")
	const bars = `Array.from(document.querySelectorAll("[data-test=used] rect")).filter(e => e.getBoundingClientRect().height > 0).length > 0 && document.querySelectorAll("[data-test=used] rect").length`
	if n := browsertest.Eval[any](tab, bars); n != 400.0 {
		t.Errorf("since years ago: %v bars up to today", n)
	}
}
