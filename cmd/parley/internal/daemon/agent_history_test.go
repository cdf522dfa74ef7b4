package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

const historyPath = "/api/v1/agent/history"

func (h *harness) history(token, query string) answer {
	h.t.Helper()
	return h.request(http.MethodGet, historyPath+query, token, "", "")
}

// TestHistoryOfTheDocument replays the conversations of the documents on their days.
func TestHistoryOfTheDocument(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		same(t, h.history(ownToken, "").body, `{"scope":"history_day","threadId":null,"day":null,"hasMore":false,"messages":[]}`+"\n")
		asks := func(run, content, answer string) {
			h.started(ownToken, runInput(thread, run, content))
			h.answerNext(replyWith(answer))
			h.awaitReply(answer)
		}
		image := h.upload(ownToken, "img.png", "image/png", catPNG)
		asks("run-1", `[{"type":"text","text":"帮我看看这张图"},{"type":"binary","mimeType":"image/png","url":"`+image.URL+`"}]`, "A cat.")
		h.clock.advance(10*time.Hour + time.Second)
		asks("run-2", `"帮我创建一个日程"`, "好的,我来帮您创建日程。")

		got := h.history(ownToken, "?threadId="+strings.ToUpper(thread))
		reply := decode[struct{ Messages []struct{ ID string } }](t, got.body).Messages[1].ID
		same(t, got.body, `{"scope":"history_day","threadId":"`+thread+`","day":"2026-03-15","hasMore":true,"messages":[`+
			`{"id":"msg-001","seq":3,"role":"user","content":"帮我创建一个日程","url":null,"timestamp":"2026-03-15T10:00:00Z"},`+
			`{"id":"`+reply+`","seq":4,"role":"assistant","content":"好的,我来帮您创建日程。","uiSchema":null,"timestamp":"2026-03-15T10:00:00Z"}]}`+"\n")
		same(t, h.history(ownToken, "").body, got.body)
		same(t, h.history(ownToken, "?before=2026-03-16").body, got.body)

		before := h.history(ownToken, "?before=2026-03-15")
		first := decode[struct {
			Day      string
			HasMore  bool
			Messages []struct {
				URL   string
				Parts []map[string]string
			}
		}](t, before.body)
		same(t, first.Day, "2026-03-14")
		same(t, first.HasMore, false)
		link := first.Messages[0].URL
		same(t, first.Messages[0].Parts, []map[string]string{{"type": "text", "text": "帮我看看这张图"}, {"type": "binary", "mimeType": "image/png", "url": link}})
		if path, _, _ := strings.Cut(link, "?"); !strings.HasPrefix(image.URL, path) || link == image.URL {
			t.Errorf("the link %s is not new, or leads elsewhere than %s", link, image.URL)
		}
		if file := h.request(http.MethodGet, link, "", "", ""); file.body != catPNG {
			t.Errorf("%d %s", file.status, file.body)
		}
		same(t, h.history(ownToken, "?before=2026-03-14").body, `{"scope":"history_day","threadId":"`+thread+`","day":null,"hasMore":false,"messages":[]}`+"\n")
	}, func(p *plan) { p.clock = &clock{at: time.Date(2026, 3, 14, 23, 59, 59, 0, time.UTC)} })
}

// TestBlocksComeBackAsTheyWereSent posts a message of texts and files in turn, one file twice, and reads it from
// the history.
func TestBlocksComeBackAsTheyWereSent(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		h.echoes()
		cat, dog := h.upload(ownToken, "cat.png", "image/png", catPNG), h.upload(ownToken, "dog.png", "image/png", catPNG+"dog")
		image := func(url, more string) string {
			return `{"type":"binary","mimeType":"image/png","url":"` + url + `"` + more + `}`
		}
		text := func(words string) string { return `{"type":"text","text":` + quoted(words) + `}` }
		blocks := func(cat, dog string) string {
			return "[" + strings.Join([]string{image(cat, `,"id":"b1","filename":"tom.png"`), text("one\ntwo\n"), image(dog, ""), text(""), text("drei ü"), image(cat, `,"id":"b2"`)}, ",") + "]"
		}
		h.started(ownToken, runInput(thread, "run-1", blocks(cat.URL, dog.URL)))
		h.awaitReply("Noted.")
		h.started(ownToken, runInput(thread, "run-2", "["+text("only")+"]"))
		got := decode[struct {
			Messages []struct {
				Content, URL string
				Parts        []map[string]string
			}
		}](t, h.history(ownToken, "").body).Messages
		m := got[0]
		links := []string{m.Parts[0]["url"], m.Parts[2]["url"]}
		if links[0] == "" || links[0] != m.URL || !strings.HasPrefix(links[1], strings.TrimSuffix(dog.URL, dog.URL[strings.Index(dog.URL, "?"):])) {
			t.Errorf("the links are %q, the url %s", links, m.URL)
		}
		m.Parts[5]["url"] = links[0] // it has a token of its own
		same(t, m.Parts, decode[[]map[string]string](t, blocks(links[0], links[1])))
		same(t, m.Content, "one\ntwo\n\n\ndrei ü")
		same(t, got[2].Parts, []map[string]string{{"type": "text", "text": "only"}})
		if got := h.request(http.MethodGet, "/api/v1/chat/threads/"+thread+"/messages", ownToken, "", ""); got.status != 200 || strings.Contains(got.body, "content_blocks") {
			t.Errorf("a thread's messages: %d %s", got.status, got.body)
		}
	})
}

// TestHistoryRefused asks for histories that the caller may not read, or that cannot be.
func TestHistoryRefused(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		h.echoes()
		h.started(ownToken, runInput(thread, "run-1", `"hi"`))
		for name, c := range map[string]struct {
			token, query string
			status       int
		}{
			"another caller":       {anyToken, "?threadId=" + thread, 404},
			"another workspace":    {theirToken, "?threadId=" + thread, 404},
			"an unknown thread":    {ownToken, "?threadId=550e8400-e29b-41d4-a716-446655440000", 404},
			"no UUID":              {ownToken, "?threadId=7", 400},
			"no day":               {ownToken, "?before=2026-02-30", 400},
			"a time":               {ownToken, "?before=2026-02-03T00:00:00Z", 400},
			"the first day of all": {ownToken, "?before=0001-01-01", 400},
			"nobody":               {"", "", 401},
			"the caller's own":     {ownToken, "?threadId=" + thread, 200},
			"a caller with none":   {anyToken, "", 200},
		} {
			if got := h.history(c.token, c.query); got.status != c.status || strings.Contains(got.body, `"content":"hi"`) && c.token != ownToken {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	})
}
