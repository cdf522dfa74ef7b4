package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
	"parley/assembly/turn"
)

// TestAKeptInputTellsWhatParleyWrote, also beside a file. A message that was edited since has one piece.
func TestAKeptInputTellsWhatParleyWrote(t *testing.T) {
	t.Parallel()
	given := turn.Given{
		Kept: `[{"role":"user","content":"[Mara]: hello"},{"role":"user","content":[{"type":"text","text":"[Mara]: look"},{"type":"binary","mimeType":"image/png","filename":"cat.png"}]}]`,
		Messages: []assembly.Message{
			{ID: "m1", Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Mara]: good morning"}}},
			{ID: "m2", Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Mara]: look"}, {File: &assembly.File{Name: "cat.png", MimeType: "image/png"}}}},
		},
		Typed: map[string]string{"m1": "good morning", "m2": "look"},
	}
	var in Input
	if err := in.read(given); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]InputMessage{
		{Role: "user", Text: "[Mara]: hello", Pieces: []Piece{{Text: "[Mara]: hello"}}},
		{ID: "m2", Role: "user", Text: "[Mara]: look\ncat.png", Pieces: []Piece{{"[Mara]: ", true}, {"look\n", false}, {"cat.png", true}}},
	}, in.Messages); diff != "" {
		t.Error(diff)
	}
}
