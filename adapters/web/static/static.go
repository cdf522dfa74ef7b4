// Package static serves the files that pages load: the client for programs, and what pages show.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

//go:embed files
var files embed.FS

// kinds are the types of the files by the ends of their names.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".ts": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8",
}

// zipped wraps a handler: it compresses the body for a client that accepts gzip. The options have no
// fault.
var zipped, _ = gzhttp.NewWrapper(gzhttp.EnableZstd(false))

// File returns the handler of an embedded file. A browser asks each time whether its copy is
// current, so that the files of a page are always of one version. A name of no file is a panic.
func File(name string) http.HandlerFunc {
	raw, err := files.ReadFile("files/" + name)
	if err != nil {
		panic(err)
	}
	return Serve(name, raw)
}

// Serve returns the handler of a file with a name and content, as File does.
func Serve(name string, raw []byte) http.HandlerFunc {
	sum := sha256.Sum256(raw)
	tag := `W/"` + hex.EncodeToString(sum[:16]) + `"` // weak: the body may be compressed
	return zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", kinds[path.Ext(name)])
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(raw))
	}))
}
