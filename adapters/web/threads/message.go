package threads

import (
	"encoding/json"
	"time"

	"parley/adapters/web/access"
	"parley/assembly/legacy"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// Message is a message in a response.
type Message struct {
	ID              string             `json:"id"`
	ClientMessageID string             `json:"client_message_id,omitempty"`
	ThreadSeq       int64              `json:"thread_seq"`
	Role            string             `json:"role"`
	Kind            string             `json:"kind,omitempty"` // notice
	SenderID        string             `json:"sender_id"`
	Content         string             `json:"content"`
	Metadata        json.RawMessage    `json:"metadata"`
	Attachments     []event.Attachment `json:"attachments"`
	Trigger         messages.Trigger   `json:"trigger"`
	Reason          string             `json:"reason,omitempty"`
	Run             *Run               `json:"run,omitempty"` // that the message asked for
	CreatedAt       time.Time          `json:"created_at"`
	EditedAt        *time.Time         `json:"edited_at,omitempty"`
	DeletedAt       *time.Time         `json:"deleted_at,omitempty"`
	// The fields of replies. A notice has the id of its run too.
	RunID         string `json:"run_id,omitempty"`
	BaseSeq       *int64 `json:"base_seq,omitempty"`
	LatestSeenSeq *int64 `json:"latest_seen_seq,omitempty"`
	ServerSeq     *int64 `json:"server_seq_at_submit,omitempty"`
	Stale         *bool  `json:"stale,omitempty"` // when it was submitted; nil if unknown
	StaleLag      *int64 `json:"stale_lag,omitempty"`
}

// Run is the run of a message: queued, running, done, failed or cancelled.
type Run struct {
	ID    *string `json:"id"` // nil before the run begins
	State string  `json:"state"`
	Error *string `json:"error"` // for people; nil for none
	Cause string  `json:"cause,omitempty"`
}

// View returns a message with all that an operator may see.
func View(m *messages.Listed) Message {
	return view(m, access.Caller{Token: access.Token{Senders: access.SendersAny}})
}

// view returns a message as the caller may see it. Only an integration sees why a run failed.
func view(m *messages.Listed, c access.Caller) Message {
	v := m.View()
	out := Message{
		ID: m.UUID, ClientMessageID: m.ClientMessageID, ThreadSeq: v.ThreadSeq, Role: v.Role, SenderID: m.SenderID,
		Content: Display(&m.Message), Metadata: v.Metadata, Attachments: v.Attachments, Trigger: m.Trigger, Reason: m.Reason,
		CreatedAt: m.CreatedAt, EditedAt: given(m.EditedAt), DeletedAt: given(m.DeletedAt),
	}
	switch m.Author {
	case messages.BySystem:
		out.Kind, out.RunID = "notice", m.Run
	case messages.ByAgent:
		out.RunID = m.Run
	}
	if asked := m.Asked; asked != nil {
		out.Run = &Run{ID: given(asked.ID), State: asked.State, Error: given(asked.Error)}
		if c.IsIntegration() {
			out.Run.Cause = asked.Cause
		}
	}
	if f := m.Freshness; f != nil {
		out.BaseSeq, out.LatestSeenSeq, out.ServerSeq = f.BaseSeq, f.LatestSeenSeq, &f.ServerSeq
		out.Stale, out.StaleLag = event.IsStale(f.BaseSeq, f.ServerSeq), event.ComputeStaleLag(f.BaseSeq, f.ServerSeq)
	}
	return out
}

// given returns a pointer to a value; nil for the zero value.
func given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// Display returns the text of a message for people: a row from before the ingest contract
// has a prefix in its content.
func Display(m *messages.Message) string {
	if m.Version != 0 {
		return m.Content
	}
	metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names no source
	return legacy.Strip(m.Content, metadata.Source, int(m.Version))
}
