package bluebubblestest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// SetChat adds a chat, or replaces the one with its guid.
func (s *Server) SetChat(c Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chats[c.GUID] = c
}

// AddContact adds an entry to the address book.
func (s *Server) AddContact(c Contact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contacts = append(s.contacts, c)
}

// AddFile stores the content of an attachment.
func (s *Server) AddFile(guid string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[guid] = content
}

// Put adds a row without a webhook, and returns it. The chat is made if it is unknown.
func (s *Server) Put(m Message) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(m)
}

// put is Put with the lock held.
func (s *Server) put(m Message) Message {
	m.ROWID = int64(len(s.rows)) + 1
	if m.GUID == "" {
		m.GUID = strings.ToUpper(uuid.NewString())
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = s.options.Now()
	}
	if _, known := s.chats[m.Chat]; !known {
		s.chats[m.Chat] = Chat{GUID: m.Chat}
	}
	s.rows = append(s.rows, &m)
	s.byGUID[m.GUID] = &m
	s.landed.Broadcast()
	return m
}

// Say adds a row and sends its webhook.
func (s *Server) Say(m Message) (Message, Delivery) {
	m = s.Put(m)
	return m, s.fire("new-message", m.GUID, "")
}

// Change changes a row and sends an updated-message, as for an edit, a receipt or a late
// attachment.
func (s *Server) Change(guid string, change func(*Message)) Delivery {
	s.mu.Lock()
	m := s.byGUID[guid]
	if m == nil {
		s.mu.Unlock()
		return Delivery{}
	}
	change(m)
	s.mu.Unlock()
	return s.fire("updated-message", guid, "")
}

// Edit changes the text of a message.
func (s *Server) Edit(guid, text string) Delivery {
	return s.Change(guid, func(m *Message) { m.Text, m.EditedAt = text, s.options.Now() })
}

// Arrive adds the pending files of a message, as Messages does some seconds after the message.
func (s *Server) Arrive(guid string, files ...Attachment) Delivery {
	return s.Change(guid, func(m *Message) { m.Attachments, m.Pending = append(m.Attachments, files...), 0 })
}

// Unsend takes a message back.
func (s *Server) Unsend(guid string) Delivery {
	return s.Change(guid, func(m *Message) { m.Text, m.Attachments, m.EditedAt = "", nil, s.options.Now() })
}

// React adds the tapback of a person to a message.
func (s *Server) React(guid, from, tapback string) (Message, Delivery) {
	target, _ := s.Message(guid)
	return s.Say(Message{Chat: target.Chat, From: from, Text: "Loved “…”", Tapback: tapback, Target: guid})
}

// Repeat sends new-message for a row again.
func (s *Server) Repeat(guid string) Delivery { return s.fire("new-message", guid, "") }

// Replay repeats every row, as the server does after a restart.
func (s *Server) Replay() (all []Delivery) {
	for _, m := range s.Messages() {
		all = append(all, s.Repeat(m.GUID))
	}
	return all
}

// Message returns a message.
func (s *Server) Message(guid string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byGUID[guid]; m != nil {
		return *m, true
	}
	return Message{}, false
}

// Messages returns all rows.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Message, len(s.rows))
	for i, m := range s.rows {
		all[i] = *m
	}
	return all
}

// Sent returns the messages of the API in their order.
func (s *Server) Sent() []Message {
	return slices.DeleteFunc(s.Messages(), func(m Message) bool { return m.TempGUID == "" })
}

// Await waits until the API has sent n messages, and returns them. If ctx ends first, it
// returns the present ones and an error.
func (s *Server) Await(ctx context.Context, n int) ([]Message, error) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.landed.Broadcast()
	})
	defer stop()
	for {
		s.mu.Lock()
		before := len(s.rows)
		s.mu.Unlock()
		sent := s.Sent()
		if len(sent) >= n {
			return sent, nil
		}
		s.mu.Lock()
		for len(s.rows) == before && ctx.Err() == nil {
			s.landed.Wait()
		}
		s.mu.Unlock()
		if ctx.Err() != nil {
			return sent, fmt.Errorf("%d of %d messages were sent: %w", len(sent), n, context.Cause(ctx))
		}
	}
}

// IsTyping reports whether we type in a chat.
func (s *Server) IsTyping(chat string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typing[chat]
}

// Reads returns how often we have marked a chat as read.
func (s *Server) Reads(chat string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[chat]
}
