package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"parley/adapters"
	"parley/assembly/stream"
	"parley/ingest/attach"
	"parley/ingest/event"
)

// maxAttachments bounds the attachments of a message.
const maxAttachments = 10

// Attachment is a file of a message. A client sends its bytes, or the link under which it sent
// them earlier. The handler stores the bytes before the durable accept. The envelope has the
// place of the copy, and neither bytes nor link.
type Attachment struct {
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mime_type,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64 in JSON
	URL      string `json:"url,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Path     string `json:"path,omitempty"`
}

// setAttachments reads the member attachments. It returns the fault's text, or "".
func (b *Body) setAttachments(value json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&b.Attachments) != nil {
		return "must be a list of {\"name\",\"mime_type\",\"data\"}, with the data in base64, or {\"url\"}"
	}
	if len(b.Attachments) > maxAttachments {
		return fmt.Sprintf("must be at most %d", maxAttachments)
	}
	for i := range b.Attachments {
		a := &b.Attachments[i]
		a.Name, a.MimeType = event.Text(a.Name), event.Text(a.MimeType)
		switch {
		case a.URL != "" && len(a.Data) > 0:
			return fmt.Sprintf("[%d] must have data or a url, not both", i)
		case a.URL == "" && (a.Name == "" || len(a.Data) == 0 && a.Path == ""):
			return fmt.Sprintf("[%d] must have a name and data, or a url", i)
		}
	}
	return ""
}

// unsent returns a fault for every member that no client may set: an attachment that names a
// copy, and the members of runs.
func (b *Body) unsent() (faults event.FieldErrors) {
	for i, a := range b.Attachments {
		faults.Check(a.Size == 0 && a.Bucket == "" && a.Path == "", fmt.Sprintf("attachments[%d]", i), "may have only name, mime_type and data, or url")
	}
	faults.Check(b.RunID == "" && b.RunInput == nil, "run_id", "and run_input come only with POST /api/v1/agent/runs")
	return faults
}

// keep stores the bytes of the attachments, and finds the copies of links. The metadata then
// names the first linked one. An error that is no event.FieldErrors is the store's.
func (a API) keep(ctx context.Context, w http.ResponseWriter, sender string, b *Body) error {
	for i := range b.Attachments {
		file := &b.Attachments[i]
		if file.URL != "" {
			linked, err := a.linked(ctx, file.URL)
			if errors.Is(err, errNoLink) || errors.Is(err, errExpired) {
				return event.FieldErrors{{Field: fmt.Sprintf("attachments[%d].url", i), Message: err.Error()}}
			}
			if err != nil {
				return err
			}
			linked.Name = cmp.Or(file.Name, linked.Name)
			*file, b.Metadata = linked, nameFile(b.Metadata, linked)
			continue
		}
		kept, err := a.Files.PutFor(ctx, a.Workspace+" "+sender, stream.File{Name: file.Name, MimeType: file.MimeType, Data: file.Data})
		switch {
		case attach.IsRefused(err):
			return noRoom(w, err)
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

// linked returns the file that a link of ours names, and keeps its copy until a message has it.
// Its errors are errNoLink, errExpired, or the store's.
func (a API) linked(ctx context.Context, url string) (Attachment, error) {
	file, err := a.Storage.named(ctx, a.Workspace, url)
	if err == nil {
		err = a.Storage.Copies.Hold(ctx, file.Copy.Bucket, file.Copy.Path)
	}
	if err != nil {
		return Attachment{}, err
	}
	return Attachment{Name: file.Name, MimeType: file.MimeType, Size: file.Size, Bucket: file.Copy.Bucket, Path: file.Copy.Path}, nil
}

// attachmentsKey is the key of a message's metadata that names its first file, as the documents
// define it.
const attachmentsKey = "user_message_attachments"

// nameFile returns metadata that names a file by its place, and never by a link. Metadata that has
// the key, or that no message could have, remains as it is.
func nameFile(metadata []byte, file Attachment) []byte {
	m, err := event.ReadMetadata(metadata)
	if err != nil || slices.ContainsFunc(m.Extra, func(e event.Extra) bool { return e.Key == attachmentsKey }) {
		return metadata
	}
	bucket, path := place(event.Copy{Bucket: file.Bucket, Path: file.Path})
	value, _ := json.Marshal(struct {
		Bucket   string `json:"bucket"`
		Path     string `json:"path"`
		MimeType string `json:"mime_type"`
	}{bucket, path, file.MimeType}) // texts always encode
	m.Extra = append(m.Extra, event.Extra{Key: attachmentsKey, Value: value})
	m.Edited()
	return m.Bytes()
}

// event returns the attachment of the message. Its id is the SHA-256 of the bytes, with which
// the path of a copy ends too.
func (a Attachment) event() event.Attachment {
	switch {
	case a.URL != "": // only a recording of a request has a link here, and nothing reads it
		address, _, _ := strings.Cut(a.URL, "?")
		id := path.Base(address)
		return event.Attachment{ID: id, Name: cmp.Or(a.Name, id), MimeType: a.MimeType}
	case a.Path != "":
		return event.Attachment{ID: path.Base(a.Path), Name: a.Name, MimeType: a.MimeType, Size: a.Size, Copy: &event.Copy{Bucket: a.Bucket, Path: a.Path}}
	}
	return event.Attachment{ID: adapters.Digest(a.Data), Name: a.Name, MimeType: a.MimeType, Size: int64(len(a.Data))}
}
