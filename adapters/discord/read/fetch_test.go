package read_test

import (
	"io"
	"testing"

	"parley/adapters/discord/discordtest"
	"parley/adapters/discord/internal/testapp"
	"parley/ingest/event"
)

// TestForwardedFileIsFetched reads a file of a forwarded message, from the message that forwards it.
func TestForwardedFileIsFetched(t *testing.T) {
	l := testapp.Start(t, discordtest.Options{}, nil)
	f := l.AddFile(testapp.Room, discordtest.File{Name: "map.png", MimeType: "image/png", Content: []byte("pixels")})
	l.Say(discordtest.Message{Channel: testapp.Room, Author: testapp.Mara, Extra: map[string]any{
		"message_reference": map[string]any{"type": 1, "channel_id": testapp.Room, "message_id": "31"},
		"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "look", "attachments": []any{map[string]any{"id": f.ID, "filename": f.Name, "url": f.URL}}}}},
	}})
	l.AwaitTexts(1)
	got, err := l.Adapter.Normalize(t.Context(), l.Envelopes()[0], l.Directory())
	if err != nil {
		t.Fatal(err)
	}
	if content := fetch(l, got.Message.Forwarded[0].Attached[0]); content != "pixels" {
		t.Errorf("the forwarded file has %q", content)
	}
}

// fetch returns the content of a file.
func fetch(l *testapp.Live, file event.Attachment) string {
	l.T.Helper()
	source, err := l.Adapter.Fetch(l.T.Context(), file)
	if err != nil {
		l.T.Fatal(err)
	}
	defer source.Close()
	content, err := io.ReadAll(source)
	if err != nil {
		l.T.Fatal(err)
	}
	return string(content)
}
