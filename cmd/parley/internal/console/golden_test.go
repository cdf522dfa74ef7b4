package console_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"parley/config"
	"parley/ingest/journal/storage"
)

var update = flag.Bool("update", false, "write the golden pages")

// goldenTime is the present of the golden pages.
var goldenTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// filled opens a site with rows on it.
func filled(t testing.TB, base time.Time) *site {
	s := newSiteAt(t, configured(t), func() time.Time { return base })
	s.fill(t, base)
	return s
}

// pagesOf are the pages of the filled site, by the name of their golden file.
var pagesOf = map[string]string{
	"overview": "/", "threads": "/threads", "thread": "/threads/" + shownThread, "hostile": "/threads/" + hostileID, "private": "/threads/" + privateID,
	"why": "/why?ref=" + roomID + "/" + passiveTS, "why-none": "/why?ref=1.1", "why-answer": "/why?ref=" + roomID + "/1767322863.000300", "why-thread": "/why?ref=" + shownThread, "why-form": "/why", "runs": "/runs", "runs-failed": "/runs?failed=true", "run": "/runs/" + doneRun, "run-failed": "/runs/" + failedRun,
	"deliveries": "/deliveries", "delivery-unknown": "/deliveries/2", "delivery-failed": "/deliveries/3", "dead": "/dead", "letter": "/dead/1", "workspace": "/workspaces/acme",
	"workspace-refused": "/workspaces/phone", "workspace-behind": "/workspaces/guild", "agents": "/agents", "approvals": "/approvals", "schedules": "/schedules", "search": "/search?q=beans+up", "search-none": "/search?q=nothing+of+it", "search-private": "/search?q=private", "search-form": "/search", "threads-filtered": "/threads?state=failed", "runs-filtered": "/runs?agent=coder", "try": "/try", "log": "/log", "audit": "/audit", "people": "/people", "use": "/use", "use-person": "/use?by=person&since=30d",
}

// listsOf are the pages that an empty site also has.
var listsOf = []string{"overview", "threads", "runs", "deliveries", "dead", "agents", "approvals", "schedules", "people", "use", "log", "audit"}

// ofOperators are the pages that differ for a viewer.
var ofOperators = []string{"threads", "private", "delivery-unknown", "letter", "approvals", "workspace", "try", "run-failed", "schedules", "search-private", "people", "use"}

// layout is the name of the golden file that has what is around the main part of each page.
const layout = "layout"

// cutting finds the main part of a page.
var cutting = regexp.MustCompile(`(?s)<main .*</main>`)

// unstable matches what differs from run to run, or with each change of the store: its size and schema, and the place of the session.
var unstable = regexp.MustCompile(`schema [0-9]+|[0-9.]+ [kM]B|/at/[A-Z2-7]+/`)

func (s *site) golden(t *testing.T, client client, path, name string) {
	t.Helper()
	response, err := client.Do(s.get(path))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > 60<<10 {
		t.Errorf("%s has %d bytes", name, len(page))
	}
	wellFormed(t, name, page)
	got := unstable.ReplaceAllStringFunc(string(page), func(found string) string {
		switch {
		case strings.HasPrefix(found, "/at/"):
			return "/at/PLACE/"
		case strings.HasPrefix(found, "schema"):
			return "schema SCHEMA"
		}
		return "SIZE"
	})
	main := cutting.FindString(got)
	if main == "" {
		t.Fatalf("%s has no main part", name)
	}
	if name == "overview" {
		equal(t, layout, strings.Replace(got, main, "<main></main>\n", 1))
	}
	equal(t, name, main+"\n")
}

// equal compares a text with its golden file.
func equal(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got); with -update the test writes it:\n%s", name, diff)
	}
}

// elements are those that the templates have. An element or an attribute of a stranger's text would be another one.
var elements = strings.Fields("html head base meta title link script body a header nav ul li form label input button span main h1 h2 h3 p div section article table thead tbody tr th td time strong code pre bdi select option textarea details summary ol dl dt dd svg path line text rect small")

// wellFormed checks that all markup of a page is of the templates: the only script is ours, no element handles events, and none has a style.
func wellFormed(t *testing.T, name string, page []byte) {
	t.Helper()
	known := map[string]bool{}
	for _, e := range elements {
		known[e] = true
	}
	root, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !known[n.Data] {
			t.Errorf("%s has an element %s", name, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || n.Data == "script" && a.Key == "src" && a.Val != "/static/console.js" {
				t.Errorf("%s has %s %s=%q", name, n.Data, a.Key, a.Val)
			}
		}
	}
}

// TestGoldenPages compares each page in each state with its file.
func TestGoldenPages(t *testing.T) {
	full := filled(t, goldenTime)
	operator, viewer := full.browser(t, operatorToken+"-long-enough"), full.browser(t, viewerToken+"-long-enough")
	for name, path := range pagesOf {
		full.golden(t, operator, path, name)
	}
	for _, name := range ofOperators {
		full.golden(t, viewer, pagesOf[name], "viewer-"+name)
	}
	empty := newSiteAt(t, config.Default(), func() time.Time { return goldenTime })
	empty.config.Operators = full.config.Operators
	for _, name := range listsOf {
		empty.golden(t, empty.browser(t, operatorToken+"-long-enough"), pagesOf[name], "empty-"+name)
	}
	full.service.Live.Store = storeState{errors.Join(storage.ErrUnavailable, errors.New("disk full"))}
	full.golden(t, operator, "/", "degraded-overview")
	full.golden(t, operator, "/threads/none", "degraded-thread")
	full.golden(t, operator, "/no-such-page", "nowhere")
}

// FuzzTexts stores a text as a message, and reads it on the page of its thread.
func FuzzTexts(f *testing.F) {
	for _, text := range hostile {
		f.Add(strings.ReplaceAll(text, "\x00", "\ufffd"))
	}
	s := newSite(f)
	s.service.Live = filledLive(goldenTime)
	client := s.browser(f, operatorToken)
	store{f, s.journal.Engine()}.insert("channels", map[string]any{"workspace": "local", "id": "c", "type": "room"})
	n := 0
	f.Fuzz(func(t *testing.T, text string) {
		n++
		db := store{t, s.journal.Engine()}
		id := fmt.Sprintf("0190a1b2-0000-7000-8000-%012d", n)
		db.insert("threads", map[string]any{"id": n, "key": "web:local:" + id, "uuid": id, "workspace": "local", "platform": "web", "channel": "c", "last_at": n, "next_seq": 2})
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
		db.insert("messages", map[string]any{"id": "m" + id, "thread": n, "seq": 1, "workspace": "local", "external_id": id, "sender_id": "web:a", "author": "human", "trigger": "none", "content": text,
			"metadata": []byte(`{}`), "version": 1, "origin": "live", "sent_at": n, "created_at": n})
		response, err := client.Do(s.get("/threads/" + id + "?whole=1"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%d %v", response.StatusCode, err)
		}
		wellFormed(t, "the page", page)
		shown := typedOn(t, page)
		if want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text); shown != want {
			t.Errorf("the page shows %q, typed was %q", shown, want)
		}
	})
}

// typedOn returns the text of the first message of a page, as a browser shows it.
func typedOn(t *testing.T, page []byte) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "class" && a.Val == "text" {
				var text strings.Builder
				for inner := range n.Descendants() {
					if inner.Type == html.TextNode {
						text.WriteString(inner.Data)
					}
				}
				return text.String()
			}
		}
	}
	t.Fatal("the page shows no text")
	return ""
}
