package discord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
)

// maxUpload bounds a file that is uploaded, in bytes. Discord refuses a smaller one too, unless
// the server's boosts allow it.
// https://docs.discord.com/developers/reference#uploading-files
const maxUpload = 25 << 20

// sendFile posts a message with a file, in one call. The file is in memory meanwhile.
func (a *Adapter) sendFile(ctx context.Context, method, path string, file *adapters.File, body outgoing, answer any) error {
	if file.Size <= 0 || file.Size > maxUpload {
		return permanent(fmt.Sprintf("discord accepts no file of %d bytes", file.Size))
	}
	raw, err := readFile(ctx, file)
	if err != nil {
		return err
	}
	contentType, form, err := discordgo.MultipartBodyWithJSON(body, []*discordgo.File{{Name: fileName(file.Name), ContentType: file.MimeType, Reader: bytes.NewReader(raw)}})
	if err != nil {
		return permanent("the file cannot be encoded: " + err.Error())
	}
	return a.rest.call(ctx, method, path, contentType, form, answer)
}

// readFile reads a whole file of the declared size.
func readFile(ctx context.Context, file *adapters.File) ([]byte, error) {
	source, err := file.Open(ctx)
	if errors.Is(err, fs.ErrNotExist) { // a deleted file does not come back
		return nil, permanent(fmt.Sprintf("%s no longer exists: %v", file.Name, err))
	}
	if err != nil {
		return nil, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("open %s: %w", file.Name, err)}
	}
	defer source.Close()
	raw, err := io.ReadAll(io.LimitReader(source, file.Size+1))
	switch {
	case err != nil:
		return nil, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("read %s: %w", file.Name, err)}
	case int64(len(raw)) != file.Size:
		return nil, permanent(file.Name + " does not have the declared size")
	}
	return raw, nil
}

// fileName returns a file's name; Discord needs one.
func fileName(name string) string {
	if name == "" {
		return "file"
	}
	return name
}
