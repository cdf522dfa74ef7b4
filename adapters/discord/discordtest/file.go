package discordtest

import (
	"net/http"
	"strings"
)

// File is a file of a message. Redirect, if not empty, is the address to which a download is
// redirected.
type File struct {
	ID, Name, MimeType string
	Content            []byte
	Redirect           string
	// URL replaces the address in the message.
	URL string
}

// store stores uploaded files.
func (s *Server) store(channel string, uploads []Upload) (files []File) {
	for _, u := range uploads {
		f := File{ID: s.newID(), Name: u.Name, MimeType: "application/octet-stream", Content: u.Content}
		s.files["/attachments/"+channel+"/"+f.ID+"/"+f.Name] = f
		f.URL = s.url + "/attachments/" + channel + "/" + f.ID + "/" + f.Name
		files = append(files, f)
	}
	return files
}

// AddFile makes a file of a message known to the file host.
func (s *Server) AddFile(channel string, f File) File {
	s.change(func() {
		f.ID = s.newID()
		path := "/attachments/" + channel + "/" + f.ID + "/" + f.Name
		s.files[path] = f
		setDefault(&f.URL, s.url+path)
	})
	return f
}

func (s *Server) fileWire(f File) map[string]any {
	return map[string]any{"id": f.ID, "filename": f.Name, "size": len(f.Content), "content_type": f.MimeType, "url": f.URL, "proxy_url": f.URL}
}

// download serves a file. It refuses credentials, because Discord's file host needs none.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	switch {
	case !ok || r.Header.Get("Authorization") != "":
		http.NotFound(w, r)
	case f.Redirect != "":
		http.Redirect(w, r, f.Redirect, http.StatusFound)
	default:
		w.Header().Set("Content-Type", f.MimeType)
		_, _ = w.Write(f.Content)
	}
}

// CDN returns the server's address under another name of this machine.
func (s *Server) CDN() string { return strings.Replace(s.url, "127.0.0.1", "localhost", 1) }

// AddFileAt serves a content at a path of the file host.
func (s *Server) AddFileAt(path string, content []byte) {
	s.change(func() { s.files[path] = File{Content: content, MimeType: "application/octet-stream"} })
}
