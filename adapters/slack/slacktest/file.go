package slacktest

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/adapters/slack/slacktest/internal/wire"
)

// File is a shared file.
type File struct {
	ID, Name, Title, MimeType string
	Content                   []byte
	// Size is the reported size; the length of Content if 0.
	Size int
	// Subtype is slack_audio for a voice clip. Transcription is the clip's text.
	Subtype, Transcription string
	// DurationMS is the length of a recording. Mode is hosted if empty.
	DurationMS int
	Mode       string
	// Unreadable means that the token may not read the file. The download then redirects to
	// the sign-in page, as Slack's does.
	Unreadable bool
	// DownloadURL replaces the server's own url_private_download.
	DownloadURL string
	// Redirect is the target of a redirect from the server's own address of the file, such as
	// an address on another host. See CDN.
	Redirect string
	// User is the author of the messages at Shares.
	User   string
	Shares []Share
}

// Share is a message with a file.
type Share struct{ Channel, TS string }

// AddFile adds a file for files.info and for downloads.
func (s *Server) AddFile(file File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[file.ID] = file
}

// fileInfo is files.info.
// https://docs.slack.dev/reference/methods/files.info
func (s *Server) fileInfo(form url.Values) []byte {
	all := s.describeFiles([]string{form.Get("file")})
	if len(all) == 0 {
		return wire.Refusal("file_not_found")
	}
	return wire.Encode(map[string]any{"ok": true, "file": all[0]})
}

// describeFiles returns the files as Slack objects. It omits unknown files.
// https://docs.slack.dev/reference/objects/file-object
func (s *Server) describeFiles(ids []string) []map[string]any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := []map[string]any{}
	for _, id := range ids {
		if file, found := s.files[id]; found {
			all = append(all, s.describeFile(file))
		}
	}
	return all
}

func (s *Server) describeFile(f File) map[string]any {
	location := cmp.Or(f.DownloadURL, s.url+downloads+f.ID+"/download/"+url.PathEscape(f.Name))
	size := cmp.Or(f.Size, len(f.Content))
	info := map[string]any{"id": f.ID, "name": f.Name, "title": cmp.Or(f.Title, f.Name), "mimetype": f.MimeType,
		"size": size, "mode": cmp.Or(f.Mode, "hosted"), "file_access": "visible", "user": f.User,
		"url_private": location, "url_private_download": location}
	if f.Subtype != "" {
		info["subtype"] = f.Subtype
	}
	if f.DurationMS > 0 {
		info["duration_ms"] = f.DurationMS
	}
	if f.Transcription != "" {
		info["transcription"] = map[string]any{"status": "complete", "locale": "en-US",
			"preview": map[string]any{"content": f.Transcription, "has_more": false}}
	}
	if len(f.Shares) > 0 {
		public, private := map[string][]any{}, map[string][]any{}
		for _, share := range f.Shares {
			target := private
			if (Channel{ID: share.Channel}).kind() == PublicChannel {
				target = public
			}
			target[share.Channel] = append(target[share.Channel], map[string]any{"ts": share.TS})
		}
		info["shares"] = map[string]any{"public": public, "private": private}
	}
	return info
}

// The paths of files: on Slack's own host, which requires the token, and on the host behind
// it, which requires none.
const (
	downloads = "/files-pri/"
	cdn       = "/files-cdn/"
)

// CDN returns an address of the file on another host, for File.Redirect. That host serves the
// file without a token and refuses requests with one.
func (s *Server) CDN(id string) string {
	return strings.Replace(s.url, "127.0.0.1", "localhost", 1) + cdn + id
}

// download serves a file to a request with the token, and redirects others to the sign-in
// page. The name of the method for Script and Plan is "files.download".
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/signin" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Sign in</title>"))
		return
	}
	path, isOwn := strings.CutPrefix(r.URL.Path, downloads)
	path, isCDN := strings.CutPrefix(path, cdn)
	id, _, _ := strings.Cut(path, "/")
	if s.options.OnDownload != nil {
		s.options.OnDownload(r)
	}
	s.mu.RLock()
	file, found := s.files[id]
	s.mu.RUnlock()
	token := r.Header.Get("Authorization")
	switch {
	case !found || !isOwn && !isCDN:
		http.NotFound(w, r)
	case isCDN && token != "":
		http.Error(w, "two ways to authorize", http.StatusBadRequest)
	case isOwn && (file.Unreadable || token != "Bearer "+s.options.Token || s.revoked.Load() || !s.granted("files:read")):
		http.Redirect(w, r, "/signin?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
	case isOwn && file.Redirect != "":
		http.Redirect(w, r, file.Redirect, http.StatusFound)
	default:
		s.serve(w, r, file)
	}
}

// serve writes the file, or the fault of this download.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, file File) {
	call := Call{Method: "files.download", Form: url.Values{"file": {file.ID}}}
	f := s.fault(call)
	header := w.Header()
	header.Set("Content-Type", file.MimeType)
	if !f.answers() {
		header.Set("Content-Length", strconv.Itoa(len(file.Content)))
	}
	s.answer(w, r, f, func() []byte { return file.Content })
}
