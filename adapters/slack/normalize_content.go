package slack

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// content returns the text of a message. An app may leave the text empty and write into
// attachments or blocks. The attachments of a user's message come from Slack, so
// content does not read them.
func content(m *wireMessage) string {
	if m.Text != "" || !m.isBot() {
		return decode(m.Text)
	}
	if words := attachmentText(m.Attachments); words != "" {
		return decode(words)
	}
	return decode(blockText(m.Blocks))
}

// attachmentText joins the visible texts of an app's attachments, one line for each
// text. An attachment without visible texts gives its fallback; Slack sets that of one with
// blocks to "[no preview available]". The text of a forwarded message is not the app's own.
func attachmentText(raw json.RawMessage) string {
	var lines []string
	for _, a := range attachments(raw) {
		if a.IsShare {
			continue
		}
		parts := []string{a.Pretext, a.Title, a.Text}
		for _, field := range a.Fields {
			parts = append(parts, field.Title, field.Value)
		}
		parts = slices.DeleteFunc(append(parts, blockText(a.Blocks)), func(s string) bool { return s == "" })
		if len(parts) == 0 && a.Fallback != "" {
			parts = []string{a.Fallback}
		}
		lines = append(lines, parts...)
	}
	return strings.Join(lines, "\n")
}

// blockText joins the texts of an app's header, section, context, markdown and rich_text blocks.
// https://docs.slack.dev/reference/block-kit/blocks
func blockText(raw json.RawMessage) string {
	var blocks []struct {
		Text     json.RawMessage   `json:"text"`     // a text object, or a string in a markdown block
		Fields   []json.RawMessage `json:"fields"`   // of a section: text objects
		Elements []json.RawMessage `json:"elements"` // of a context: text objects and images; of a rich_text: a richElement each
	}
	_ = json.Unmarshal(raw, &blocks) // an app's odd blocks are no reason to refuse its message
	var lines []string
	for _, block := range blocks {
		for _, text := range slices.Concat([]json.RawMessage{block.Text}, block.Fields, block.Elements) {
			var object struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(text, &object) != nil {
				_ = json.Unmarshal(text, &object.Text)
			}
			if object.Text == "" {
				object.Text = richText(text)
			}
			if object.Text != "" {
				lines = append(lines, object.Text)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// forwarded returns the messages that a user forwarded in the message. Slack adds them
// to the attachments, beside unfurled links. A bot may have an ordinary user id; the
// directory knows it then. An author whom the directory cannot look up counts as a person.
func forwarded(ctx context.Context, raw json.RawMessage, self event.Self, directory adapters.Directory) []event.Quote {
	var quotes []event.Quote
	for _, a := range attachments(raw) {
		if !a.IsShare {
			continue
		}
		quote := event.Quote{Name: event.Text(a.AuthorName), Content: decode(a.Text), Own: sameID(a.AuthorID, self.UserID) || sameID(a.AuthorID, self.BotID)}
		if isID(a.AuthorID) {
			quote.SenderID, quote.MentionToken = senderID(a.AuthorID), mentionToken(a.AuthorID)
			isBot := isBotID(a.AuthorID)
			if !isBot && !quote.Own {
				user, _ := directory.User(ctx, a.AuthorID)
				isBot = user.IsBot
			}
			if isBot {
				quote.SenderType = event.Bot
			}
		}
		if isID(a.ChannelID) {
			quote.Channel = a.ChannelID
		}
		if quote.Channel != "" && isTimestamp(a.TS) {
			quote.ExternalID = messageID(a.ChannelID, a.TS)
		}
		var carried []json.RawMessage
		_ = json.Unmarshal(a.Files, &carried) // only the number of files is used
		quote.Files = len(carried)
		quotes = append(quotes, quote)
	}
	return quotes
}

// attachments decodes attachments as far as possible, because apps may put anything
// into them.
func attachments(raw json.RawMessage) []wireAttachment {
	var list []wireAttachment
	_ = json.Unmarshal(raw, &list) // none without attachments
	return list
}

// files returns the message's own files. A file that is deleted, hidden by the team's
// plan, or not accessible to us keeps its id and its other known properties.
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
		a.Name, a.MimeType = voiceClip(a.Name, a.MimeType, event.Text(f.Filetype))
	}
	return a
}

// voiceClip returns the name and type of a voice clip. Slack gives some clips a video
// type, and may omit the name of a clip that was just recorded.
func voiceClip(name, mimeType, filetype string) (string, string) {
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
