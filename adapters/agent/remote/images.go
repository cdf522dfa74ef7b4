package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/adapters/agent"
	"parley/assembly"
)

const (
	// DefaultImageBytes is the default of the largest image that an agent gets.
	DefaultImageBytes = 8 << 20
	// DefaultImagesBytes is the default of the images of one request together, in bytes
	// before encoding.
	DefaultImagesBytes = 20 << 20
	// maxImages bounds the number of images of one request.
	maxImages = 100
	// checkTime bounds the check of all images, so that a place that hangs leaves time for the run.
	checkTime = time.Minute
	// markDigits is the length of the number in a mark.
	markDigits = 4
)

// Images are the images and documents of one request. None is held in memory. The request's JSON has a
// mark for each, and Send replaces the mark by the bytes.
type Images struct {
	files  agent.Files
	limits map[string]int64 // of one file, in bytes, by its type; a file of another type is not sent
	room   int64            // of all further files together, in bytes
	mark   string           // begins every mark; it is random, so no text contains it
	list   []assembly.File
	papers bool // there is a document among list
	// leftOut are files that the server has refused, by their keys.
	leftOut map[string]bool
	// takes reports whether the server takes files of a type; nil for the types of limits.
	takes func(kind string) bool
}

// NewImages returns no images. Each one that is added has at most limit bytes, and all together
// have at most room bytes. They are read from files; if that is nil, none can be added.
func NewImages(files agent.Files, limit, room int64) *Images {
	i := &Images{files: files, limits: map[string]int64{}, room: room, mark: rand.Text()}
	for _, kind := range imageTypes {
		i.limits[kind] = limit
	}
	return i
}

// NewFiles is NewImages for a server that says itself which types of files it takes.
func NewFiles(files agent.Files, takes func(kind string) bool, limit, room int64) *Images {
	i := NewImages(files, limit, room)
	i.takes = takes
	return i
}

// limit returns the bound of a file, in bytes, by the type that its content shows. The content of many types shows none, and then the
// file's own type counts. It also returns the type that the server gets.
func (i *Images) limit(file assembly.File, shown string) (most int64, kind string) {
	base, _, _ := strings.Cut(shown, ";")
	switch {
	case i.takes == nil:
		return min(i.limits[shown], i.room), shown
	case base == "text/plain" || base == "application/zip" || base == "application/octet-stream" || base == "text/xml":
		base, _, _ = strings.Cut(file.MimeType, ";")
		if strings.HasPrefix(base, "image/") {
			return 0, "" // it is none
		}
	}
	if !i.takes(base) {
		return 0, ""
	}
	return min(i.limits["image/png"], i.room), base
}

// Add adds a file if it is an image or a document that is not too large. It returns its type, and
// the mark for the JSON.
func (i *Images) Add(ctx context.Context, file assembly.File) (kind, mark string, ok bool) {
	if len(i.list) == maxImages || file.Size > i.room || i.leftOut[pictureKey(file)] {
		return "", "", false
	}
	shown, size, ok := checkFile(ctx, i.files, file, func(shown string) (most int64) {
		most, kind = i.limit(file, shown)
		return most
	})
	if file.Size = size; !ok {
		return "", "", false
	}
	i.room -= file.Size
	i.list, i.papers = append(i.list, file), i.papers || !slices.Contains(imageTypes, shown)
	return kind, fmt.Sprintf("%s%0*d", i.mark, markDigits, len(i.list)-1), true
}

// imageTypes are the types of images that models accept.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Any reports whether there is an image or a document.
func (i *Images) Any() bool { return len(i.list) > 0 }

// CheckImage returns the type and the size of a file, if its bytes are an image that models
// accept, at most so many. It reads the whole copy from files, because a damaged one must be
// left out. If files is nil, there is no copy.
func CheckImage(ctx context.Context, files agent.Files, file assembly.File, most int64) (kind string, size int64, ok bool) {
	if file.Size > most {
		return "", 0, false
	}
	return checkFile(ctx, files, file, func(kind string) int64 {
		if slices.Contains(imageTypes, kind) {
			return most
		}
		return 0
	})
}

