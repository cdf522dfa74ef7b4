package discord

import (
	"strings"

	"github.com/bwmarrin/discordgo"

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
		more := file.Optional()
		files = append(files, event.Attachment{
			ID:       requiredSnowflake(file, "id"),
			Name:     more.Text("filename"),
			MimeType: more.Text("content_type"),
			Size:     more.Number("size"),
		})
	}
	for _, sticker := range d.Children("sticker_items") {
		more := sticker.Optional()
		files = append(files, event.Attachment{
			ID:       requiredSnowflake(sticker, "id"),
			Name:     more.Text("name"),
			MimeType: stickerTypes[discordgo.StickerFormat(more.Number("format_type"))],
		})
	}
	return files
}

// stickerTypes are the media types of the formats of stickers.
var stickerTypes = map[discordgo.StickerFormat]string{
	discordgo.StickerFormatTypePNG: "image/png", discordgo.StickerFormatTypeAPNG: "image/apng",
	discordgo.StickerFormatTypeLottie: "application/json", discordgo.StickerFormatTypeGIF: "image/gif",
}
