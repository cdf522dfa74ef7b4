package attach

import (
	"bufio"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"

	"parley/ingest/event"
)

// sniffed is the number of bytes that http.DetectContentType uses.
const sniffed = 512

// identify returns the type of the source's bytes and a reader of all of them. It fails
// with ErrOtherContent if the bytes do not fit the announced type.
func identify(source io.Reader, announced event.Attachment) (io.Reader, string, error) {
	buffered := bufio.NewReaderSize(source, 32<<10)
	head, err := buffered.Peek(sniffed)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	mimeType, err := judge(head, announced)
	return buffered, mimeType, err
}

// judge compares the announced type with the first bytes. An agent must see only true
// images as images. For most other types the announcement is more exact than the bytes: a
// document is a zip archive, a table is plain text.
func judge(head []byte, announced event.Attachment) (string, error) {
	claim, shown := base(announced.MimeType), base(http.DetectContentType(head))
	switch {
	case certain(shown):
		return shown, nil
	case isRaster(claim) && strings.HasPrefix(shown, "text/"):
		return "", fmt.Errorf("%w: %s instead of %s", ErrOtherContent, shown, claim)
	case shown == "text/html" && !mayBePage(claim, announced.Name):
		return "", fmt.Errorf("%w: a web page instead of the file, which platforms send to a token without the right to read files", ErrOtherContent)
	case claim == unknown || certain(claim):
		return shown, nil
	default:
		return claim, nil
	}
}

// unknown is the type of unidentified bytes.
const unknown = "application/octet-stream"

// base returns a media type without its parameters, in lower case.
func base(mediaType string) string {
	name, _, err := mime.ParseMediaType(mediaType)
	if err != nil || !strings.Contains(name, "/") {
		return unknown
	}
	return name
}

// certain reports whether the bytes of this type always show it.
func certain(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "audio/mpeg"}, mediaType)
}

// isRaster reports whether a type is of images that are never text.
func isRaster(mediaType string) bool {
	return slices.Contains([]string{
		"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp",
		"image/bmp", "image/tiff", "image/heic", "image/heif", "image/avif",
	}, mediaType)
}

// mayBePage reports whether a file with this announcement may begin like HTML.
func mayBePage(claim, name string) bool {
	if claim == unknown {
		return slices.Contains([]string{".html", ".htm", ".xhtml", ".xml", ".svg", ".md", ".txt"}, strings.ToLower(path.Ext(name)))
	}
	return strings.HasPrefix(claim, "text/") || slices.ContainsFunc(
		[]string{"/xml", "+xml", "html", "javascript", "markdown"},
		func(end string) bool { return strings.HasSuffix(claim, end) })
}
