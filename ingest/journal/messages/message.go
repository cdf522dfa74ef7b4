package messages

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// Author is the kind of a message's author.
type Author string

// The authors.
const (
	ByHuman  Author = "human"
	ByBot    Author = "bot"
	ByAgent  Author = "agent"
	BySystem Author = "system" // Parley itself; see IsNotice
	ByTool   Author = "tool"   // an agent, about a stage of its work or a call of a tool
)

// Role returns the author's external role: user, assistant, system or tool.
func (a Author) Role() string {
	switch a {
	case ByAgent:
		return "assistant"
	case BySystem, ByTool:
		return string(a)
	}
	return "user"
}

// IsNotice reports whether the message is a notice of Parley about a run or to a sender. A report or a prompt of Parley that an
// agent answers is none.
func (m *Message) IsNotice() bool { return m.Author == BySystem && m.Trigger != TriggerRun }

// Trigger is the effect of a message on the agent.
type Trigger string

// The triggers.
const (
	TriggerRun     Trigger = "run"
	TriggerPassive Trigger = "passive"
	TriggerNone    Trigger = "none"
)

// Origin is the way by which a message came into the journal.
type Origin string

// The origins.
const (
	Live        Origin = "live"
	Late        Origin = "late"
	FromContext Origin = "context"
	API         Origin = "api"
	Imported    Origin = "import"
)

// ContractVersion is the version of the ingest contract of new rows. The content of rows
// of version 0 begins with the message's header.
const ContractVersion = 1

// Message is a stored message in its current state.
type Message struct {
	Row             int64
	UUID            string // made before the durable accept
	Thread          int64
	Seq             int64 // thread_seq; 0 for a message of which only the external id is stored
	ExternalID      string
	ClientMessageID string
	ClientRunID     string // the client's own id of the run that it asks for; empty for none
	SenderID        string
	Author          Author
	Trigger         Trigger
	Reason          string // of the trigger
	Agent           string // the agent that it asks; empty for none
	Content         string
	Quotes          Quotes
	Metadata        []byte // the original bytes of the object
	Version         int64
	Origin          Origin
	Revision        string
	Attachments     []files.Attachment // filled if the caller needs them
	Reactions       []event.Reaction
	SentAt          time.Time // the earlier of the platform's time and the arrival
	CreatedAt       time.Time
	EditedAt        time.Time
	DeletedAt       time.Time
	Run             string // id of the run that answers it, or that it replies to; empty for none

	Memory            bool // later turns show it; set by a run, and if it was read for a transcript
	FileCount         int64
	FilesUntil        time.Time // until when its turn waits for its files; zero if it has them
	Envelopes         string
	quotes, reactions string // the columns of Quotes and Reactions
}

// ID returns the external id of the message.
func (m *Message) ID() string {
	if m.ExternalID != "" {
		return m.ExternalID
	}
	return m.ClientMessageID
}

// Quotes are the messages inside another message, and the names behind the tokens of its own content.
type Quotes struct {
	Quoted    *event.Quote  `json:"quoted,omitempty"`
	Forwarded []event.Quote `json:"forwarded,omitempty"`
	Names     event.Names   `json:"names,omitempty"`
	// Sender is another id of the author, a bot, which lists of the policy may name; see event.Message.
	Sender string `json:"sender,omitempty"`
	// Payer is the sender whose limits count the run that the message asks for, if it is not the message's sender; see event.Message.
	Payer string `json:"payer,omitempty"`
}

// QuotesOf returns the quotes of a message.
func QuotesOf(m *event.Message) Quotes {
	return Quotes{Quoted: m.Quoted, Forwarded: m.Forwarded, Names: m.Names, Sender: m.AltSenderID}
}

// packQuotes returns the column that holds quotes as JSON.
func packQuotes(tx *storage.Txn, q Quotes) string {
	return tx.Pack(q, q.Quoted == nil && len(q.Forwarded) == 0 && len(q.Names) == 0 && q.Sender == "" && q.Payer == "")
}

const messageColumns = `m.row, m.id, m.thread, m.seq, m.external_id, m.client_message_id, m.sender_id,
	m.author, m.trigger, m.reason, m.agent, m.content, m.quotes, m.metadata, m.version, m.origin, m.revision, m.files, m.files_until, m.reactions, m.envelopes,
	m.sent_at, m.created_at, m.edited_at, m.deleted_at, m.run, m.memory`

// dest is the scan target for messageColumns.
func (m *Message) dest() []any {
	return []any{&m.Row, &m.UUID, &m.Thread, &m.Seq, &m.ExternalID, &m.ClientMessageID, &m.SenderID,
		(*string)(&m.Author), (*string)(&m.Trigger), &m.Reason, &m.Agent, &m.Content, &m.quotes, &m.Metadata, &m.Version, (*string)(&m.Origin), &m.Revision,
		&m.FileCount, &m.FilesUntil, &m.reactions, &m.Envelopes, &m.SentAt, &m.CreatedAt, &m.EditedAt, &m.DeletedAt, &m.Run, &m.Memory}
}

// unpack sets the fields that are JSON in the columns of a message.
func unpack(tx *storage.Txn, m *Message) {
	if err := errors.Join(storage.Unpack(m.quotes, &m.Quotes), storage.Unpack(m.reactions, &m.Reactions)); err != nil {
		tx.Fail(fmt.Errorf("message %d: quotes or reactions: %w", m.Row, err))
	}
}

// MetadataOf reads the metadata of a stored message.
func MetadataOf(tx *storage.Txn, m *Message) event.Metadata {
	metadata, err := event.ReadMetadata(m.Metadata)
	if err != nil {
		tx.Fail(fmt.Errorf("message %d: metadata: %w", m.Row, err))
	}
	return metadata
}

// Complete unpacks scanned messages, reads their files, and returns them.
func Complete(tx *storage.Txn, messages []Message) []Message {
	for i := range messages {
		unpack(tx, &messages[i])
		LoadFiles(tx, &messages[i])
	}
	return messages
}

// LoadFiles reads the message's files, if it has any.
func LoadFiles(tx *storage.Txn, m *Message) {
	if m.FileCount > 0 {
		m.Attachments = files.Of(tx, m.Row)
	}
}

// HasEnvelope reports whether an envelope contains words of the message.
func (m *Message) HasEnvelope(id int64) bool {
	return slices.Contains(strings.Split(m.Envelopes, ","), strconv.FormatInt(id, 10))
}

// AddEnvelope notes that an envelope contains words of the message.
func (m *Message) AddEnvelope(id int64) {
	if m.Envelopes != "" {
		m.Envelopes += ","
	}
	m.Envelopes += strconv.FormatInt(id, 10)
}
