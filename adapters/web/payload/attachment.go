package payload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// MaxAttachments bounds the attachments of a message.
const MaxAttachments = 10

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
	if len(b.Attachments) > MaxAttachments {
		return fmt.Sprintf("must be at most %d", MaxAttachments)
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

// Unsent returns a fault for every member that no client may set: an attachment that names a
// copy, and the members of runs.
func (b *Body) Unsent() (faults event.FieldErrors) {
	for i, a := range b.Attachments {
		faults.Check(a.Size == 0 && a.Bucket == "" && a.Path == "", fmt.Sprintf("attachments[%d]", i), "may have only name, mime_type and data, or url")
	}
	faults.Check(b.RunID == "" && b.RunInput == nil, "run_id", "and run_input come only with POST /api/v1/agent/runs")
	return faults
}

// NameFile returns metadata that names a file by its place, and never by a link. Metadata that has
// the key, or that no message could have, remains as it is.
func NameFile(metadata []byte, file Attachment) []byte {
	m, err := event.ReadMetadata(metadata)
	if err != nil || slices.ContainsFunc(m.Extra, func(e event.Extra) bool { return e.Key == event.KeyFirstFile }) {
		return metadata
	}
	bucket, path := Place(event.Copy{Bucket: file.Bucket, Path: file.Path})
	value, _ := json.Marshal(struct {
		Bucket   string `json:"bucket"`
		Path     string `json:"path"`
		MimeType string `json:"mime_type"`
	}{bucket, path, file.MimeType}) // texts always encode
	m.Extra = append(m.Extra, event.Extra{Key: event.KeyFirstFile, Value: value})
	m.Edited()
	return m.Bytes()
}

// Event returns the attachment of the message. Its id is the SHA-256 of the bytes, with which
// the path of a copy ends too.
func (a Attachment) Event() event.Attachment {
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

// Place returns the bucket and path of a copy as a client sees them: the bucket has no slash.
func Place(c event.Copy) (bucket, path string) {
	bucket, path, _ = strings.Cut(c.Bucket+"/"+c.Path, "/")
	return bucket, path
}