// checkFile is CheckImage for types that have a limit in bytes.
func checkFile(ctx context.Context, files agent.Files, file assembly.File, limit func(kind string) int64) (kind string, size int64, ok bool) {
	if files == nil || file.Path == "" {
		return "", 0, false
	}
	opened, err := files.Open(ctx, file.Bucket, file.Path)
	if err != nil {
		return "", 0, false // the copy is gone or unreachable
	}
	defer opened.Close()
	copied := bufio.NewReader(opened)
	head, _ := copied.Peek(512)
	kind = http.DetectContentType(head)
	most := limit(kind)
	if most <= 0 || file.Size > most {
		return "", 0, false
	}
	size, err = io.Copy(io.Discard, io.LimitReader(copied, most+1))
	return kind, size, err == nil && size <= most
}

// TextPart is a text in a list of parts.
type TextPart struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

// Contents returns the content of each message: a list of parts if it has images or documents, else a
// text. Only a user's message can have them; part returns the part of one, from its type, its
// mark and its name. The newest have priority. Files without room, and those that are not
// read within a minute, are only named.
func (i *Images) Contents(ctx context.Context, messages []assembly.Message, part func(kind, mark, name string) any) []any {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	contents := make([]any, len(messages))
	for n, m := range slices.Backward(messages) {
		contents[n] = i.content(ctx, m, part)
	}
	return contents
}

func (i *Images) content(ctx context.Context, m assembly.Message, part func(kind, mark, name string) any) any {
	before := len(i.list)
	parts := make([]any, len(m.Parts))
	texts := make([]string, len(m.Parts))
	for n, p := range m.Parts {
		texts[n] = p.Text
		if p.File != nil {
			texts[n] = Describe(*p.File)
			if m.Role == assembly.RoleUser {
				if kind, mark, ok := i.Add(ctx, *p.File); ok {
					parts[n] = part(kind, mark, cmp.Or(Plain(p.File.Name, 120), "file"))
					continue
				}
			}
		}
		parts[n] = TextPart{"text", texts[n]}
	}
	if len(i.list) == before {
		return strings.Join(texts, "\n")
	}
	return parts
}

// Send makes the JSON the body of a request, with the images in base64 instead of their marks.
func (i *Images) Send(request *http.Request, json []byte) {
	var parts []part
	size := int64(len(json))
	for rest := json; len(rest) > 0; {
		text, after, found := bytes.Cut(rest, []byte(i.mark))
		parts, rest = append(parts, part{text: text}), nil
		if found {
			n, _ := strconv.Atoi(string(after[:markDigits])) // Add wrote it
			parts, rest = append(parts, part{image: &i.list[n]}), after[markDigits:]
			size += int64(base64.StdEncoding.EncodedLen(int(i.list[n].Size)) - len(i.mark) - markDigits)
		}
	}
	request.ContentLength = size
	request.GetBody = func() (io.ReadCloser, error) {
		return &body{ctx: request.Context(), files: i.files, parts: parts}, nil
	}
	request.Body, _ = request.GetBody()
}

// part is a text of a request's JSON, or an image.
type part struct {
	text  []byte
	image *assembly.File
}

// body reads the parts of a request, one piece of an image at a time.
type body struct {
	ctx   context.Context
	files agent.Files

	mu      sync.Mutex // the transport may call Close during Read
	parts   []part     // that are not begun
	image   io.ReadCloser
	rest    []byte // of the current text or piece
	piece   [3 << 10]byte
	encoded [4 << 10]byte
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.rest) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// next begins the next piece of the image, or the next part.
func (b *body) next() (err error) {
	if b.image != nil {
		n, err := io.ReadFull(b.image, b.piece[:])
		b.rest = base64.StdEncoding.AppendEncode(b.encoded[:0], b.piece[:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF { // the transport compares the whole length
			b.image, err = nil, b.image.Close()
		}
		return err
	}
	if len(b.parts) == 0 {
		return io.EOF
	}
	next := b.parts[0]
	b.parts, b.rest = b.parts[1:], next.text
	if next.image != nil {
		b.image, err = b.files.Open(b.ctx, next.image.Bucket, next.image.Path)
	}
	return err
}

// Close implements io.Closer.
func (b *body) Close() (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.image != nil {
		err = b.image.Close()
	}
	b.image, b.rest, b.parts = nil, nil, nil
	return err
}
