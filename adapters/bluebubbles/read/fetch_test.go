package read_test

import (
	"bytes"
	"io"
	"testing"

	"parley/adapters/bluebubbles/internal/testapp"
	"parley/ingest/event"
)

// TestFetchConvertsNothing checks that an attachment comes as it was sent, and a missing one is
// an error.
func TestFetchConvertsNothing(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent)
	n.AddFile("at_1", []byte("content"))
	source, err := n.Adapter.Fetch(t.Context(), event.Attachment{ID: "at_1"})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if got, err := io.ReadAll(source); err != nil || !bytes.Equal(got, []byte("content")) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := n.Adapter.Fetch(t.Context(), event.Attachment{ID: "at_2"}); err == nil {
		t.Error("a missing attachment was fetched")
	}
}
