package send_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/internal/testapp"
	"parley/adapters/slack/slacktest"
	"parley/ingest/card"
	"parley/ingest/card/cardtest"
)

// sendCard sends a card as deliver does, and returns what readers have of it: the text and the blocks of each post.
func sendCard(t *testing.T, server *slacktest.Server, adapter *slack.Adapter, v card.View) []slacktest.Post {
	t.Helper()
	before := len(server.Posts())
	for n, one := range adapter.FormatCard(v) {
		post := testapp.Post("k" + string(rune('a'+n)))
		post.Text, post.Card = one.Text, &one.Card
		if _, err := adapter.Send(t.Context(), post); err != nil {
			t.Fatalf("post %d: %v", n, err)
		}
	}
	return server.Posts()[before:]
}

// TestCards compares the blocks of each node with its golden file. The fake refuses what Slack refuses.
func TestCards(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	for name, v := range cardtest.Cards(t) {
		var got bytes.Buffer
		for _, p := range sendCard(t, server, adapter, v) {
			_ = json.Indent(&got, p.Blocks, "", "  ")
			got.WriteString("\n" + p.Text + "\n")
		}
		file := filepath.Join("testdata", "cards", name+".txt")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), got.String()); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// TestBigCard sends a card that is too large in every way: nothing of it is lost.
func TestBigCard(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	var all strings.Builder
	for _, p := range sendCard(t, server, adapter, cardtest.Big()) {
		all.Write(p.Blocks)
	}
	for _, w := range cardtest.Words(cardtest.Big()) {
		if !strings.Contains(all.String(), w) {
			t.Errorf("%s is lost", w)
		}
	}
}

// TestRefusedBlocks sends a table to a workspace that refuses table blocks, and to one that refuses all blocks of cards: sections
// say the same, once.
func TestRefusedBlocks(t *testing.T) {
	for _, refused := range [][]string{{"table"}, {"table", "header"}, {"table", "context", "header", "actions", "image"}} {
		tables := 0
		server, adapter := testapp.Start(t, slacktest.Options{NoBlocks: refused, OnCall: func(c slacktest.Call) {
			if strings.Contains(c.Form.Get("blocks"), `"table"`) {
				tables++
			}
		}})
		v := cardtest.Cards(t)["table"]
		v.Parts = slices.Insert(v.Parts, 0, card.Part{Kind: card.KindTitle, Text: "Rooms"})
		v.Parts = append(v.Parts, card.Part{Kind: card.KindButtons, Buttons: []card.Press{{ID: "parley-card-x-0", Label: "Book"}}})
		for range 2 {
			posts := sendCard(t, server, adapter, v)
			if len(refused) < 5 && !strings.Contains(string(posts[0].Blocks), `"parley-card-x-0"`) {
				t.Errorf("without %v, the button is gone: %s", refused, posts[0].Blocks)
			}
			if all := posts[0].Text + string(posts[0].Blocks); len(posts) != 1 || !strings.Contains(all, "7 | 12") || !strings.Contains(all, "Rooms") {
				t.Errorf("without %v: %+v", refused, posts)
			}
		}
		if len(refused) == 1 && tables != 1 {
			t.Errorf("%d calls with a table, want 1", tables)
		}
	}
}

// TestPlanBlocks changes a plan in its post. A workspace that refuses plan blocks is asked once, and gets sections.
func TestPlanBlocks(t *testing.T) {
	for _, refused := range [][]string{nil, {"plan"}} {
		plans := 0
		server, adapter := testapp.Start(t, slacktest.Options{NoBlocks: refused, OnCall: func(c slacktest.Call) {
			if strings.Contains(c.Form.Get("blocks"), `"plan"`) {
				plans++
			}
		}})
		post := testapp.Post("ka")
		show := func(status string) adapters.Post {
			one := adapter.FormatCard(card.View{Parts: []card.Part{{Kind: card.KindTitle, Text: "Rooms"}, {Kind: card.KindTasks, Items: []card.Item{{Text: "Look", Status: status}}}}})[0]
			post.Text, post.Card = one.Text, &one.Card
			return post
		}
		id, err := adapter.Send(t.Context(), show("running"))
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []string{"running", "done"} {
			if err := adapter.Edit(t.Context(), id, show(status)); err != nil {
				t.Fatal(err)
			}
		}
		want, calls := `"status":"complete"`, 3
		if refused != nil {
			want, calls = "✅ Look", 1
		}
		if posts := server.Posts(); len(posts) != 1 || !strings.Contains(string(posts[0].Blocks), want) || !strings.Contains(posts[0].Text, "Rooms") || plans != calls {
			t.Errorf("without %v: %d calls with a plan, %+v %s", refused, plans, posts, posts[0].Blocks)
		}
	}
}

// TestALongPlan shows the tasks that a plan cannot have below it.
func TestALongPlan(t *testing.T) {
	server, adapter := testapp.Start(t, slacktest.Options{})
	v := card.View{Parts: []card.Part{{Kind: card.KindTitle, Text: "Rooms"}, {Kind: card.KindTasks}}}
	for n := range 100 {
		v.Parts[1].Items = append(v.Parts[1].Items, card.Item{Text: "w" + strconv.Itoa(n) + "w", Status: "done"})
	}
	posts := sendCard(t, server, adapter, v)
	if len(posts) != 1 || strings.Count(string(posts[0].Blocks), `"task_card"`) != 48 {
		t.Fatalf("%d posts: %s", len(posts), posts[0].Blocks)
	}
	for _, w := range cardtest.Words(v) {
		if !strings.Contains(string(posts[0].Blocks), w) {
			t.Errorf("%s is lost", w)
		}
	}
}

var _ adapters.CardSender = (*slack.Adapter)(nil)
