package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// filesName is the name of the latest attachments' messages in the state.
const filesName = "files"

// filePlace is the message of an attachment.
type filePlace struct {
	File    string `json:"f"`
	Channel string `json:"c"`
	Message string `json:"m"`
}

// rememberFiles stores the message of its attachments, because an attachment's id does not name
// it. Links to files expire, so they are not stored.
func rememberFiles(ctx context.Context, state adapters.State, m *message) error {
	err := adapters.UpdateList(ctx, state, filesName, func(list []filePlace) []filePlace {
		for _, f := range m.attached() {
			place := filePlace{File: f.ID, Channel: m.channel.ID, Message: m.id}
			if !slices.Contains(list, place) {
				list = append(list, place)
			}
		}
		return list
	})
	if err != nil {
		return fmt.Errorf("store the place of a file: %w", err)
	}
	return nil
}

// fileHosts serve the files of messages.
// https://docs.discord.com/developers/reference#signed-attachment-cdn-urls
var fileHosts = []string{"cdn.discordapp.com", "media.discordapp.net"}

// Fetch opens a file of a message. It asks for the message, whose links are fresh. The caller
// closes the reader, bounds its size, and bounds the time by ctx.
func (a *Adapter) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	file, err := a.attachment(ctx, attachment.ID)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(file.URL)
	if err != nil || !httpcall.IsAt(address, a.base, fileHosts...) {
		return nil, errors.New("the address of the file is not discord's")
	}
	response, err := httpcall.Open(ctx, a.files, address.String(), "")
	if err != nil {
		return nil, err
	}
	info := event.Attachment{ID: file.ID, Name: event.Text(file.Filename), MimeType: event.Text(file.ContentType), Size: int64(file.Size)}
	return &httpcall.Download{ReadCloser: response.Body, Info: info}, nil
}

// attachment returns an attachment with a fresh link.
func (a *Adapter) attachment(ctx context.Context, id string) (*discordgo.MessageAttachment, error) {
	list, err := adapters.GetList[filePlace](ctx, a.state, filesName)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(p filePlace) bool { return p.File == id })
	if at < 0 {
		return nil, errors.New("the message of the file is not known")
	}
	var m discordgo.Message
	if err := a.get(ctx, messagePath(list[at].Channel, list[at].Message), &m); err != nil {
		return nil, err
	}
	files := m.Attachments
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
