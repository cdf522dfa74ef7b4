package runapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
)

// blocks returns a message's content as a list of blocks, if it has images that the server
// takes. It posts each image to the server and names it by its signed URL. Other files, and
// images that the server refuses, are only named.
func (a *Agent) blocks(ctx context.Context, m assembly.Message) (blocks []runinput.Block, err error) {
	images := false
	for _, p := range m.Parts {
		block := runinput.Block{Type: "text", Text: p.Text}
		if p.File != nil {
			block.Text = remote.Describe(*p.File)
			image, err := a.upload(ctx, *p.File)
			if err != nil {
				return nil, err
			}
			if image != nil {
				block, images = *image, true
			}
		}
		blocks = append(blocks, block)
	}
	if !images {
		return nil, nil
	}
	return blocks, nil
}

// upload posts an image and returns its block. It returns nil for a file that is no image, or
// that the server does not want.
func (a *Agent) upload(ctx context.Context, file assembly.File) (*runinput.Block, error) {
	kind, size, ok := remote.CheckImage(ctx, a.files, file, remote.DefaultImageBytes)
	if !ok {
		return nil, nil
	}
	content, err := a.files.Open(ctx, file.Bucket, file.Path)
	if err != nil {
		return nil, nil // the copy is gone
	}
	defer content.Close()
	name := cmp.Or(remote.Plain(file.Name, 120), "image") // a form's file has a name
	var head, tail bytes.Buffer
	form := multipart.NewWriter(&head)
	if _, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", name)}, "Content-Type": {kind},
	}); err != nil {
		return nil, err
	}
	fmt.Fprintf(&tail, "\r\n--%s--\r\n", form.Boundary())
	request, err := a.request(ctx, "attachments", "", io.MultiReader(&head, content, &tail))
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(head.Len()+tail.Len()) + size
	request.Header.Set("Content-Type", form.FormDataContentType())
	var stored struct{ URL string }
	_, err = a.call(request, &stored)
	if fault, ok := errors.AsType[*remote.Error](err); ok && fault.Permanent {
		return nil, nil
	}
	if err == nil && stored.URL == "" {
		err = a.client.Invalid("the server took an image and named no url for it", nil)
	}
	if err != nil {
		return nil, err
	}
	return &runinput.Block{Type: "binary", MimeType: kind, URL: stored.URL, Filename: name}, nil
}
