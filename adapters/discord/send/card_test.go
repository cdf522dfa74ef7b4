package send_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/ingest/card"
	"parley/ingest/card/cardtest"
)

// sendCard sends a card as deliver does, and returns what readers have of it.
func sendCard(t *testing.T, l *testapp.Live, v card.View) []discordtest.Message {
	t.Helper()
	before := len(l.Posts(testapp.Room))
	for n, one := range l.Adapter.FormatCard(v) {
		post := l.Post("k"+string(rune('a'+n)), testapp.Room, "", one.Text)
		post.Card = &one.Card
		l.Send(post)
	}
	return l.Posts(testapp.Room)[before:]
}

// TestCards compares the body of each node with its golden file. The fake refuses what Discord refuses.
func TestCards(t *testing.T) {
	for name, v := range cardtest.Cards(t) {
		l := testapp.Start(t, discordtest.Options{}, nil)
		var got bytes.Buffer
		for _, p := range sendCard(t, l, v) {
			_ = json.Indent(&got, p.Body, "", "  ")
			got.WriteByte('\n')
		}
		file := filepath.Join("testdata", "cards", name+".json")
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

// TestBigCard sends a card that is too large in every way, with embeds and where Discord drops them: nothing of it is lost.
func TestBigCard(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		l := testapp.Start(t, discordtest.Options{NoEmbeds: dropped}, nil)
		var all strings.Builder
		for _, p := range sendCard(t, l, cardtest.Big()) {
			if dropped && p.Embeds != nil {
				t.Errorf("the embeds are %s", p.Embeds)
			}
			all.WriteString(p.Content + string(p.Embeds) + string(p.Components))
		}
		for _, w := range cardtest.Words(cardtest.Big()) {
			if !strings.Contains(all.String(), w) {
				t.Errorf("dropped %v: %s is lost", dropped, w)
			}
		}
	}
}

// TestEditedCard changes the card of a post, with embeds and where Discord drops them.
func TestEditedCard(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		l := testapp.Start(t, discordtest.Options{NoEmbeds: dropped}, nil)
		post := l.Post("ka", testapp.Room, "", "It grows")
		id := l.Send(post)
		for _, status := range []string{"running", "done"} {
			one := l.Adapter.FormatCard(card.View{Status: "info", Parts: []card.Part{{Kind: card.KindTitle, Text: "Rooms"}, {Kind: card.KindTasks, Items: []card.Item{{Text: "Look", Status: status}}}}})[0]
			post.Text, post.Card = one.Text, &one.Card
			if err := l.Adapter.Edit(t.Context(), id, post); err != nil {
				t.Fatal(err)
			}
		}
		posts := l.Posts(testapp.Room)
		if len(posts) != 1 {
			t.Fatalf("%+v", posts)
		}
		content, embeds := posts[0].Content, string(posts[0].Embeds)
		if dropped && (content != "**Rooms**\n✅ Look" || embeds != "") || !dropped && (content != "**Rooms**" || !strings.Contains(embeds, "✅ Look")) {
			t.Errorf("dropped %v: %q %s", dropped, content, embeds)
		}
	}
}

var _ adapters.CardSender = (*discord.Adapter)(nil)
