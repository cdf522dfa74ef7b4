package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/adapters/slack/slacktest/internal/wire"
)

// The limits of uploads.
const (
	maxUpload       = 64 << 20 // bytes; Slack's own bound is 1 GB
	maxStored       = 1 << 30  // bytes of all uploads that are not shared
	maxOpenUploads  = 1_000
	uploadOverhead  = 64 << 10 // bound of the bytes that a multipart form adds
	maxUploadShares = 100
)

// uploads is the path for sending files.
const uploads = "/upload/v1/"

// Upload is a file that the bot uploaded.
type Upload struct {
	File
	// Channel and TS identify the message with the file.
	Channel, TS string
}

// upload is an upload that has not been shared yet.
type upload struct {
	name    string
	length  int
	content []byte // nil before its arrival
}

// Uploads returns the files that the bot uploaded and shared, in the order of sharing.
func (s *Server) Uploads() []Upload {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.shared)
}

// uploadURL is files.getUploadURLExternal.
// https://docs.slack.dev/reference/methods/files.getUploadURLExternal
func (s *Server) uploadURL(form url.Values) []byte {
	length, err := strconv.Atoi(form.Get("length"))
	switch {
	case form.Get("filename") == "":
		return wire.Missing("filename")
	case err != nil || length <= 0:
		return wire.Refusal("missing_argument")
	case length > maxUpload:
		return wire.Refusal("file_upload_size_restricted")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uploads) == maxOpenUploads || s.stored+length > maxStored {
		return wire.Refusal("storage_limit_reached")
	}
	s.stored += length
	s.uploadCount++
	id := fmt.Sprintf("F0UP%06d", s.uploadCount)
	s.uploads[id] = &upload{name: form.Get("filename"), length: length}
	return wire.Encode(map[string]any{"ok": true, "file_id": id, "upload_url": s.url + uploads + id})
}

// takeUpload reads a file's bytes, from the body or from a multipart form. The name of the
// method for Script and Plan is "files.upload".
func (s *Server) takeUpload(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, uploads)
	s.mu.RLock()
	open := s.uploads[id]
	s.mu.RUnlock()
	if open == nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, int64(open.length)+uploadOverhead)
	content, err := readUpload(r)
	if err != nil || len(content) != open.length {
		http.Error(w, "the file does not have the announced length", http.StatusBadRequest)
		return
	}
	call := Call{Method: "files.upload", Form: url.Values{"file": {id}}}
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	s.answer(w, r, s.fault(call), func() []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		open.content = content
		return []byte("OK - " + strconv.Itoa(len(content)))
	})
}

func readUpload(r *http.Request) ([]byte, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "multipart/form-data" {
		return io.ReadAll(r.Body)
	}
	form, err := r.MultipartReader()
	if err != nil {
		return nil, fmt.Errorf("read the form: %w", err)
	}
	part, err := form.NextPart()
	if err != nil {
		return nil, fmt.Errorf("read the form's file: %w", err)
	}
	return io.ReadAll(part)
}

// completeUpload is files.completeUploadExternal. It turns uploads into files, and shares
// them in one message of ours per channel or keeps them private.
// https://docs.slack.dev/reference/methods/files.completeUploadExternal
func (s *Server) completeUpload(form url.Values) []byte {
	var requested []struct{ ID, Title string }
	if json.Unmarshal([]byte(form.Get("files")), &requested) != nil || len(requested) == 0 || len(requested) > maxUploadShares {
		return wire.Missing("files")
	}
	channels := strings.FieldsFunc(form.Get("channels")+","+form.Get("channel_id"), func(r rune) bool { return r == ',' })
	if len(channels) > maxUploadShares {
		return wire.Refusal("channels_limit_exceeded")
	}
	var ids []string
	for _, one := range requested {
		ids = append(ids, one.ID)
	}
	s.mu.Lock()
	for _, one := range requested {
		if open := s.uploads[one.ID]; open == nil || open.content == nil {
			s.mu.Unlock()
			return wire.Refusal("file_not_found")
		}
	}
	for _, one := range requested {
		open := s.uploads[one.ID]
		delete(s.uploads, one.ID)
		s.files[one.ID] = File{ID: one.ID, Name: open.name, Title: one.Title, User: s.options.BotUser,
			MimeType: http.DetectContentType(open.content), Content: open.content}
	}
	s.mu.Unlock()
	for _, id := range channels {
		if code := s.share(id, ids, form); code != "" {
			return wire.Refusal(code)
		}
	}
	return wire.Encode(map[string]any{"ok": true, "files": s.describeFiles(ids)})
}

// share posts the files to a channel and records the message in the files.
func (s *Server) share(id string, ids []string, form url.Values) (code string) {
	post := s.ours(form)
	post.Channel, post.Text, post.Files = id, form.Get("initial_comment"), ids
	post, code = s.publish(post, nil)
	if code != "" {
		return code
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, file := range ids {
		f := s.files[file]
		f.Shares = append(f.Shares, Share{post.Channel, post.TS})
		s.files[file] = f
		s.shared = append(s.shared, Upload{File: f, Channel: post.Channel, TS: post.TS})
	}
	return ""
}
