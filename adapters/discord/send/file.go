package send

import (
	"bytes"
	"cmp"
	"context"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
)

// maxUpload bounds a file that is uploaded, in bytes. Discord refuses a smaller one too, unless
// the server's boosts allow it.
// https://docs.discord.com/developers/reference#uploading-files
const maxUpload = 25 << 20

// sendFile posts a message with a file, in one call. The file is in memory meanwhile.
func (s *Sender) sendFile(ctx context.Context, method, path string, file *adapters.File, body call.Message, answer any) error {
	raw, err := file.Content(ctx, maxUpload)
	if err != nil {
		return err
	}
	contentType, form, err := discordgo.MultipartBodyWithJSON(body, []*discordgo.File{{Name: cmp.Or(file.Name, "file"), ContentType: file.MimeType, Reader: bytes.NewReader(raw)}})
	if err != nil {
		return adapters.Permanently("the file cannot be encoded: " + err.Error())
	}
	return s.client.Call(ctx, method, path, contentType, form, answer)
}
