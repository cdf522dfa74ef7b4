package journal

import "encoding/json"

// View is a message in the form that replay prints and the HTTP API returns.
type View struct {
	ID          string           `json:"id"`
	ThreadSeq   int64            `json:"thread_seq"`
	Role        string           `json:"role"`
	Content     string           `json:"content"`
	Metadata    json.RawMessage  `json:"metadata"`
	Attachments []AttachmentView `json:"attachments"`
}

// AttachmentView is a file of a View.
type AttachmentView struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	ID       string `json:"id"`
}

// View returns the message in its external form.
func (m *Message) View() View {
	v := View{ID: m.ID(), ThreadSeq: m.Seq, Role: m.Author.Role(), Content: m.Content, Metadata: m.Metadata, Attachments: []AttachmentView{}}
	for _, a := range m.Attachments {
		v.Attachments = append(v.Attachments, AttachmentView{Name: a.Name, MimeType: a.MimeType, Size: a.Size, ID: a.ID})
	}
	return v
}
