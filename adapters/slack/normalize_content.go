package slack

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/ingest/event"
)

// content is what was said. A program may leave the text empty and put its words
// into attachments or blocks; what hangs on a person's message was made by Slack.
func content(m *wireMessage) string {
	if m.Text != "" || !m.isBot() {
		return decode(m.Text)
	}
	if words := attachmentWords(m.Attachments); words != "" {
		return decode(words)
	}
	return decode(blockWords(m.Blocks))
}

// attachmentWords joins what a reader sees of a program's attachments, a line
// for each part; the fallback stands for an attachment without any.
func attachmentWords(raw json.RawMessage) string {
	var lines []string
	for _, a := range attachments(raw) {
		parts := slices.DeleteFunc([]string{a.Pretext, a.Title, a.Text}, func(s string) bool { return s == "" })
		if len(parts) == 0 && a.Fallback != "" {
			parts = []string{a.Fallback}
		}
		lines = append(lines, parts...)
	}
	return strings.Join(lines, "\n")
}

// blockWords joins the texts of a program's header, section and markdown blocks.
// https://docs.slack.dev/reference/block-kit/blocks
func blockWords(raw json.RawMessage) string {
	var blocks []struct {
		Text json.RawMessage `json:"text"` // a text object, or a string in a markdown block
	}
	_ = json.Unmarshal(raw, &blocks) // a program's layout is no reason to refuse its message
	var lines []string
	for _, block := range blocks {
		var object struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(block.Text, &object) != nil {
			_ = json.Unmarshal(block.Text, &object.Text)
		}
		if object.Text != "" {
			lines = append(lines, object.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// forwarded are the messages that a person passed on inside the message: Slack
// hangs them on it, beside the links that it unfurled.
func forwarded(raw json.RawMessage, self event.Self) []event.Quote {
	var quotes []event.Quote
	for _, a := range attachments(raw) {
		if !a.IsShare {
			continue
		}
		quote := event.Quote{Name: event.Text(a.AuthorName), Content: decode(a.Text), Own: same(a.AuthorID, self.UserID)}
		if isID(a.AuthorID) {
			quote.SenderID, quote.MentionToken = senderID(a.AuthorID), mentionToken(a.AuthorID)
		}
		if isID(a.ChannelID) && isTimestamp(a.TS) {
			quote.ExternalID = a.ChannelID + "/" + a.TS
		}
		var carried []json.RawMessage
		_ = json.Unmarshal(a.Files, &carried) // only their number is of use
		quote.Files = len(carried)
		quotes = append(quotes, quote)
	}
	return quotes
}

// attachments reads what it can of them: apps put in them what they please.
func attachments(raw json.RawMessage) []wireAttachment {
	if len(raw) == 0 {
		return nil
	}
	var list []wireAttachment
	_ = json.Unmarshal(raw, &list)
	return list
}

// files are the message's own. One that is deleted, hidden by the team's plan, or
// not for us keeps its id and what else is known.
// https://docs.slack.dev/reference/objects/file-object
func files(wire []wireFile) []event.Attachment {
	var out []event.Attachment
	for i := range wire {
		out = append(out, wire[i].attachment())
	}
	return out
}

func (f *wireFile) attachment() event.Attachment {
	a := event.Attachment{
		ID:       event.Text(f.ID),
		Name:     event.Text(firstOf(f.Name, f.Title)),
		MimeType: event.Text(f.Mimetype),
		Size:     f.Size,
	}
	switch {
	case f.Mode == "tombstone", f.Mode == "hidden_by_limit":
		a.Gone = true
	case f.FileAccess == "file_not_found", f.FileAccess == "access_denied", f.FileAccess == "slack_file_not_found":
		a.Gone = true
	}
	if f.Subtype == "slack_audio" {
		a.Name, a.MimeType = voice(a.Name, a.MimeType, event.Text(f.Filetype))
	}
	return a
}

// voice names a voice clip. Slack calls the container of some a video's, and may
// leave out the name of one that was just recorded.
func voice(name, mimeType, filetype string) (string, string) {
	if rest, ok := strings.CutPrefix(mimeType, "video/"); ok {
		mimeType = "audio/" + rest
	}
	if name == "" {
		name = "audio_message"
		if isID(filetype) {
			name += "." + filetype
		}
	}
	return name, mimeType
}
