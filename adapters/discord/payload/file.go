package payload

import (
	"math"
	"path"

	"github.com/bwmarrin/discordgo"

	"parley/adapters/jsonobject"
	"parley/ingest/event"
)

// readFiles returns a message's files and stickers. A file without a name and a type cannot be
// fetched any more.
func readFiles(d jsonobject.Fields) []event.Attachment {
	var files []event.Attachment
	for _, file := range d.Children("attachments") {
		more := file.Optional()
		a := event.Attachment{
			ID:         requiredSnowflake(file, "id"),
			Name:       readFileName(more),
			MimeType:   more.Text("content_type"),
			Size:       more.Number("size"),
			DurationMS: readDuration(more),
			Words:      more.Text("description"), // which the author typed for people who can't see the picture
		}
		if more.Has("waveform") || discordgo.MessageFlags(d.Optional().Number("flags"))&discordgo.MessageFlagsIsVoiceMessage != 0 {
			a.Type = event.TypeVoice
		}
		if more.Has("filename") || more.Has("content_type") {
			files = append(files, a)
		}
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

// readFileName returns the name that the author gave a file: its title, which has no extension, with the extension of
// Discord's own form of the name.
// https://docs.discord.com/developers/resources/message#attachment-object
func readFileName(file jsonobject.Fields) string {
	name, title := file.Text("filename"), file.Text("title")
	if title == "" {
		return name
	}
	return title + path.Ext(name)
}

// maxSeconds bounds the length of a recording.
const maxSeconds = 1e9

// readDuration returns the length of a recording in milliseconds; 0 if there is none.
func readDuration(file jsonobject.Fields) int64 {
	var seconds float64
	if !file.Decode("duration_secs", "a number", &seconds) || seconds < 0 || seconds > maxSeconds {
		return 0
	}
	return int64(math.Round(seconds * 1000))
}

// stickerTypes are the media types of the formats of stickers.
var stickerTypes = map[discordgo.StickerFormat]string{
	discordgo.StickerFormatTypePNG: "image/png", discordgo.StickerFormatTypeAPNG: "image/apng",
	discordgo.StickerFormatTypeLottie: "application/json", discordgo.StickerFormatTypeGIF: "image/gif",
}
