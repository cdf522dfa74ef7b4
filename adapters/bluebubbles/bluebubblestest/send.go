package bluebubblestest

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
)

// The ways in which the server sends a message.
const (
	AppleScript = "apple-script"
	Private     = "private-api"
)

// sendBody is the body of message/text.
type sendBody struct {
	ChatGUID string `json:"chatGuid"`
	TempGUID string `json:"tempGuid"`
	Method   string `json:"method"`
	Message  string `json:"message"`
	ReplyTo  string `json:"selectedMessageGuid"`
}

func (s *Server) sendText(r *request) (any, error) {
	var b sendBody
	if err := r.decode(&b); err != nil {
		return nil, err
	}
	if b.Message == "" {
		return nil, refuse(http.StatusBadRequest, "Validation Error", "A message is required!")
	}
	return s.send(b, nil)
}

// send adds a row of ours. The server reports it twice: with its temporary guid, and without.
func (s *Server) send(b sendBody, files map[string][]byte) (any, error) {
	s.mu.Lock()
	chat, known := s.chats[b.ChatGUID]
	private := b.Method == Private || b.ReplyTo != ""
	var refused error
	switch {
	case !known:
		refused = refuse(http.StatusNotFound, "Database Error", "Chat does not exist!")
	case private && !s.options.PrivateAPI:
		refused = refuse(http.StatusBadRequest, "Validation Error", "The private API is not enabled!")
	case private && s.helperGone:
		refused = noHelper()
	case !private && b.TempGUID == "":
		refused = refuse(http.StatusBadRequest, "Validation Error", "A temporary guid is required!")
	case s.sending[b.TempGUID]:
		refused = refuse(http.StatusBadRequest, "Validation Error", "Message is already queued to be sent!")
	}
	if refused != nil {
		s.mu.Unlock()
		return nil, refused
	}
	m := Message{Chat: chat.GUID, Text: b.Message, TempGUID: b.TempGUID, ReplyTo: b.ReplyTo}
	for name, content := range files {
		guid := fmt.Sprintf("at_0_sent-%d", len(s.files)+1)
		s.files[guid] = content
		m.Attachments = append(m.Attachments, Attachment{GUID: guid, Name: name, MimeType: "application/octet-stream", Size: len(content)})
	}
	m = s.put(m)
	s.typing[chat.GUID] = false
	data := s.row(s.byGUID[m.GUID], true, true, true)
	s.mu.Unlock()
	data["tempGuid"] = b.TempGUID
	if s.options.OnSend != nil {
		s.options.OnSend(m)
	}
	s.fire("new-message", m.GUID, b.TempGUID)
	s.fire("new-message", m.GUID, "")
	return data, nil
}

// newChat makes the chat with one address by its first message, unless there is one.
func (s *Server) newChat(r *request) (any, error) {
	var b struct {
		Addresses []string `json:"addresses"`
		Service   string   `json:"service"`
		sendBody
	}
	if err := r.decode(&b); err != nil {
		return nil, err
	}
	switch {
	case len(b.Addresses) != 1:
		return nil, refuse(http.StatusBadRequest, "Validation Error", "One address is required!")
	case b.Message == "":
		return nil, refuse(http.StatusInternalServerError, "iMessage Error", "A message is required when creating chats on macOS Big Sur or newer!")
	}
	b.ChatGUID = b.Service + ";-;" + b.Addresses[0]
	s.mu.Lock()
	if _, known := s.chats[b.ChatGUID]; !known {
		s.chats[b.ChatGUID] = Chat{GUID: b.ChatGUID}
	}
	s.mu.Unlock()
	sent, err := s.send(b.sendBody, nil)
	if err != nil {
		return nil, err
	}
	return map[string]any{"guid": b.ChatGUID, "messages": []any{sent}}, nil
}

// sendFile serves message/attachment, a form with the file in the field attachment.
func (s *Server) sendFile(r *request) (any, error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "Validation Error", "The body is not a form.")
	}
	form, err := multipart.NewReader(bytes.NewReader(r.body), params["boundary"]).ReadForm(maxRequest)
	if err != nil || len(form.File["attachment"]) != 1 {
		return nil, refuse(http.StatusBadRequest, "Validation Error", "An attachment is required!")
	}
	field := func(name string) string {
		if values := form.Value[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	f, err := form.File["attachment"][0].Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	b := sendBody{ChatGUID: field("chatGuid"), TempGUID: field("tempGuid"), Method: field("method")}
	return s.send(b, map[string][]byte{field("name"): content})
}

// noHelper is the server's refusal without the helper of its private API.
func noHelper() error {
	return refuse(http.StatusInternalServerError, "iMessage Error", "iMessage Private API Helper is not connected!")
}

// private runs a call that needs the private API, about the chat in the path.
func (s *Server) private(r *request, do func(chat string)) (any, error) {
	if !s.options.PrivateAPI {
		return nil, refuse(http.StatusInternalServerError, "iMessage Error", "iMessage Private API is not enabled!")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.helperGone {
		return nil, noHelper()
	}
	chat := r.PathValue("guid")
	if _, known := s.chats[chat]; !known {
		return nil, refuse(http.StatusNotFound, "Database Error", "Chat does not exist!")
	}
	do(chat)
	return nil, nil
}

func (s *Server) startTyping(r *request) (any, error) {
	return s.private(r, func(chat string) { s.typing[chat] = true })
}

func (s *Server) stopTyping(r *request) (any, error) {
	return s.private(r, func(chat string) { s.typing[chat] = false })
}

func (s *Server) markRead(r *request) (any, error) {
	return s.private(r, func(chat string) { s.read[chat]++ })
}

func (s *Server) react(r *request) (any, error) {
	var b struct {
		ChatGUID string `json:"chatGuid"`
		Target   string `json:"selectedMessageGuid"`
		Reaction string `json:"reaction"`
	}
	if err := r.decode(&b); err != nil {
		return nil, err
	}
	if !s.options.PrivateAPI {
		return nil, refuse(http.StatusInternalServerError, "iMessage Error", "iMessage Private API is not enabled!")
	}
	m, _ := s.Say(Message{Chat: b.ChatGUID, Tapback: b.Reaction, Target: b.Target})
	return map[string]any{"guid": m.GUID}, nil
}

func (s *Server) edit(r *request) (any, error) {
	var b struct {
		Text string `json:"editedMessage"`
	}
	if err := r.decode(&b); err != nil {
		return nil, err
	}
	s.Edit(r.PathValue("guid"), b.Text)
	return s.message(r)
}

func (s *Server) unsend(r *request) (any, error) {
	s.Unsend(r.PathValue("guid"))
	return s.message(r)
}
