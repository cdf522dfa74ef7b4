package messages

import (
	"encoding/json"
	"strings"

	"parley/ingest/event"
)

// View is a message in the form that replay prints and the HTTP API returns.
type View struct {
	ID          string             `json:"id"`
	ThreadSeq   int64              `json:"thread_seq"`
	Role        string             `json:"role"`
	Content     string             `json:"content"`
	Metadata    json.RawMessage    `json:"metadata"`
	Attachments []event.Attachment `json:"attachments"`
}

// Role returns the message's external role. An agent outside Parley is an assistant like ours,
// though its messages are another bot's for an agent of ours.
func (m *Message) Role() string {
	if m.Author == ByBot && strings.HasPrefix(m.SenderID, "agent:") {
		return ByAgent.Role()
	}
	return m.Author.Role()
}

// View returns the message in its external form.
func (m *Message) View() View {
	v := View{ID: m.ID(), ThreadSeq: m.Seq, Role: m.Role(), Content: m.Content, Metadata: m.Metadata, Attachments: []event.Attachment{}}
	for _, a := range m.Attachments {
		v.Attachments = append(v.Attachments, a.Attachment)
	}
	return v
}
