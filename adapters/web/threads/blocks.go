package threads

import (
	"bytes"
	"context"
	"encoding/json"

	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
)

// blocks returns the blocks of a message as its client sent them, with new links; nil for a message that
// was not sent in blocks. The content is empty after a delete, and then it has none.
func (c call) blocks(ctx context.Context, m *messages.Message, layout json.RawMessage) ([]historyPart, error) {
	var list []json.RawMessage
	if json.Unmarshal(layout, &list) != nil {
		return nil, nil
	}
	parts, rest := make([]historyPart, 0, len(list)), m.Content+"\n"
	for _, raw := range list {
		var file payload.BlockFile
		length := 0
		switch {
		case !bytes.HasPrefix(raw, []byte("{")):
			if json.Unmarshal(raw, &length) != nil || length < 0 || length >= len(rest) || rest[length] != '\n' {
				return nil, nil
			}
			parts, rest = append(parts, historyPart{Type: "text", Text: new(rest[:length])}), rest[length+1:]
		case json.Unmarshal(raw, &file) != nil || file.File < 0 || file.File >= len(m.Attachments):
			return nil, nil
		default:
			a := m.Attachments[file.File]
			link, err := c.signed(ctx, a)
			if err != nil {
				return nil, err
			}
			if link != "" {
				parts = append(parts, historyPart{Type: "binary", MimeType: a.MimeType, URL: link, ID: file.ID, Filename: file.Filename})
			}
		}
	}
	return parts, nil
}

// addParts adds the blocks of a user's message, and the link to its first file. A message that was not sent
// in blocks has parts if it has files: its text and then the files.
func (c call) addParts(ctx context.Context, out *historyMessage, m *messages.Message, layout json.RawMessage) (err error) {
	if out.Parts, err = c.blocks(ctx, m, layout); err == nil && out.Parts == nil {
		out.Parts, err = c.textAndFiles(ctx, m)
	}
	for _, p := range out.Parts {
		if p.URL != "" {
			out.URL = new(json.RawMessage(payload.Encode(p.URL)))
			break
		}
	}
	return err
}

// textAndFiles returns the content and the files of a message; nil if it has no files.
func (c call) textAndFiles(ctx context.Context, m *messages.Message) (parts []historyPart, err error) {
	for _, a := range m.Attachments {
		link, err := c.signed(ctx, a)
		if err != nil {
			return nil, err
		}
		if link == "" {
			continue
		}
		if text := Display(m); parts == nil && text != "" {
			parts = append(parts, historyPart{Type: "text", Text: &text})
		}
		parts = append(parts, historyPart{Type: "binary", MimeType: a.MimeType, URL: link})
	}
	return parts, nil
}

// signed returns a new link to a file of a message; "" if there is no copy.
func (c call) signed(ctx context.Context, a files.Attachment) (string, error) {
	if a.State != files.Stored {
		return "", nil
	}
	a.Copy = &event.Copy{Bucket: a.Bucket, Path: a.Path}
	return c.Storage.Sign(ctx, c.Workspace, a.Attachment)
}
