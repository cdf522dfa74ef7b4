package read_test

import (
	"bytes"
	"io"
	"testing"

	"parley/adapters/bluebubbles/bluebubblestest"
	"parley/adapters/bluebubbles/internal/testapp"
	"parley/ingest/event"
)

// TestFetchAsksForAFormThatModelsRead: the server converts a telephone's pictures and recordings, and no other file.
func TestFetchAsksForAFormThatModelsRead(t *testing.T) {
	n := testapp.NewNode(t, testapp.Silent)
	for guid, file := range map[string]struct{ name, mimeType, want string }{
		"at_1": {"IMG_1.HEIC", "image/heic", "\xff\xd8\xff\xe0content"},
		"at_2": {"Audio Message.caf", "audio/x-caf", "ID3\x03content"},
		"at_3": {"IMG_3.HEIC", "", "\xff\xd8\xff\xe0content"},
		"at_4": {"IMG_4.heic.txt", "text/plain", "content"},
		"at_5": {"IMG_5.jpeg", "image/jpeg", "content"},
	} {
		n.AddFile(guid, []byte("content"))
		n.Say(bluebubblestest.Message{Chat: "iMessage;-;+15550001111", From: "+15550001111", Attachments: []bluebubblestest.Attachment{{GUID: guid, Name: file.name, MimeType: file.mimeType}}})
		source, err := n.Adapter.Fetch(t.Context(), event.Attachment{ID: guid, Name: file.name, MimeType: file.mimeType})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(source); err != nil || string(got) != file.want || source.Close() != nil {
			t.Errorf("%s: %q, %v", file.name, got, err)
		}
	}
}

// TestFetchConvertsNothing checks that another attachment comes as it was sent, and a missing one is
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
