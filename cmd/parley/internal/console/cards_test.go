package console_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"parley/adapters/browsertest"
	"parley/ingest/card"
)

// shownCard has a part of each kind.
var shownCard = card.View{Status: "warning", Parts: []card.Part{
	{Kind: card.KindTitle, Text: "The beds this week"}, {Kind: card.KindSubtitle, Text: "As of Friday"}, {Kind: card.KindText, Text: "Two beds need water.\nThe pump is slow."},
	{Kind: card.KindBadges, Items: []card.Item{{Text: "pump", Status: "warning"}, {Text: "valves", Status: "success"}, {Text: "sensor 4", Status: "error"}, {Text: "rain", Status: "info"}, {Text: "a review", Status: "pending"}}},
	{Kind: card.KindFields, Rows: [][]string{{"Last rain", "Monday"}, {"Tank", "310 litres"}}},
	{Kind: card.KindTable, Columns: []string{"Bed", "Plant", "Litres"}, Rows: [][]string{{"1", "beans", "12"}, {"2", "tomatoes", "30"}}},
	{Kind: card.KindList, Items: []card.Item{{Text: "water bed 2 in the evening"}, {Text: "look at the pump"}}},
	{Kind: card.KindTasks, Items: []card.Item{{Text: "read the sensors", Status: "done"}, {Text: "open the valve", Status: "running"}, {Text: "measure again", Status: "pending"}, {Text: "call the plumber", Status: "failed"}}},
	{Kind: card.KindProgress, Text: "Tank", Value: 310, Max: 500}, {Kind: card.KindImage, Text: "a plan of the beds", URL: "https://pictures.example/beds.png"},
	{Kind: card.KindDivider}, {Kind: card.KindCaption, Text: "from four sensors"},
	{Kind: card.KindButtons, Buttons: []card.Press{{ID: "parley-card-1-0", Label: "Open the valve", Action: card.Action{ID: "open", Approval: true}}, {Label: "The forecast", URL: "https://weather.example/week"}}},
}}

// answerCard is the uiSchema of an answer.
const answerCard = `{"uiSchema":{"version":"2.0","locale":"en","status":"success","root":{"type":"stack","children":[{"type":"text","role":"title","content":"Bed 2"},{"type":"badge","label":"watered","status":"success"},
	{"type":"table","columns":[],"rows":[[{"type":"text","content":"When"},{"type":"text","content":"Monday"}]]},{"type":"progress","label":"Soil","value":40,"max":100},{"type":"image","url":"https://pictures.example/2.png","alt":"bed 2"},
	{"type":"button","label":"Water it now","value":"water"}]}}}`

// hostileCard has a stranger's markup in each text.
func hostileCard() card.View {
	const bad = `<script>document.title = "broken"</script><img src=x onerror="document.title='broken'">`
	v := card.View{Status: bad}
	for _, p := range shownCard.Parts {
		p.Text, p.URL = bad, strings.Repeat("https://x.example/\"><script>", min(len(p.URL), 1))
		p.Items, p.Columns, p.Rows, p.Buttons = nil, nil, nil, nil
		switch p.Kind {
		case card.KindBadges, card.KindList, card.KindTasks:
			p.Items = []card.Item{{Text: bad, Status: bad}}
		case card.KindFields, card.KindTable:
			p.Rows = [][]string{{bad, bad}}
			if p.Kind == card.KindTable {
				p.Columns = []string{bad, bad}
			}
		case card.KindButtons:
			p.Buttons = []card.Press{{Label: bad, URL: "javascript:alert(1)"}}
		}
		v.Parts = append(v.Parts, p)
	}
	return v
}

// column returns a card as the store has it.
func column(v card.View) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a View of this file
	}
	return string(raw)
}

