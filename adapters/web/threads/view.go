package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// chatMessage is a message of a thread in a response.
type chatMessage struct {
	ID              string          `json:"id"`
	ThreadID        string          `json:"thread_id"`
	SenderID        payload.Actor   `json:"sender_id"`
	Role            string          `json:"role"`
	Content         string          `json:"content"`
	HTML            string          `json:"html,omitempty"` // of an agent's content
	Metadata        json.RawMessage `json:"metadata"`       // null for none
	CreatedAt       time.Time       `json:"created_at"`
	ClientMessageID *string         `json:"client_message_id"`
	ThreadSeq       int64           `json:"thread_seq"`
	Attachments     []chatFile      `json:"attachments,omitempty"`
	*freshness                      // nil for a message of no agent
	*origin                         // nil unless the caller wants the work of the thread
}

// chatFile is a file of a message.
type chatFile struct {
	Name     string  `json:"name"`
	MimeType string  `json:"mime_type"`
	Size     int64   `json:"size"`
	Type     string  `json:"type,omitempty"`
	Duration int64   `json:"duration_ms,omitempty"`
	URL      *string `json:"url"` // a new link; null while there is no copy
}

// origin is the source of a message, and its effect.
type origin struct {
	SenderName string           `json:"sender_display_name"`
	Source     string           `json:"source"` // the platform or the program from which it came
	Trigger    messages.Trigger `json:"trigger"`
	Reason     string           `json:"reason,omitempty"` // of the trigger
	// RunID is the run of a question, an answer, a row or a notice; empty for none yet.
	RunID string `json:"run_id,omitempty"`
}

func originOf(m *messages.Listed) *origin {
	metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names nobody
	o := &origin{metadata.SenderDisplayName, metadata.Source, m.Trigger, m.Reason, runOf(m)}
	if name, ok := strings.CutPrefix(m.SenderID, "agent:"); ok {
		o.SenderName = cmp.Or(o.SenderName, name)
	}
	return o
}

// runOf returns the run of a message; empty for none. That of a post is the post itself.
func runOf(m *messages.Listed) string {
	if m.Run == m.UUID {
		return ""
	}
	return m.Run
}

// freshness shows how much of its thread an agent knew. Its members are null if the agent did
// not say.
type freshness struct {
	BaseSeq       *int64 `json:"base_seq"`
	LatestSeenSeq *int64 `json:"latest_seen_seq"`
	ServerSeq     int64  `json:"server_seq_at_submit"`
	Stale         *bool  `json:"stale"`
	StaleLag      *int64 `json:"stale_lag"`
}

func (c call) viewChat(ctx context.Context, thread string, m *messages.Listed) chatMessage {
	view := chatMessage{
		ID: m.UUID, ThreadID: thread, SenderID: c.sender(m.SenderID, m.Author), Role: m.Role(), Content: Display(&m.Message),
		Metadata: givenMetadata(m.Metadata), CreatedAt: m.CreatedAt, ClientMessageID: given(m.ClientMessageID), ThreadSeq: m.Seq,
	}
	if c.work {
		view.origin = originOf(m)
	}
	if c.html && m.Author == messages.ByAgent {
		view.HTML = exchange.HTML(view.Content)
	}
	for _, a := range m.Attachments {
		file := chatFile{Name: a.Name, MimeType: a.MimeType, Size: a.Size, Type: a.Type, Duration: a.DurationMS}
		if link, err := c.signed(ctx, a); err == nil && link != "" {
			file.URL = &link
		}
		view.Attachments = append(view.Attachments, file)
	}
	if f := m.Freshness; f != nil {
		view.freshness = &freshness{f.BaseSeq, f.LatestSeenSeq, f.ServerSeq, event.IsStale(f.BaseSeq, f.ServerSeq), event.ComputeStaleLag(f.BaseSeq, f.ServerSeq)}
	}
	return view
}

// added are the keys of metadata that Parley has added: they repeat the sender and the mentions of a message, or
// are the layout of its blocks.
var added = map[string]bool{
	"source": true, "sender_id": true, "sender_display_name": true, "sender_type": true, "recipient_id": true, event.KeyBlocks: true,
}

// givenMetadata returns the stored metadata without the keys that Parley has added; nil if
// nothing is left. The values keep their bytes.
func givenMetadata(stored []byte) json.RawMessage {
	members, err := event.ReadObject(stored)
	if err != nil {
		return nil
	}
	var left []byte
	for _, m := range members {
		if !added[m.Key] {
			left = append(append(append(append(left, ','), payload.Encode(m.Key)...), ':'), m.Value...)
		}
	}
	if left == nil {
		return nil
	}
	left[0] = '{'
	return append(left, '}')
}

// sender returns the sender of a stored message as an actor. A sender from elsewhere, such as
// an integration, has a UUID made from its sender_id.
func (c call) sender(id string, author messages.Author) payload.Actor {
	namespace, name, _ := strings.Cut(id, ":")
	switch {
	case payload.Actor(id).IsValid():
		return payload.Actor(id)
	case author == messages.ByAgent || author == messages.ByTool:
		return payload.AgentActor(name)
	case author == messages.BySystem:
		return payload.Actor("agent:" + payload.UUIDOf("sender:"+id))
	case namespace == string(event.Web):
		for _, token := range c.Tokens {
			if token.ID == name {
				return token.ActorIn(c.Workspace)
			}
		}
	}
	return payload.Actor("user:" + payload.UUIDOf("sender:"+c.Workspace+":"+id))
}
