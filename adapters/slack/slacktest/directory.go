package slacktest

import (
	"net/http"
	"net/url"
	"strings"
)

// User is one of the workspace's users.
type User struct {
	ID, Name, RealName, DisplayName string
	IsBot                           bool
}

// File is a file that was shared.
type File struct {
	ID, Name, MimeType string
	Content            []byte
	// Unreadable says that the token may not read it: the download leads to the
	// sign-in page, as Slack's does.
	Unreadable bool
	// DownloadURL stands in url_private_download instead of the server's own.
	DownloadURL string
}

// AddUser makes users.info know the user.
func (s *Server) AddUser(user User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[user.ID] = user
}

// AddChannel makes conversations.info know the channel; a direct message has no name.
func (s *Server) AddChannel(id, name string) {
	c := s.channel(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.im = name, name == ""
}

// AddFile makes files.info know the file, and the server serve it.
func (s *Server) AddFile(file File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[file.ID] = file
}

func (s *Server) userInfo(form url.Values) []byte {
	s.mu.RLock()
	user, found := s.users[form.Get("user")]
	s.mu.RUnlock()
	if !found {
		return refusal("user_not_found")
	}
	return encode(map[string]any{"ok": true, "user": map[string]any{
		"id": user.ID, "team_id": s.options.Team, "name": user.Name, "real_name": user.RealName, "is_bot": user.IsBot,
		"profile": map[string]any{"real_name": user.RealName, "display_name": user.DisplayName},
	}})
}

func (s *Server) channelInfo(form url.Values) []byte {
	id := form.Get("channel")
	s.mu.RLock()
	c := s.channels[id]
	s.mu.RUnlock()
	if c == nil {
		return refusal("channel_not_found")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info := map[string]any{"id": id, "is_im": c.im, "is_channel": !c.im}
	if c.name != "" {
		info["name"] = c.name
	}
	return encode(map[string]any{"ok": true, "channel": info})
}

func (s *Server) fileInfo(form url.Values) []byte {
	s.mu.RLock()
	file, found := s.files[form.Get("file")]
	s.mu.RUnlock()
	if !found {
		return refusal("file_not_found")
	}
	location := file.DownloadURL
	if location == "" {
		location = s.url + downloads + file.ID + "/download/" + url.PathEscape(file.Name)
	}
	return encode(map[string]any{"ok": true, "file": map[string]any{
		"id": file.ID, "name": file.Name, "mimetype": file.MimeType, "size": len(file.Content),
		"url_private": location, "url_private_download": location,
	}})
}

const downloads = "/files-pri/"

// download serves a file to who shows the token, and the sign-in page to all others.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/signin" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Sign in</title>"))
		return
	}
	path, _ := strings.CutPrefix(r.URL.Path, downloads)
	id, _, _ := strings.Cut(path, "/")
	s.mu.RLock()
	file, found := s.files[id]
	s.mu.RUnlock()
	switch {
	case !found:
		http.NotFound(w, r)
	case file.Unreadable || r.Header.Get("Authorization") != "Bearer "+s.options.Token:
		http.Redirect(w, r, "/signin?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
	default:
		w.Header().Set("Content-Type", file.MimeType)
		_, _ = w.Write(file.Content)
	}
}
