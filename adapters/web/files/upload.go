package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/attach"
	"parley/ingest/event"
)

const (
	// uploadTimeout bounds the arrival of a file.
	uploadTimeout = 2 * time.Minute
	// answerTimeout bounds the storing of a file that has arrived, and the answer.
	answerTimeout = 2 * time.Second
	// formBytes is the room for the other parts of a form with a file.
	formBytes = 64 << 10
	// maxName bounds the name of a file, in characters.
	maxName = 255
)

// Routes returns the route of uploads.
func (s Storage) Routes() []access.Route {
	return []access.Route{{Pattern: "POST /api/v1/agent/attachments", Right: access.ForUsers, MaxBody: math.MaxInt64, Serve: s.postAttachment}}
}

// postAttachment stores a file that a later message names: POST /api/v1/agent/attachments, with
// a form that has a file, or with the file itself.
func (s Storage) postAttachment(c access.Call, w http.ResponseWriter, r *http.Request) error {
	limit := s.MaxBytes
	if r.ContentLength > limit+formBytes {
		return s.tooLarge(w)
	}
	controller := http.NewResponseController(w)
	if err := controller.SetReadDeadline(time.Now().Add(uploadTimeout)); err != nil {
		return err
	}
	_ = controller.SetWriteDeadline(time.Now().Add(uploadTimeout + answerTimeout))
	body := &uploadBody{ReadCloser: http.MaxBytesReader(w, r.Body, limit+formBytes)}
	r.Body = body
	source, file, err := uploaded(r)
	if err == nil {
		file, err = s.stored(c, r, source, file)
	}
	var url string
	if err == nil {
		url, err = s.Sign(r.Context(), c.Workspace, file)
	}
	if err != nil {
		return s.failedUpload(w, err, body.err)
	}
	bucket, path := payload.Place(*file.Copy)
	return exchange.Respond(w, http.StatusOK, map[string]string{"bucket": bucket, "path": path, "mime_type": file.MimeType, "url": url})
}

// uploadBody is a body that keeps the error of its reading, so that the sender's fault is not taken
// for the store's.
type uploadBody struct {
	io.ReadCloser
	err error
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// stored stores a file and returns it with the type of its bytes.
func (s Storage) stored(c access.Call, r *http.Request, source io.Reader, file event.Attachment) (event.Attachment, error) {
	kept, err := s.Copies.PutFor(r.Context(), c.Workspace+" "+string(c.Actor), source, file)
	if err != nil {
		return file, err
	}
	if file.MimeType != "" && file.MimeType != kept.MimeType {
		return file, fmt.Errorf("%w: its bytes are %s", attach.ErrOtherContent, kept.MimeType)
	}
	if kept.Size == 0 {
		return file, event.FieldErrors{{Field: "file", Message: "is empty"}}
	}
	file.MimeType, file.Size, file.Copy = kept.MimeType, kept.Size, &event.Copy{Bucket: kept.Bucket, Path: kept.Path}
	return file, nil
}

// uploaded returns the file in a request: its bytes, and its announced name and type.
func uploaded(r *http.Request) (io.Reader, event.Attachment, error) {
	announced, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || announced != "multipart/form-data" {
		_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		return r.Body, announcedFile(params["filename"], announced), nil
	}
	form, err := r.MultipartReader()
	for err == nil {
		part, next := form.NextPart()
		if next == io.EOF {
			break
		}
		if err = next; err == nil && part.FileName() != "" {
			announced, _, _ = mime.ParseMediaType(part.Header.Get("Content-Type"))
			return part, announcedFile(part.FileName(), announced), nil
		}
	}
	if err == nil || !isTooLarge(err) {
		err = event.FieldErrors{{Field: "file", Message: "is required: a part of the form with a filename"}}
	}
	return nil, event.Attachment{}, err
}

// announcedFile returns a file with the name and type that its sender gives. The type is empty
// if the sender gives none: curl sends a file as a form without being told.
func announcedFile(name, mimeType string) event.Attachment {
	switch mimeType {
	case "application/octet-stream", "application/x-www-form-urlencoded":
		mimeType = ""
	case "image/jpg":
		mimeType = "image/jpeg"
	}
	runes := []rune(event.Text(filepath.Base(cmp.Or(name, "file"))))
	return event.Attachment{Name: string(runes[:min(len(runes), maxName)]), MimeType: mimeType}
}

func isTooLarge(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.Is(err, attach.ErrTooLarge) || errors.As(err, &tooLarge)
}

// failedUpload returns the error for the sender of a file that is not stored. broken is the error of
// the body, if it could not be read.
func (s Storage) failedUpload(w http.ResponseWriter, err, broken error) error {
	switch {
	case isTooLarge(err):
		return s.tooLarge(w)
	case errors.Is(err, attach.ErrOtherContent):
		return exchange.Fail(http.StatusBadRequest, "invalid", "the bytes are not of the announced type",
			event.FieldError{Field: "file", Message: "must have the bytes of the type that its Content-Type announces; only text/html may be a web page"})
	case attach.IsRefused(err):
		return noRoom(w, err)
	case errors.Is(err, attach.ErrWrite):
		return unwritten(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return exchange.Fail(http.StatusRequestTimeout, "slow-body", "the file must arrive within two minutes")
	case broken != nil, errors.Is(err, io.ErrUnexpectedEOF):
		return exchange.Fail(http.StatusBadRequest, "broken-body", "the body is malformed, or ends too early")
	}
	return err
}

// noRoom returns the error for the sender of a file for which there is no room.
func noRoom(w http.ResponseWriter, err error) error {
	if errors.Is(err, attach.ErrSender) {
		w.Header().Set("Retry-After", "600")
		return exchange.Fail(http.StatusTooManyRequests, "sender-quota", attach.ErrSender.Error())
	}
	return exchange.Fail(http.StatusInsufficientStorage, "quota", attach.ErrQuota.Error())
}

// unwritten returns the error for the sender of a file whose place cannot be written.
func unwritten(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return exchange.Fail(http.StatusInsufficientStorage, "files-full", "the disk of the files is full; send the request again later, or without the files")
	}
	return exchange.Fail(http.StatusServiceUnavailable, "files-unavailable", "files can't be stored now; send the request again, or without the files")
}

func (s Storage) tooLarge(w http.ResponseWriter) error {
	w.Header().Set("Connection", "close")
	return exchange.Fail(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the file must have at most %d bytes", s.MaxBytes))
}
