// Package files stores the files that clients of the HTTP API send, and serves files under links.
package files

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/ingest/attach"
)

// serveTimeout bounds the time in which a client reads a file.
const serveTimeout = 5 * time.Minute

// Storage serves files under their links.
type Storage struct {
	*Links
	Copies *attach.Store
	// MaxBytes bounds a file that a client sends.
	MaxBytes int64
	Guard    *guard.Guard
}

// Get serves a file, which needs no token but the link's: GET
// /storage/v1/object/sign/{bucket}/{path}?token=
func (s Storage) Get(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(s.Guard, "", s.get)(w, r)
}

func (s Storage) get(w http.ResponseWriter, r *http.Request) error {
	place := strings.TrimPrefix(r.URL.EscapedPath(), signPath) // a place needs no escapes
	link, err := s.check(r.Context(), place, r.URL.Query().Get("token"))
	switch {
	case errors.Is(err, ErrExpired):
		return exchange.Fail(http.StatusForbidden, "expired", "the address "+ErrExpired.Error())
	case errors.Is(err, ErrNoLink):
		refusal := s.Guard.Unauthorized(w, r, "no-link")
		return exchange.Fail(refusal.Status, refusal.Reason, "the address "+ErrNoLink.Error())
	case err != nil:
		return err
	}
	return s.serve(w, r, link)
}

// serve responds with a file, or with the address at which its bucket serves it.
func (s Storage) serve(w http.ResponseWriter, r *http.Request, l link) error {
	left := time.Unix(l.Expires, 0).Sub(s.Now())
	header := w.Header()
	header.Set("Content-Type", l.MimeType)
	header.Set("Content-Disposition", disposition(l))
	header.Set("Cache-Control", "private, max-age="+strconv.Itoa(int(left.Seconds())))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	address, err := s.Copies.Address(r.Context(), l.Bucket, l.Path, header, left)
	if err == nil && address != "" {
		http.Redirect(w, r, address, http.StatusTemporaryRedirect)
		return nil
	}
	var content io.ReadSeekCloser
	if err == nil {
		content, err = s.Copies.OpenAt(r.Context(), l.Bucket, l.Path)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, attach.ErrElsewhere) {
		err = exchange.Fail(http.StatusNotFound, "not-found", "the file is not stored any more")
	}
	if err != nil {
		header.Del("Content-Disposition")
		header.Del("Cache-Control")
		return err
	}
	defer content.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(serveTimeout)) // without it the server's limit applies
	header.Set("ETag", `"`+path.Base(l.Path)+`"`)
	http.ServeContent(w, r, "", time.Time{}, content)
	return nil
}

// shown are the types of images that a browser can show without a risk.
var shown = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"}

// disposition returns the Content-Disposition of a file: a browser must not show one that could
// run a script.
func disposition(l link) string {
	kind := "attachment"
	if slices.Contains(shown, l.MimeType) {
		kind = "inline"
	}
	if named := mime.FormatMediaType(kind, map[string]string{"filename": l.Name}); named != "" {
		return named
	}
	return kind
}
