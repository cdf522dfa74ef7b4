package speak

import (
	"net/http"
	"path"
	"strings"

	"parley/adapters"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
)

// maxKey bounds an idempotency key, and maxContent a content, in bytes.
const maxKey, maxContent = 200, 200 << 10

// Post takes a post: POST /api/v1/workspaces/{workspace}/posts.
func (a API) Post(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(a.Threads.Gate.Guard, "", a.post)(w, r)
}

func (a API) post(w http.ResponseWriter, r *http.Request) error {
	workspace := r.PathValue("workspace")
	caller, err := a.Threads.Gate.Admit(w, r, workspace, access.Caller.Posts)
	if err != nil {
		return err
	}
	raw, err := exchange.ReadBody(a.Threads.Gate.Guard, w, r, tooLong)
	if err != nil {
		return err
	}
	s, b, err := readPost(raw)
	if err != nil {
		return err
	}
	s.Workspace, s.By = workspace, caller.Workspace+"/"+caller.Token.ID
	s.May = func(channel string) error { return caller.MayPost(workspace, channel) }
	if s.To.User != "" {
		if err := s.May(""); err != nil { // before the platform is asked
			return err
		}
	}
	if err := a.Threads.Storage.Keep(r.Context(), w, workspace, s.By, &b); err != nil {
		return err
	}
	for _, f := range b.Attachments {
		s.Files = append(s.Files, event.Attachment{ID: path.Base(f.Path), Name: f.Name, MimeType: f.MimeType, Size: f.Size, Copy: &event.Copy{Bucket: f.Bucket, Path: f.Path}})
	}
	p, _, err := a.Outbox.Speak(r.Context(), s)
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusAccepted, Accepted(p))
}

// readPost reads the body of a post. Its error is event.FieldErrors.
func readPost(raw []byte) (s adapters.Speech, b payload.Body, err error) {
	faults := payload.Members(raw, func(m event.Extra) string {
		switch m.Key {
		case "to":
			return s.To.Read(m.Value)
		case "key":
			return payload.Text(m.Value, &s.Key)
		case "content", "attachments":
			return b.Set(m, nil)
		}
		return "is not a key of a post; the keys are to, content, attachments and key"
	})
	if payload.Unreadable(faults) {
		return s, b, faults
	}
	s.Text = b.Content
	faults = append(append(faults, Check(s, len(b.Attachments) > 0)...), b.Unsent()...)
	return s, b, faults.Err()
}

// Check returns the faults of a speech. files says that it has files, so that it needs no text.
func Check(s adapters.Speech, files bool) event.FieldErrors {
	faults := s.To.Check()
	faults.Check(strings.TrimSpace(s.Text) != "" || files, "content", "is required; it may be empty beside attachments")
	faults.Check(len(s.Text) <= maxContent, "content", "must have at most 200 KiB")
	faults.Check(len(s.Key) <= maxKey, "key", "must have at most 200 bytes")
	return faults
}

// Accepted is the answer to a post that was stored.
func Accepted(p record.Post) any {
	return map[string]any{"id": p.ID, "thread_id": p.Thread.ID, "message": map[string]string{"id": p.ID}, "state": p.State}
}

func (a API) getPost(c access.Call, w http.ResponseWriter, r *http.Request) error {
	p, err := a.Outbox.Post(r.Context(), r.PathValue("id"))
	if err == nil && !c.Token.MayPost(p.Thread.Workspace, p.Channel) {
		err = storage.ErrNotFound
	}
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusOK, View(p))
}

// PostView is the state of a post as a client sees it.
type PostView struct {
	ID       string       `json:"id"`
	State    outbox.State `json:"state"`
	ThreadID string       `json:"thread_id"`
	PostID   *string      `json:"post_id"`
	Link     *string      `json:"link"`
	Error    *string      `json:"error"`
}

// View returns a post as a client sees it.
func View(p record.Post) PostView {
	return PostView{ID: p.ID, State: p.State, ThreadID: p.Thread.ID, PostID: given(p.PlatformID), Link: given(p.Link), Error: given(p.Error)}
}

// given returns a pointer to a text; nil for an empty one.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
