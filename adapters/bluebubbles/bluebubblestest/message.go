package bluebubblestest

import (
	"strings"
	"time"
)

// Chat is a conversation.
type Chat struct {
	GUID string // such as "iMessage;-;+15555550142"; ";+;" makes it a group
	Name string // of a group
}

// isGroup reports whether the chat has several people.
func (c Chat) isGroup() bool { return strings.Contains(c.GUID, ";+;") }

// Contact is an entry of the address book.
type Contact struct{ Address, Name string }

// Attachment is a file of a message.
type Attachment struct {
	GUID, Name, MimeType string
	Size                 int
}

// Message is one row of Messages' database. Only a zero ROWID, GUID and CreatedAt are chosen by
// the server.
type Message struct {
	ROWID int64
	GUID  string
	Chat  string // the chat's guid
	From  string // an address; empty for the account's owner
	Text  string
	// TempGUID is the temporary guid of a message that the API has sent.
	TempGUID string
	ReplyTo  string // a message's guid
	Subject  string
	// Tapback is the name of a tapback, such as "love" or "-love", and Target the message.
	Tapback, Target string
	Attachments     []Attachment
	// Spoken is Apple's transcription of the first file, a voice note.
	Spoken string
	// Pending is the number of files that come later; see Arrive.
	Pending int
	// Balloon is the kind of a message that an app shows, such as a link's preview; empty for none.
	Balloon string
	// ItemType and Action describe a change of a group.
	ItemType, Action int
	// Error is the error of the delivery to the recipient; 0 for none.
	Error                                               int
	CreatedAt, EditedAt, RetractedAt, ReadAt, Delivered time.Time
}

// row returns the message in the server's form. A webhook's form has fewer members, and that of
// an update has no chats.
func (s *Server) row(m *Message, rest, chats, attachments bool) map[string]any {
	text := strings.Repeat("\uFFFC", len(m.Attachments)+m.Pending) + m.Text // the places of the files
	row := map[string]any{
		"originalROWID": m.ROWID, "guid": m.GUID, "text": null(text), "attributedBody": nil, "handle": nil, "handleId": 0, "otherHandle": 0,
		"subject": null(m.Subject), "error": m.Error, "dateCreated": date(m.CreatedAt), "dateRead": date(m.ReadAt),
		"dateDelivered": date(m.Delivered), "isDelivered": true, "isFromMe": m.From == "", "hasDdResults": false, "isArchived": false,
		"itemType": m.ItemType, "groupTitle": nil, "groupActionType": m.Action, "balloonBundleId": null(m.Balloon),
		"associatedMessageGuid": nil, "associatedMessageType": nil, "expressiveSendStyleId": nil, "threadOriginatorGuid": null(m.ReplyTo),
		"hasPayloadData": false, "messageSummaryInfo": nil, "payloadData": nil,
		"dateEdited": date(m.EditedAt), "dateRetracted": date(m.RetractedAt), "partCount": 1,
	}
	if s.options.BodyOnly && m.From == "" && m.Text != "" {
		row["text"] = nil
		if rest {
			row["attributedBody"] = []any{map[string]any{"string": m.Text, "runs": []any{}}}
		}
	}
	if m.Spoken != "" {
		row["attributedBody"] = []any{map[string]any{"string": text, "runs": []any{map[string]any{"range": []int{0, 1}, "attributes": map[string]any{
			"__kIMMessagePartAttributeName": 0, "__kIMFileTransferGUIDAttributeName": m.Attachments[0].GUID, "IMAudioTranscription": m.Spoken,
		}}}}}
	}
	if m.From != "" {
		service, _, _ := strings.Cut(m.Chat, ";")
		if service == "any" {
			service = "iMessage"
		}
		row["handle"] = map[string]any{"originalROWID": 1, "address": m.From, "service": service}
	}
	if m.Tapback != "" {
		row["associatedMessageType"], row["associatedMessageGuid"] = m.Tapback, "p:0/"+m.Target
	}
	if m.Text == "" && len(m.Attachments) == 0 && !m.EditedAt.IsZero() {
		row["partCount"] = 0
	}
	if chats {
		row["chats"] = []any{s.chatRow(s.chats[m.Chat])}
	}
	list := make([]any, 0, len(m.Attachments))
	for i, a := range m.Attachments {
		list = append(list, map[string]any{
			"originalROWID": i + 1, "guid": a.GUID, "uti": "public.data", "mimeType": a.MimeType, "transferName": a.Name,
			"totalBytes": a.Size, "height": 0, "width": 0, "metadata": nil,
		})
	}
	if attachments {
		row["attachments"] = list
	}
	if rest {
		row["isAudioMessage"], row["replyToGuid"] = false, nil
	}
	return row
}

// chatRow returns a chat in the server's form.
func (s *Server) chatRow(c Chat) map[string]any {
	style := 45
	if c.isGroup() {
		style = 43
	}
	return map[string]any{
		"originalROWID": 1, "guid": c.GUID, "style": style, "chatIdentifier": c.GUID[strings.LastIndexByte(c.GUID, ';')+1:],
		"isArchived": false, "displayName": c.Name,
	}
}

// null returns nil for an empty text.
func null(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// date returns a time in milliseconds since 1970, or nil.
func date(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}
