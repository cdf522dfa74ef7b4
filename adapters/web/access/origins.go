package access

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// sharedPaths begin the paths of the routes that pages of other origins may call, and of the scripts
// that they may load.
var sharedPaths = []string{"/api/", "/runs/", "/storage/", "/openapi.json", "/sdk/", "/ui/"}

// WithOrigins lets the pages of configured origins call the routes of the API. A page needs a
// token like any other caller: browsers never add one by themselves, so the origins of all
// workspaces are one list.
func (g Gate) WithOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shared := func(path string) bool { return strings.HasPrefix(r.URL.Path, path) }
		if slices.ContainsFunc(sharedPaths, shared) && g.admitsOrigin(w, r) && r.Method == http.MethodOptions {
			header := w.Header()
			header.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Traceparent")
			header.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admitsOrigin reports whether the page that has sent a request is of a configured origin, and
// tells its browser.
func (g Gate) admitsOrigin(w http.ResponseWriter, r *http.Request) bool {
	var origins []string
	for _, of := range g.Workspaces() {
		origins = append(origins, of.Origins...)
	}
	if len(origins) == 0 {
		return false
	}
	header, origin := w.Header(), r.Header.Get("Origin")
	header.Add("Vary", "Origin")
	if !slices.Contains(origins, origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "Retry-After, ETag")
	return true
}

// isOrigin reports whether a text is an origin as browsers send it, such as
// https://app.example.com.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && text == u.Scheme+"://"+strings.ToLower(u.Host)
}
