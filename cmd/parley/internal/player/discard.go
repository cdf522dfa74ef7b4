package player

import (
	"context"
	"io"
	"io/fs"

	"parley/assembly/turn"
	"parley/cmd/parley/internal/pipeline"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/work"
)

// discard is an outbox and a file store that send and store nothing.
type discard struct{}

var (
	_ pipeline.Outbox = discard{}
	_ turn.Files      = discard{}
)

// Expect implements turn.Outbox.
func (discard) Expect(context.Context, *work.Claim, *runs.Run) {}

// Show implements turn.Outbox.
func (s discard) Show(context.Context, *work.Claim, *runs.Run, turn.Mentions, func(func())) (turn.LivePreview, error) {
	return s, nil
}

// Open implements turn.Files. Nothing is stored.
func (discard) Open(context.Context, string, string) (io.ReadCloser, error) {
	return nil, fs.ErrNotExist
}

// Put implements turn.Files. It drops the file, because no delivery sends it.
func (discard) Put(_ context.Context, file stream.File) (outbox.File, error) {
	return outbox.File{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))}, nil
}

// Grow implements turn.LivePreview.
func (discard) Grow(string) {}

// Note implements turn.LivePreview.
func (discard) Note(string) {}

// Stop implements turn.LivePreview.
func (discard) Stop() {}

// Format implements turn.LivePreview.
func (discard) Format(string, stream.Ask, *card.View, []outbox.File) ([]outbox.Post, *outbox.Send) {
	return nil, nil
}

// Notice implements turn.Outbox.
func (discard) Notice(*runs.Run, string) []outbox.Post { return nil }

// Above implements ingest.Notifier.
func (discard) Above(context.Context, string, string) (event.ThreadKey, error) { return "", nil }

// Announce implements ingest.Notifier.
func (discard) Announce(*runs.Run, *event.Message) []outbox.Post { return nil }

// Clear implements ingest.Notifier.
func (discard) Clear(*runs.Run) []outbox.Post { return nil }

// Posted implements turn.Outbox.
func (discard) Posted(*work.Claim, *outbox.Delivery) {}

// Keep implements turn.Files.
func (discard) Keep(_ context.Context, _, _ string, a files.Attachment) (files.Attachment, turn.Copying) {
	return a, ""
}
