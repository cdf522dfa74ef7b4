package send_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/bluebubbles"
	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
	"parley/ingest/card"
	"parley/ingest/card/cardtest"
)

// bubbles sends a card as deliver does on a platform without cards, and returns what the chat shows.
func bubbles(t *testing.T, v card.View) (shown []string) {
	t.Helper()
	n := testapp.NewNode(t, bluebubblestest.Options{}, func(*bluebubbles.Config) {})
	question := n.Hears("a room?")
	for _, text := range n.Adapter.Format(v.Markdown(), nil) {
		n.Reply(testapp.Nora, question.GUID, text)
	}
	for _, m := range n.Sent() {
		shown = append(shown, m.Text)
	}
	return shown
}

// TestCards compares the bubbles of each node with its golden file.
func TestCards(t *testing.T) {
	for name, v := range cardtest.Cards(t) {
		file, got := filepath.Join("testdata", "cards", name+".txt"), strings.Join(bubbles(t, v), "\n---\n")+"\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// TestBigCard: nothing of a large card is lost, and its words stay in their order.
func TestBigCard(t *testing.T) {
	shown := card.View{Parts: []card.Part{{Text: strings.Join(bubbles(t, cardtest.Big()), "\n")}}}
	if got, want := cardtest.Words(shown), cardtest.Words(cardtest.Big()); !slices.Equal(got, want) {
		t.Errorf("%d of %d words", len(got), len(want))
	}
}
