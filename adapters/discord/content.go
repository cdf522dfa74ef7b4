package discord

import (
	"strings"

	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// readContent returns the typed text verbatim. A poll adds a line for its question and one
// for each answer, because a person typed them too.
// https://docs.discord.com/developers/resources/poll#poll-object
func readContent(d jsonobject.Fields) string {
	content := d.Text("content")
	poll, ok := d.Child("poll")
	if !ok {
		return content
	}
	var lines []string
	if content != "" {
		lines = append(lines, content)
	}
	if question, ok := poll.Child("question"); ok {
		lines = append(lines, question.Text("text"))
	}
	for _, answer := range poll.Children("answers") {
		if media, ok := answer.Child("poll_media"); ok {
			lines = append(lines, "- "+media.Text("text"))
		}
	}
	return strings.Join(lines, "\n")
}

// readFiles returns a message's files and stickers. A voice message is a file.
func readFiles(d jsonobject.Fields) []event.Attachment {
	var files []event.Attachment
	for _, file := range d.Children("attachments") {
		files = append(files, event.Attachment{
			ID:       requiredSnowflake(file, "id"),
			Name:     file.Text("filename"),
			MimeType: file.Text("content_type"),
			Size:     file.Number("size"),
		})
	}
	for _, sticker := range d.Children("sticker_items") {
		files = append(files, event.Attachment{
			ID:       requiredSnowflake(sticker, "id"),
			Name:     sticker.Text("name"),
			MimeType: stickerType(sticker.Number("format_type")),
		})
	}
	return files
}

// stickerType returns the media type of a sticker's format. It is empty for an unknown
// format.
// https://docs.discord.com/developers/resources/sticker#sticker-object-sticker-format-types
func stickerType(format int64) string {
	switch format {
	case 1:
		return "image/png"
	case 2:
		return "image/apng"
	case 3:
		return "application/json" // Lottie
	case 4:
		return "image/gif"
	}
	return ""
}
