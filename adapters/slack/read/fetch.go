package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"parley/adapters/httpcall"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// Fetch opens a file by its id. It asks files.info for the address, and reads only from
// Slack's file host or the API's host. The caller closes the reader, bounds its size,
// and bounds the time by ctx.
func (r *Reader) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	file, err := r.fileInfo(ctx, attachment.ID)
	if err != nil {
		return nil, err
	}
	location, err := r.fileURL(file)
	if err != nil {
		return nil, err
	}
	response, err := httpcall.Open(ctx, r.files, r.client.Meter(), location.String(), r.client.BotToken.Reveal())
	if err != nil {
		return nil, err
	}
	if isSignInPage(response, location, file.Mimetype) {
		_ = response.Body.Close()
		return nil, errors.New("slack sent its sign-in page: the bot may not read the file, or lacks the scope files:read")
	}
	// In a shared channel, a message may carry only the id of a file of the other team.
	return &httpcall.Download{ReadCloser: response.Body, Info: file.Attachment()}, nil
}

// wireFileInfo is a file as files.info describes it.
// https://docs.slack.dev/reference/methods/files.info
type wireFileInfo struct {
	payload.File
	URLPrivate         string `json:"url_private"`
	URLPrivateDownload string `json:"url_private_download"`
	// Slack's own pictures of an image, by their longer side in pixels. Those of a photograph are JPEGs.
	Thumb1024 string `json:"thumb_1024"`
	Thumb960  string `json:"thumb_960"`
	Thumb720  string `json:"thumb_720"`
	Thumb480  string `json:"thumb_480"`
	Thumb360  string `json:"thumb_360"`
}

// address returns the download address of the file, or of Slack's own picture of it if models do not read the file's form.
func (f *wireFileInfo) address() string {
	if f.Attachment().NeedsConversion() {
		return payload.FirstOf(f.Thumb1024, f.Thumb960, f.Thumb720, f.Thumb480, f.Thumb360, f.URLPrivateDownload, f.URLPrivate)
	}
	return payload.FirstOf(f.URLPrivateDownload, f.URLPrivate)
}

// fileInfo asks for the description of a file.
func (r *Reader) fileInfo(ctx context.Context, id string) (*wireFileInfo, error) {
	var answer struct {
		call.Answer
		File wireFileInfo `json:"file"`
	}
	if err := r.client.Call(ctx, "files.info", url.Values{"file": {id}}, &answer); err != nil {
		return nil, err
	}
	if answer.File.IsRemoved() {
		return nil, errors.New("slack has deleted the file or hides it")
	}
	return &answer.File, nil
}

// fileURL returns the download address of a file. It is an error if the address is at a
// host that must not get the token.
func (r *Reader) fileURL(file *wireFileInfo) (*url.URL, error) {
	location, err := url.Parse(file.address())
	if err != nil {
		return nil, errors.New("slack's address of the file can't be read")
	}
	if !httpcall.IsAt(location, r.client.Base, fileHosts...) {
		return nil, fmt.Errorf("the file is at %q, which is not slack's", location.Host)
	}
	return location, nil
}

// isSignInPage reports whether Slack has answered with its sign-in page, because the bot may not
// read the file. An HTML response is the file only if files.info describes an HTML file, and it
// comes from the requested path or from a host without a sign-in page.
func isSignInPage(response *http.Response, asked *url.URL, mimeType string) bool {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	from := response.Request.URL
	moved := from.Path != asked.Path && (from.Host == asked.Host || httpcall.IsIn(from, call.SlackDomains...))
	return kind == "text/html" && (!strings.HasPrefix(mimeType, "text/html") || moved)
}
