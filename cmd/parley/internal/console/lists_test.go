package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"parley/adapters/browsertest"
	"parley/cmd/parley/internal/operator"
)

// linksOf returns the addresses of the links with a text.
func linksOf(t *testing.T, page, text string) (found []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "a" && n.FirstChild != nil && n.FirstChild.Data == text {
			for _, a := range n.Attr {
				if a.Key == "href" {
					found = append(found, strings.TrimPrefix(a.Val, "."))
				}
			}
		}
	}
	return found
}

// TestAListHasNeighbours goes to the last page of a list, with a filter, and back to the newest one.
func TestAListHasNeighbours(t *testing.T) {
	s := filled(t, goldenTime)
	db := store{t, s.journal.Engine()}
	for i := range 120 {
		db.insert("operator_log", map[string]any{"at": goldenTime, "who": "olga", "what": "dead.discard", "subject": "", "note": "", "key": "", "result": `{}`, "id": 1000 + i})
	}
	client := s.browser(t, operatorToken+"-long-enough")
	at := "/audit?x=y"
	var trail []string
	read := func() string {
		t.Helper()
		path, query, _ := strings.Cut(at, "?")
		r := s.get(path)
		r.URL.RawQuery = query
		status, page := answer(t, client, r)
		if status != http.StatusOK {
			t.Fatalf("%s: %d", at, status)
		}
		return page
	}
	for {
		trail = append(trail, at)
		older := linksOf(t, read(), "Older →")
		if len(older) == 0 {
			break
		}
		at = older[0]
	}
	if len(trail) != 3 {
		t.Fatalf("the pages are %q", trail)
	}
	if newest := linksOf(t, read(), "Newest"); len(newest) != 1 || newest[0] != trail[0] {
		t.Errorf("the newest page is %q", newest)
	}
	for i := len(trail) - 2; i >= 0; i-- {
		newer := linksOf(t, read(), "← Newer")
		if len(newer) != 1 {
			t.Fatalf("%s: the newer pages are %q", at, newer)
		}
		if got, want := newer[0], trail[i]; got != want {
			t.Errorf("the page before %s is %s, not %s", at, got, want)
		}
		at = newer[0]
	}
	if page := read(); len(linksOf(t, page, "← Newer"))+len(linksOf(t, page, "Newest")) > 0 {
		t.Error("the newest page has newer ones")
	}
}

// TestASearchLeadsToWhatAnIdNames goes from the ids and links of things to their pages.
func TestASearchLeadsToWhatAnIdNames(t *testing.T) {
	s := filled(t, goldenTime)
	client := s.browser(t, operatorToken+"-long-enough")
	for ref, want := range map[string]string{
		shownThread: "/threads/" + shownThread, "slack:acme:" + directID: "/threads/" + privateID, doneRun: "/why", roomID + "/" + passiveTS: "/why",
		"https://acme.slack.com/archives/C0GARDEN/p1111111111000100": "/why", "tomatoes": "/search", "bed 4": "/search", "nothing4": "/search",
	} {
		r := s.get("/search")
		r.URL.RawQuery = url.Values{"q": {ref}}.Encode()
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := strings.TrimPrefix(response.Request.URL.Path, client.base); response.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s leads to %s (%d), not to %s", ref, got, response.StatusCode, want)
		}
	}
}

// TestAWrongAddressHasTheMenu, and says what is not there and where to look.
func TestAWrongAddressHasTheMenu(t *testing.T) {
	s := filled(t, goldenTime)
	client := s.browser(t, operatorToken+"-long-enough")
	for path, want := range map[string]string{"/no-such-page": "no page at this address", "/threads/none": "no thread with this UUID", "/runs/none": "no run with this id", "/dead/99": "not have this row"} {
		status, page := answer(t, client, s.get(path))
		if status != http.StatusNotFound || !strings.Contains(page, want) || !strings.Contains(page, `aria-label="Pages"`) {
			t.Errorf("%s: %d %s", path, status, page)
		}
		if list := linksOf(t, page, "The list"); len(list) != strings.Count(path[1:], "/") {
			t.Errorf("%s leads to %q", path, list)
		}
	}
}

// TestTheLoginOffersWhatWorks: a token only if operators have some.
func TestTheLoginOffersWhatWorks(t *testing.T) {
	s := newSite(t)
	if _, page := answer(t, stranger, s.get("/login")); !strings.Contains(page, `name="token"`) || !strings.Contains(page, "parley console --print") {
		t.Errorf("with operators: %s", page)
	}
	s.config.Operators = nil
	if _, page := answer(t, stranger, s.get("/login")); strings.Contains(page, `name="token"`) || !strings.Contains(page, `name="ticket"`) {
		t.Errorf("without operators: %s", page)
	}
}

// TestATicketLogsInAnOpenTab pastes the address of a ticket into a tab that shows the login.
func TestATicketLogsInAnOpenTab(t *testing.T) {
	s := newSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.address + "/login")
	tab.Wait(`document.querySelector("form.login")`)
	browsertest.Eval[any](tab, `void (location.hash = "`+s.Ticket(operator.OnSocket("mara"))+`")`)
	tab.Wait(`document.title.startsWith("Overview")`)
}

// TestIdsAreCopied copies an id as a whole, also where a page has no clipboard.
func TestIdsAreCopied(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Goto(s.inside + "/runs/" + doneRun)
	copied := func(what string) {
		t.Helper()
		browsertest.Eval[any](tab, `void document.addEventListener("copy", () => { window.copied = document.activeElement.value; }, { once: true })`)
		tab.Find(`#run [data-copy="` + doneRun + `"]`).Click()
		tab.Wait(`window.copied === "` + doneRun + `"`)
		if told := tab.Find(".lag").Text(); told != "Copied." {
			t.Errorf("%s: the page says %q", what, told)
		}
		browsertest.Eval[any](tab, `void (window.copied = "")`)
	}
	browsertest.Eval[any](tab, `void Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined })`)
	copied("without a clipboard")
	browsertest.Eval[any](tab, `void Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } })`)
	copied("with a clipboard")
}

// TestTheMenuFits: one row on a wide screen with its counts, and a short one on a phone, which opens all pages.
func TestTheMenuFits(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Size(1280, 800)
	if high := browsertest.Eval[float64](tab, `document.querySelector("body > header").getBoundingClientRect().height`); high > 60 {
		t.Errorf("the header is %v pixels high", high)
	}
	if got := tab.Find(`.menu a[href="./approvals"]`).Text(); got != "Approvals1" {
		t.Errorf("the entry is %q", got)
	}
	tab.Size(390, 800)
	if high := browsertest.Eval[float64](tab, `document.querySelector("body > header").getBoundingClientRect().height`); high > 100 {
		t.Errorf("on a phone, the header is %v pixels high", high)
	}
	tab.Find(".short summary").Click()
	tab.Find(`.short a[href="./dead"]`).Click()
	tab.Wait(`document.title.startsWith("Dead letters")`)
}
