package read

import (
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/bwmarrin/discordgo"

	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// fileHosts serve the files of messages.
// https://docs.discord.com/developers/reference#signed-attachment-cdn-urls
var fileHosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

// Fetch opens a file of a message. It asks for the message, whose links are fresh. The caller
// closes the reader, bounds its size, and bounds the time by ctx.
func (r *Reader) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	file, err := r.attachment(ctx, attachment.ID)
	if err != nil {
		return nil, err
	}
	info := event.Attachment{ID: file.ID, Name: event.Text(file.Filename), MimeType: event.Text(file.ContentType), Size: int64(file.Size)}
	address, err := url.Parse(file.URL)
	if converted, no := url.Parse(file.ProxyURL); no == nil && file.ProxyURL != "" && info.NeedsConversion() {
		query := converted.Query()
		query.Set("format", "jpeg") // the media proxy makes one of each picture that it shows
		converted.RawQuery, address = query.Encode(), converted
	}
	if err != nil || !httpcall.IsAt(address, r.client.Base, fileHosts...) {
		return nil, errors.New("the address of the file is not discord's")
	}
	response, err := httpcall.Open(ctx, r.files, &r.client.Meter, address.String(), "")
	if err != nil {
		return nil, err
	}
	return &httpcall.Download{ReadCloser: response.Body, Info: info}, nil
}

// attachment returns an attachment with a fresh link.
func (r *Reader) attachment(ctx context.Context, id string) (*discordgo.MessageAttachment, error) {
	channel, message, err := payload.FileAt(ctx, r.memory.State, id)
	switch {
	case err != nil:
		return nil, err
	case message == "":
		return nil, errors.New("the message of the file is not known")
	}
	var m discordgo.Message
	if err := r.client.Get(ctx, call.MessagePath(channel, message), &m); err != nil {
		return nil, err
	}
	files := m.Attachments
	if m.ReferencedMessage != nil {
		files = append(files, m.ReferencedMessage.Attachments...)
	}
	for _, snapshot := range m.MessageSnapshots {
		if snapshot.Message != nil {
			files = append(files, snapshot.Message.Attachments...)
		}
	}
	for _, file := range files {
		if file.ID == id {
			return file, nil
		}
	}
	return nil, errors.New("the message no longer has the file")
}
