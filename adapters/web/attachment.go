package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"parley/assembly/stream"
	"parley/ingest/attach"
	"parley/ingest/event"
)

// maxAttachments bounds the attachments of a message.
const maxAttachments = 10

// Attachment is a file of a message. A client sends its bytes. The handler stores them
// before the durable accept, and the envelope has the place of the copy instead.
type Attachment struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64 in JSON
	Size     int64  `json:"size,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Path     string `json:"path,omitempty"`
}

// setAttachments reads the member attachments. It returns the fault's text, or "".
func (b *Body) setAttachments(value json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&b.Attachments) != nil {
		return "must be a list of {\"name\",\"mime_type\",\"data\"}, with the data in base64"
	}
	if len(b.Attachments) > maxAttachments {
		return fmt.Sprintf("must be at most %d", maxAttachments)
	}
	for i := range b.Attachments {
		a := &b.Attachments[i]
		if a.Name, a.MimeType = event.Text(a.Name), event.Text(a.MimeType); a.Name == "" || len(a.Data) == 0 && a.Path == "" {
			return fmt.Sprintf("[%d] must have a name and data", i)
		}
	}
	return ""
}

// unsent returns a fault for every member that no client may set: an attachment that names a
// copy, and the members of runs.
func (b *Body) unsent() (faults event.FieldErrors) {
	for i, a := range b.Attachments {
		faults.Check(a.Size == 0 && a.Bucket == "" && a.Path == "", fmt.Sprintf("attachments[%d]", i), "may have only name, mime_type and data")
	}
	faults.Check(b.RunID == "" && b.RunInput == nil, "run_id", "and run_input come only with POST /api/v1/agent/runs")
	return faults
}

// keep stores the bytes of the attachments. An error that is no event.FieldErrors is the
// store's.
func (a API) keep(ctx context.Context, b *Body) error {
	for i := range b.Attachments {
		file := &b.Attachments[i]
		kept, err := a.Files.Put(ctx, stream.File{Name: file.Name, MimeType: file.MimeType, Data: file.Data})
		switch {
		case errors.Is(err, attach.ErrTooLarge):
			return event.FieldErrors{{Field: fmt.Sprintf("attachments[%d].data", i), Message: "has more bytes than attachments.max_bytes allows"}}
		case errors.Is(err, attach.ErrOtherContent):
			return event.FieldErrors{{Field: fmt.Sprintf("attachments[%d].data", i), Message: "must be of the type in mime_type"}}
		case err != nil:
			return err
		}
		*file = Attachment{Name: file.Name, MimeType: kept.MimeType, Size: kept.Size, Bucket: kept.Bucket, Path: kept.Path}
	}
	return nil
}

// event returns the attachment of the message. Its id is the SHA-256 of the bytes.
func (a Attachment) event() event.Attachment {
	if a.Path != "" {
		return event.Attachment{ID: path.Base(a.Path), Name: a.Name, MimeType: a.MimeType, Size: a.Size, Copy: &event.Copy{Bucket: a.Bucket, Path: a.Path}}
	}
	sum := sha256.Sum256(a.Data)
	return event.Attachment{ID: hex.EncodeToString(sum[:]), Name: a.Name, MimeType: a.MimeType, Size: int64(len(a.Data))}
}
