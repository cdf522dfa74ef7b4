// Package ui serves conversations to web pages: the custom element parley-conversation, and the page /chat, which
// shows it with the caller's threads.
package ui

import (
	"embed"
	"net/http"
	"path"

	"parley/adapters/web/static"
)

//go:embed static src/chat.html
var files embed.FS

// The files of static are made from those of src: minified, and with the modules in one.
//
//go:generate go test -count=1 -run ^TestScripts$ . -update

// handlers serve the scripts and the styles by their names.
var handlers = func() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{}
	entries, _ := files.ReadDir("static") // it is embedded, as its files are
	for _, entry := range entries {
		raw, _ := files.ReadFile(path.Join("static", entry.Name()))
		all[entry.Name()] = static.Serve(entry.Name(), raw)
	}
	return all
}()

// page serves the markup of the page /chat.
var page = func() http.HandlerFunc {
	raw, _ := files.ReadFile("src/chat.html")
	return static.Serve("chat.html", raw)
}()

// File responds with a script or a stylesheet: GET /ui/{file}
func File(w http.ResponseWriter, r *http.Request) {
	handler := handlers[r.PathValue("file")]
	if handler == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	handler(w, r)
}

// policy of the page: it loads nothing of other hosts but the images that a person asks for, and no text becomes
// markup or a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' https: http: data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Chat returns the handler of the page on which a caller converses: GET /chat
//
// It is there while exists returns true. The page gets the token as the fragment of its address, which browsers
// send to no server, or asks for it.
func Chat(exists func() bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !exists() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		page(w, r)
	}
}
