// Package cardtest has cards for the tests of platforms.
package cardtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"parley/ingest/card"
)

// ImageHost is the host of the images that the cards may show.
const ImageHost = "img.example"

// nodes are the roots of cards: one for each node, and for each trap of it.
var nodes = map[string]string{
	"text": `"status":"info","root":{"type":"stack","children":[{"type":"text","role":"title","content":"Room *7* <!channel>"},{"type":"text","role":"subtitle","content":"Second floor"},` +
		`{"type":"text","content":"Ask @everyone or <@U06STGBF4Q0>, [the bank](https://evil.example) & go to https://rooms.example/7_a."},{"type":"text","role":"caption","content":"As of today"}]}`,
	"badge":    `"status":"warning","root":{"type":"stack","children":[{"type":"badge","label":"SUCCESS","status":"success"},{"type":"badge","label":"a_b","status":"warning"},{"type":"badge","label":"plain"}]}`,
	"button":   `"root":{"type":"stack","children":[{"type":"button","label":"Book","action":{"id":"book","value":{"room":7}}},{"type":"button","label":"Yes","value":"yes"},{"type":"button","label":"Pay","action":"pay","approval":true},{"type":"button","label":"bank.example","url":"https://evil.example/x"}]}`,
	"image":    `"root":{"type":"stack","children":[{"type":"image","url":"https://img.example/a.png","alt":"The room"},{"type":"image","url":"https://evil.example/b.png","alt":"A pixel"},{"type":"image","url":"https://evil.example/c.png"}]}`,
	"list":     `"status":"pending","root":{"type":"list","items":["one",{"type":"text","content":"two *stars*"},{"type":"stack","children":["three",{"type":"badge","label":"new","status":"info"}]},{"type":"button","label":"Four","action":"four"}]}`,
	"table":    `"status":"success","root":{"type":"stack","children":[{"type":"table","columns":["Room","Seats"],"rows":[["7",12],["<8>",""],["9"]]},{"type":"table","rows":[["Seats","12"],["Floor <2>","second"]]}]}`,
	"progress": `"root":{"type":"stack","children":[{"type":"progress","value":40},{"type":"progress","value":3,"max":8,"label":"Rows"}]}`,
	"divider":  `"root":{"type":"stack","children":["above",{"type":"divider"},"below"]}`,
	"unknown":  `"status":"error","root":{"type":"carousel","content":"Rooms","children":[{"type":"text","content":"inside"},{"type":"badge","label":"x"}]}`,
}

// Cards returns a card for each node, by the node's name. "tasks" is the one kind of part that no node has.
func Cards(t testing.TB) map[string]card.View {
	t.Helper()
	views := map[string]card.View{"tasks": {Status: "info", Parts: []card.Part{{Kind: card.KindTitle, Text: "The *plan* (1 of 7 done)"}, {Kind: card.KindTasks, Items: []card.Item{
		{Text: "Look", Status: "done"}, {Text: "Book *it* <!channel>", Status: "running"}, {Text: "Tell", Status: "pending"}, {Text: "Pay", Status: "failed"},
		{Text: "Ask", Status: "skipped"}, {Text: "Wait", Status: "stopped", Words: "out of time"}, {Text: "Go", Status: "unfinished"},
	}}, {Kind: card.KindTasks, Items: []card.Item{{Text: "research", Status: "running", Words: "executing search"}}}, {Kind: card.KindCaption, Text: "The run failed."}}}}
	for name, node := range nodes {
		views[name] = View(t, `{"version":"2.0",`+node+`}`)
	}
	return views
}

// View reads a uiSchema. Its buttons are named parley-card-0 and so on.
func View(t testing.TB, schema string) card.View {
	t.Helper()
	c, err := card.Read(json.RawMessage(schema), card.SchemaKey)
	if err != nil {
		t.Fatal(err)
	}
	return card.ViewOf(c, []string{ImageHost}, func(n int) string { return fmt.Sprint("parley-card-", n) })
}

// Big returns a card that no post of any platform holds: long texts, lists, tables and labels, many fields and buttons. Each of
// its words is another one; Words returns them.
func Big() card.View {
	n := 0
	word := func() string {
		n++
		return fmt.Sprintf("w%dw", n)
	}
	words := func(count int) string {
		list := make([]string, count)
		for i := range list {
			list[i] = word()
		}
		return strings.Join(list, " ")
	}
	v := card.View{Status: "info", Parts: []card.Part{{Kind: card.KindTitle, Text: words(60)}, {Kind: card.KindText, Text: words(2000)}}}
	fields, badges, list, tasks, wide, long := card.Part{Kind: card.KindFields}, card.Part{Kind: card.KindBadges}, card.Part{Kind: card.KindList}, card.Part{Kind: card.KindTasks},
		card.Part{Kind: card.KindTable, Columns: strings.Fields(words(30))}, card.Part{Kind: card.KindTable, Columns: strings.Fields(words(3))}
	buttons := card.Part{Kind: card.KindButtons}
	for range 60 {
		fields.Rows = append(fields.Rows, []string{words(2), words(3)})
		badges.Items = append(badges.Items, card.Item{Text: words(2), Status: "success"})
		list.Items = append(list.Items, card.Item{Text: words(20)})
		tasks.Items = append(tasks.Items, card.Item{Text: words(3), Status: "done"})
		buttons.Buttons = append(buttons.Buttons, card.Press{ID: fmt.Sprint("parley-card-", len(buttons.Buttons)), Label: word()})
	}
	for range 250 {
		long.Rows = append(long.Rows, strings.Fields(words(3)))
	}
	fields.Rows = append(fields.Rows, []string{words(100), words(1000)})
	wide.Rows = append(wide.Rows, strings.Fields(words(30)))
	buttons.Buttons = append(buttons.Buttons, card.Press{ID: "parley-card-long", Label: words(30)}, card.Press{Label: word(), URL: "https://x.example/" + strings.Repeat("long", 900) + word()})
	v.Parts = append(v.Parts, fields, badges, list, tasks, wide, long, buttons,
		card.Part{Kind: card.KindImage, Text: words(1000), URL: "https://img.example/a.png"}, card.Part{Kind: card.KindProgress, Text: words(900), Value: 1, Max: 2})
	for range 70 {
		v.Parts = append(v.Parts, card.Part{Kind: card.KindSubtitle, Text: word()}, card.Part{Kind: card.KindDivider})
	}
	return v
}

var word = regexp.MustCompile(`w\d+w`)

// Words returns the words of Big.
func Words(v card.View) []string { return word.FindAllString(v.Plain(), -1) }
