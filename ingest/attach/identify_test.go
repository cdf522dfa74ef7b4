package attach_test

import (
	"errors"
	"strings"
	"testing"

	"parley/ingest/attach"
	"parley/ingest/event"
)

const (
	page = "<!DOCTYPE html><html><title>Sign in</title></html>"
	jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF"
	zip  = "PK\x03\x04 a document"
)

func TestTypesOfBytes(t *testing.T) {
	store, _ := newStore(t)
	for _, c := range []struct{ name, claim, content, want string }{
		{"a.png", "image/png", string(png), "image/png"},
		{"a.png", "image/png", jpeg, "image/jpeg"},
		{"a.png", "", string(png), "image/png"},
		{"a", "text/plain", "%PDF-1.7", "application/pdf"},
		{"a.png", "image/png", zip, "application/zip"},
		{"a.png", "image/png", "\x00\x01\x02", "application/octet-stream"},
		{"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", zip,
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.csv", "Text/CSV; charset=utf-8", "a,b\n1,2\n", "text/csv"},
		{"a.txt", "", "hello", "text/plain"},
		{"a", "application/octet-stream", "\x00\x01", "application/octet-stream"},
		{"a", "nonsense", "hello", "text/plain"},
		{"a.heic", "image/heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "image/heic"},
		{"empty.txt", "text/plain", "", "text/plain"},
		{"page.html", "text/html", page, "text/html"},
		{"page.html", "", page, "text/html"},
		{"notes.md", "text/markdown", "<h1>Notes</h1>", "text/markdown"},
		{"drawing.svg", "image/svg+xml", "<!-- drawn --><svg/>", "image/svg+xml"},
	} {
		made, err := store.Put(t.Context(), strings.NewReader(c.content), event.Attachment{Name: c.name, MimeType: c.claim})
		if err != nil || made.MimeType != c.want {
			t.Errorf("%s as %q: got %q, %v, want %q", c.name, c.claim, made.MimeType, err, c.want)
		}
	}
}

func TestOtherContentIsRefused(t *testing.T) {
	store, dir := newStore(t)
	for _, c := range []struct{ name, claim, content string }{
		{"a.png", "image/png", page},
		{"a.heic", "image/heic", page},
		{"a.png", "image/png", `{"ok":false,"error":"not_authed"}`},
		{"a.png", "image/png", ""},
		{"a.pdf", "application/pdf", page},
		{"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", page},
		{"a.zip", "application/octet-stream", page},
		{"a.mp4", "", page},
	} {
		_, err := store.Put(t.Context(), strings.NewReader(c.content), event.Attachment{Name: c.name, MimeType: c.claim})
		if !errors.Is(err, attach.ErrOtherContent) {
			t.Errorf("%s as %q: %v", c.name, c.claim, err)
		}
	}
	if found := filesOf(t, dir); len(found) != 0 {
		t.Errorf("refused files left %v", found)
	}
}
