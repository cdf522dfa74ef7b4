package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"parley/adapters/web/payload"
	"parley/ingest/attach"
	"parley/ingest/event"
)

// Keep stores the bytes of the attachments of a message to a workspace, and finds the copies of links. The
// metadata then names the first linked one. An error that is no event.FieldErrors is the store's.
func (s Storage) Keep(ctx context.Context, w http.ResponseWriter, workspace, sender string, b *payload.Body) error {
	for i := range b.Attachments {
		file := &b.Attachments[i]
		if file.URL != "" {
			linked, err := s.Linked(ctx, workspace, file.URL)
			if errors.Is(err, ErrNoLink) || errors.Is(err, ErrExpired) {
				return event.FieldErrors{{Field: fmt.Sprintf("attachments[%d].url", i), Message: err.Error()}}
			}
			if err != nil {
				return err
			}
			linked.Name = cmp.Or(file.Name, linked.Name)
			*file, b.Metadata = linked, payload.NameFile(b.Metadata, linked)
			continue
		}
		kept, err := s.Copies.PutFor(ctx, workspace+" "+sender, bytes.NewReader(file.Data), event.Attachment{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))})
		switch {
		case attach.IsRefused(err):
			return noRoom(w, err)
		case errors.Is(err, attach.ErrWrite):
			return unwritten(err)
		case errors.Is(err, attach.ErrTooLarge):
			return event.FieldErrors{{Field: fmt.Sprintf("attachments[%d].data", i), Message: "has more bytes than attachments.max_bytes allows"}}
		case errors.Is(err, attach.ErrOtherContent):
			return event.FieldErrors{{Field: fmt.Sprintf("attachments[%d].data", i), Message: "must be of the type in mime_type"}}
		case err != nil:
			return err
		}
		*file = payload.Attachment{Name: file.Name, MimeType: kept.MimeType, Size: kept.Size, Bucket: kept.Bucket, Path: kept.Path}
	}
	return nil
}

// Linked returns the file that a link of ours names, and keeps its copy until a message has it.
// Its errors are ErrNoLink, ErrExpired, or the store's.
func (s Storage) Linked(ctx context.Context, workspace, url string) (payload.Attachment, error) {
	file, err := s.named(ctx, workspace, url)
	if err == nil {
		err = s.Copies.Hold(ctx, file.Copy.Bucket, file.Copy.Path)
	}
	if err != nil {
		return payload.Attachment{}, err
	}
	return payload.Attachment{Name: file.Name, MimeType: file.MimeType, Size: file.Size, Bucket: file.Copy.Bucket, Path: file.Copy.Path}, nil
}
