package discord_test

import (
	"io"
	"testing"

	"parley/adapters/discord/discordtest"
	"parley/ingest/event"
)

// TestForwardedFileIsFetched reads a file of a forwarded message, from the message that forwards it.
func TestForwardedFileIsFetched(t *testing.T) {
	l := startLive(t, discordtest.Options{}, nil)
	f := l.AddFile(roomID, discordtest.File{Name: "map.png", MimeType: "image/png", Content: []byte("pixels")})
	l.Say(discordtest.Message{Channel: roomID, Author: mara, Extra: map[string]any{
		"message_reference": map[string]any{"type": 1, "channel_id": roomID, "message_id": "31"},
		"message_snapshots": []any{map[string]any{"message": map[string]any{"content": "look", "attachments": []any{map[string]any{"id": f.ID, "filename": f.Name, "url": f.URL}}}}},
	}})
	l.await(1)
	got, err := l.adapter.Normalize(t.Context(), l.envelopes()[0], l.directory())
	if err != nil {
		t.Fatal(err)
	}
	if content := l.fetch(got.Message.Forwarded[0].Attached[0]); content != "pixels" {
		t.Errorf("the forwarded file has %q", content)
	}
}

// fetch returns the content of a file.
func (l *live) fetch(file event.Attachment) string {
	l.t.Helper()
	source, err := l.adapter.Fetch(l.t.Context(), file)
	if err != nil {
		l.t.Fatal(err)
	}
	defer source.Close()
	content, err := io.ReadAll(source)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(content)
}
