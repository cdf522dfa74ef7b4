package discord

import (
	"strings"

	"parley/ingest/event"
)

// readContent returns the typed text verbatim. A poll adds a line for its question and one
// for each answer, because a person typed them too.
// https://docs.discord.com/developers/resources/poll#poll-object
func readContent(d object) string {
	content := d.text("content")
	poll, ok := d.child("poll")
	if !ok {
		return content
	}
	var lines []string
	if content != "" {
		lines = append(lines, content)
	}
	if question, ok := poll.child("question"); ok {
		lines = append(lines, question.text("text"))
	}
	for _, answer := range poll.children("answers") {
		if media, ok := answer.child("poll_media"); ok {
			lines = append(lines, "- "+media.text("text"))
		}
	}
	return strings.Join(lines, "\n")
}

// readFiles returns a message's files and stickers. A voice message is a file.
func readFiles(d object) []event.Attachment {
	var files []event.Attachment
	for _, file := range d.children("attachments") {
		files = append(files, event.Attachment{
			ID:       file.requiredSnowflake("id"),
			Name:     file.text("filename"),
			MimeType: file.text("content_type"),
			Size:     file.number("size"),
		})
	}
	for _, sticker := range d.children("sticker_items") {
		files = append(files, event.Attachment{
			ID:       sticker.requiredSnowflake("id"),
			Name:     sticker.text("name"),
			MimeType: stickerType(sticker.number("format_type")),
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
