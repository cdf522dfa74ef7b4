package bluebubbles

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
)

// message contains the fields of the webhook's message that the adapter uses.
type message struct {
	tempGUID    string
	text        string // without the placeholders of attachments
	subject     string
	fromMe      bool
	failure     int64 // the "error" of sending; 0 if there is none
	created     time.Time
	edited      time.Time
	retracted   time.Time
	parts       *int64 // nil if the payload has no count
	replyTo     string
	handle      handle
	chat        *chat // nil in updates, which name no chat
	attachments []event.Attachment
}

// handle is the author of a message as the payload names him.
type handle struct {
	address     string
	displayName string
	firstName   string
	lastName    string
}

func readMessage(data object) message {
	m := message{
		tempGUID:    data.id("tempGuid"),
		text:        typed(data.text("text")),
		subject:     typed(data.text("subject")),
		fromMe:      data.flag("isFromMe"),
		created:     data.date("dateCreated"),
		edited:      data.date("dateEdited"),
		retracted:   data.date("dateRetracted"),
		replyTo:     data.id("threadOriginatorGuid"),
		attachments: readAttachments(data),
	}
	m.failure, _ = data.number("error")
	if parts, ok := data.number("partCount"); ok {
		m.parts = &parts
	}
	if h, ok := data.child("handle"); ok {
		m.handle = handle{
			address:     h.id("address"),
			displayName: h.text("displayName"),
			firstName:   h.text("firstName"),
			lastName:    h.text("lastName"),
		}
	}
	if chats := data.children("chats"); len(chats) > 0 {
		m.chat = readChat(chats[0])
	}
	return m
}

func readChat(o object) *chat {
	c := chat{guid: o.requiredID("guid")}
	c.style, _ = o.number("style")
	if c.guid != "" && chatName(c.guid) == "" {
		o.fault("guid", "must name a chat after its last semicolon")
	}
	return &c
}

// placeholder marks the position of an attachment in a text.
const placeholder = "\uFFFC"

// typed returns the typed text without placeholders.
func typed(text string) string { return strings.ReplaceAll(text, placeholder, "") }

// readAttachments returns the files that a person can see.
func readAttachments(data object) []event.Attachment {
	var attachments []event.Attachment
	for _, o := range data.children("attachments") {
		name := o.text("transferName")
		if hidden(o, name) {
			continue
		}
		size, _ := o.number("totalBytes")
		attachments = append(attachments, event.Attachment{
			ID:       o.requiredID("guid"),
			Name:     name,
			MimeType: o.text("mimeType"),
			Size:     max(size, 0),
		})
	}
	return attachments
}

// hidden reports whether an attachment is data of Messages itself, such as a link's preview,
// and not a file that a person sent.
func hidden(o object, name string) bool {
	return o.flag("hideAttachment") ||
		strings.HasPrefix(o.text("uti"), "com.apple.messages.") ||
		strings.HasSuffix(name, ".pluginPayloadAttachment")
}

// content returns the typed text: the subject line, if there is one, and the text.
func (m message) content() string {
	switch {
	case m.subject == "":
		return m.text
	case m.text == "":
		return m.subject
	}
	return m.subject + "\n" + m.text
}

// unsent reports whether the author took the message back. If the author unsent it part by
// part, it has an edit date and neither text nor attachments.
func (m message) unsent() bool {
	if !m.retracted.IsZero() {
		return true
	}
	nothing := m.parts != nil && *m.parts == 0 && m.content() == "" && len(m.attachments) == 0
	return nothing && !m.edited.IsZero()
}

// revision returns a hash of every field that can change. Receipts are not part of it: the
// delivery or the reading of a message does not change it.
func (m message) revision() string {
	files := make([]string, len(m.attachments))
	for i, a := range m.attachments {
		files[i] = a.ID
	}
	slices.Sort(files)
	state := fmt.Appendf(nil, "%q %q %d %d %q %d", m.text, m.subject,
		m.edited.UnixMilli(), m.retracted.UnixMilli(), files, m.failure)
	sum := sha256.Sum256(state)
	return hex.EncodeToString(sum[:16])
}