// TestCardsAreShown looks at the parts of cards. browsertest fails the test if a page loads something of a stranger.
func TestCardsAreShown(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	for path, parts := range map[string][]string{
		"/deliveries/2": {
			"The beds this week", "As of Friday", "Two beds need water.", "sensor 4 (error)", "Last rain", "310 litres", "tomatoes", "look at the pump", "running open the valve", "failed call the plumber",
			"Tank: ▰▰▰▰▰▰▱▱▱▱ 62% (310 of 500)", "a plan of the beds https://pictures.example/beds.png", "from four sensors", "Open the valve for approvers", "The forecast https://weather.example/week",
		},
		"/threads/" + shownThread: {"Bed 2", "watered (success)", "When", "Monday", "Soil: ▰▰▰▰▱▱▱▱▱▱ 40%", "bed 2: https://pictures.example/2.png", "Water it now"},
	} {
		tab.Goto(s.inside + path)
		shown := browsertest.Eval[[]string](tab, `Array.from(document.querySelectorAll("[data-test=card]")).map(e => e.textContent)`)
		if len(shown) != 1 {
			t.Errorf("%s has %d cards", path, len(shown))
			continue
		}
		for _, part := range parts {
			if !strings.Contains(shown[0], part) {
				t.Errorf("%s does not show %q: %s", path, part, shown[0])
			}
		}
		if n := tab.Count("[data-test=card] :is(a, button, img, form, input)"); n != 0 {
			t.Errorf("%s: the card has %d elements that do something", path, n)
		}
	}
}

// TestStrangersCardIsText looks at a card that tries to be something else.
func TestStrangersCardIsText(t *testing.T) {
	s := filled(t, time.Now())
	tab := s.enter(t)
	tab.Goto(s.inside + "/deliveries/3")
	shown := tab.Texts("[data-test=card]")
	if len(shown) != 1 || strings.Count(shown[0], `</script><img src=x onerror=`) < len(shownCard.Parts)-1 || !strings.Contains(shown[0], "javascript:alert(1)") {
		t.Errorf("the texts are %q", shown)
	}
	if n := tab.Count("[data-test=card] :is(script, img, a)"); n != 0 {
		t.Errorf("%d elements of strangers", n)
	}
	if title := browsertest.Eval[string](tab, "document.title"); title == "broken" {
		t.Error("a script ran")
	}
}

// TestCardsKeepTheirLimits covers who sees a card, and how much of it a list has.
func TestCardsKeepTheirLimits(t *testing.T) {
	s := filled(t, goldenTime)
	db := store{t, s.journal.Engine()}
	private := card.View{Parts: []card.Part{{Kind: card.KindTitle, Text: "a private card"}}}
	db.insert("deliveries", map[string]any{"id": 9, "thread": 3, "run": failedRun, "part": 1, "key": "private", "workspace": "acme", "channel": directID, "place": "", "payload": "", "state": "unknown", "attempts": 1, "due_at": goldenTime, "created_at": goldenTime, "error": "", "kind": "post", "card": column(private)})
	node, _ := json.Marshal(map[string]string{"type": "text", "content": strings.Repeat("wide", 250)})
	long := `{"uiSchema":{"version":"2.0","locale":"en","root":{"type":"stack","children":[` + strings.Repeat(string(node)+",", 9) + string(node) + `]}}}`
	db.said(saidBy{thread: 3, seq: 3, content: "gone", metadata: long, at: goldenTime, deleted: true})
	db.said(saidBy{thread: 3, seq: 4, content: "short", metadata: long, at: goldenTime})
	reader, viewer := s.browser(t, operatorToken+"-long-enough"), s.browser(t, viewerToken+"-long-enough")
	for _, look := range []struct {
		client client
		path   string
		cards  int
		wide   int // texts of the long card
	}{
		{reader, "/deliveries/9", 1, 0}, {viewer, "/deliveries/9", 0, 0}, {viewer, "/threads/" + privateID, 0, 0}, {reader, "/threads/" + privateID, 1, 1}, {reader, "/threads/" + privateID + "?whole=4", 1, 10},
		{reader, "/threads/" + privateID + "?whole=3", 0, 0},
	} {
		response, err := look.client.Do(s.get(look.path))
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		if response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if cards, wide := strings.Count(string(page), `data-test="card"`), strings.Count(string(page), strings.Repeat("wide", 250)); cards != look.cards || wide != look.wide {
			t.Errorf("%s: %d cards with %d texts, not %d with %d", look.path, cards, wide, look.cards, look.wide)
		}
		if linked := strings.Contains(string(page), `?whole=4"`); linked != (look.wide == 1) {
			t.Errorf("%s: a link to the whole message: %v", look.path, linked)
		}
	}
}
